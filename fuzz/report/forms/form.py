"""Form: a representation of a finding for others, as files. Also the reported finding that all forms receive."""

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
from fuzz.triage.interestingness import ReducedCase, measured_case
from oracles.model.case import Case
from oracles.model.discovery import instances
from oracles.model.finding import Finding

Facts = Mapping[str, Mapping[str, Any]]  # arm -> recorded facts


@dataclass(frozen=True, slots=True)
class Opened:
    """Running arms: those of the finding, or more."""

    arms: Sequence[Arm]
    facts: Facts


@dataclass(frozen=True, slots=True)
class ReportedFinding:
    """A finding to hand on: its smallest case, and how to start its servers."""

    fingerprint: str
    oracle: str
    arms: tuple[str, str]  # (the reference, the suspect)
    case: Case
    script: str  # of the reproducer
    options: str  # command-line options that select the arms
    opened: Callable[[], AbstractContextManager[Opened]]  # starts servers. Raises PgduelError
    finding: Finding | None = None  # as recorded; None: it needs a run on servers
    blame: str = ""  # as far as known
    campaign: Path | None = None  # with the store that has it
    reproducer: Path | None = None  # the file of its script

    def arm(self, opened: Opened, name: str) -> Arm:
        """Return the arm of a name. Raises CaseError if it does not run."""
        for arm in opened.arms:
            if arm.name == name:
                return arm
        raise CaseError(
            f"finding {self.fingerprint} is about the arms {' and '.join(self.arms)}, but there is no {name}: "
            "give its arms, as its replay command does"
        )

    def measured_case(self, executor: Executor, arms: Sequence[Arm]) -> ReducedCase:
        """Run the case on servers; return the finding and its rate of occurrence. Raises ServerError."""
        unknown = Finding(self.oracle, self.arms, "", None, f"a finding of the oracle {self.oracle}", "", "")
        return measured_case(executor, arms, self.case, self.finding or unknown)


class Form(ABC):
    """A form. Each subclass is a file in this package; `all_forms` finds it."""

    name: ClassVar[str]
    one_file: ClassVar[bool] = True

    @abstractmethod
    def files(self, reported: ReportedFinding) -> Mapping[str, str]:
        """Return the text of each file by its relative path. Raises PgduelError."""


def title_of(finding: Finding) -> str:
    """Return a finding's summary in one line, without the number of its step."""
    return visible_line(re.sub(r"^step \d+: ", "", finding.summary))


def all_forms() -> dict[str, Form]:
    """Return name -> form."""
    return {form.name: form for form in instances(Form, forms)}  # type: ignore[type-abstract]  # its subclasses are
