"""Form: a way to hand a finding on, as files, and the reported finding that all forms get."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from fuzz.errors import CaseError
from fuzz.execution.executor import Executor
from fuzz.output import visible_line
from fuzz.report import forms
from fuzz.servers.arm import Arm
from fuzz.triage.interestingness import measured_case
from fuzz.triage.reduced_case import ReducedCase
from oracles.model.case import Case
from oracles.model.discovery import instances
from oracles.model.finding import Finding

Facts = Mapping[str, Mapping[str, Any]]  # arm -> what is recorded of it


@dataclass(frozen=True, slots=True)
class Opened:
    """Arms that run: the finding's, or more."""

    arms: Sequence[Arm]
    facts: Facts


@dataclass(frozen=True, slots=True)
class ReportedFinding:
    """A finding to hand on: the smallest case that shows it, and how to ask servers about it."""

    fingerprint: str
    oracle: str
    arms: tuple[str, str]  # (the one held against, the suspect)
    case: Case
    script: str  # as the reproducer has it
    options: str  # that say which arms there are, as a command line has them
    opened: Callable[[], AbstractContextManager[Opened]]  # starts servers. Raises PgduelError
    finding: Finding | None = None  # as it was recorded; None: only servers can tell
    blame: str = ""  # what is known of that
    campaign: Path | None = None  # whose store has it
    reproducer: Path | None = None  # the file that has its script

    def arm(self, opened: Opened, name: str) -> Arm:
        """Return one of its arms. Raises CaseError where there is none of that name."""
        for arm in opened.arms:
            if arm.name == name:
                return arm
        raise CaseError(
            f"finding {self.fingerprint} is about the arms {' and '.join(self.arms)}, but there is no {name}: "
            "give the arms that it was found on, as its replay command does"
        )

    def measured_case(self, executor: Executor, arms: Sequence[Arm]) -> ReducedCase:
        """Return what servers show now, and how often. Raises ServerError."""
        unknown = Finding(self.oracle, self.arms, "", None, f"a finding of the oracle {self.oracle}", "", "")
        return measured_case(executor, arms, self.case, self.finding or unknown)


class Form(ABC):
    """A form. Subclasses live one a file in this package and are found by `all_forms`."""

    name: ClassVar[str]
    one_file: ClassVar[bool] = True

    @abstractmethod
    def files(self, reported: ReportedFinding) -> Mapping[str, str]:
        """Return the text of each file by its path, relative to wherever they go. Raises PgduelError."""


def title_of(finding: Finding) -> str:
    """Return what a finding is about, in one line, where its steps are not numbered."""
    return visible_line(re.sub(r"^step \d+: ", "", finding.summary))


def all_forms() -> dict[str, Form]:
    """Return name -> form."""
    return {form.name: form for form in instances(Form, forms)}  # type: ignore[type-abstract]  # its subclasses are
