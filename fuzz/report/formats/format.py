"""Format: a representation of a campaign's report as one file."""

from abc import ABC, abstractmethod
from typing import ClassVar

from fuzz.report import formats
from fuzz.report.campaign_report import CampaignReport
from oracles.model.discovery import instances


class Format(ABC):
    """A format. Each subclass is a file in this package; `all_formats` finds it."""

    name: ClassVar[str]
    suffix: ClassVar[str]  # of the file's name
    printed: ClassVar[bool] = True  # to the terminal or a pipe, if no directory is given

    @abstractmethod
    def text(self, report: CampaignReport) -> str:
        """Return the text of the file. Raises PgduelError."""


def all_formats() -> dict[str, Format]:
    """Return name -> format."""
    return {each.name: each for each in instances(Format, formats)}  # type: ignore[type-abstract]  # its subclasses are
