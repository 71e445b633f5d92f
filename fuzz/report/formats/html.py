"""A page for a browser: one file, without any request to a network."""

from importlib.util import find_spec
from typing import ClassVar

from fuzz.errors import PgduelError
from fuzz.report.campaign_report import CampaignReport
from fuzz.report.formats.format import Format

_PACKAGES = {"altair": "altair", "jinja2": "jinja2", "vl_convert": "vl-convert-python"}  # module -> package


class Html(Format):
    """A page with plots, tables and reproducers."""

    name: ClassVar[str] = "html"
    suffix: ClassVar[str] = "html"
    printed: ClassVar[bool] = False

    def text(self, report: CampaignReport) -> str:
        """Return the page. Raises PgduelError if the extra `report` is not installed."""
        if absent := [package for module, package in _PACKAGES.items() if find_spec(module) is None]:
            raise PgduelError(
                f"the page needs Python packages that are not installed: {', '.join(absent)}; "
                "install pgduel[report], or write another format (--as markdown)"
            )
        from fuzz.report.page.page import page  # not at the top, because it needs these packages

        return page(report)
