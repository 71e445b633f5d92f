"""Contestant: a way to reduce a finding's case. One a file; `all_contestants` finds them."""

import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from fuzz.bench import reduction
from fuzz.campaign.findings import StoredFinding
from fuzz.errors import CaseError
from fuzz.inquiry.question import Question
from fuzz.reduction.problem import TimeUp
from fuzz.reduction.reproducer import parse
from fuzz.servers.arm import Arm
from oracles.case import Case
from oracles.discovery import instances


@dataclass(frozen=True, slots=True)
class Task:
    """A finding, the script of its case as it was found, and arms that run."""

    found: StoredFinding
    script: str
    arms: Sequence[Arm]


class Asked:
    """The question that all contestants ask, counted."""

    def __init__(self, question: Question, seconds: float) -> None:
        """There are so many seconds from now on."""
        self.question = question
        self.until = time.monotonic() + seconds
        self.tries = 0

    def case(self, case: Case) -> bool:
        """Tell whether a case shows the finding. Raises ServerError."""
        self.tries += 1
        return self.question.shows(case)

    def text(self, text: str) -> bool:
        """Tell whether a script does; what cannot be read as one does not. Raises TimeUp, ServerError."""
        if time.monotonic() > self.until:
            raise TimeUp
        try:
            case = parse(text)
        except CaseError:
            self.tries += 1
            return False
        return self.case(case)


class Contestant(ABC):
    """A reducer."""

    name: ClassVar[str]
    program: ClassVar[str] = ""  # that it takes, of Debian's package of that name

    def lacks(self) -> str:
        """Return what is missing for it, and how to get it; nothing where all is there."""
        missing = self.program and shutil.which(self.program) is None
        return f"{self.program} is not installed; apt-get install {self.program}" if missing else ""

    def unfit(self, task: Task) -> str:
        """Return why it cannot be asked to reduce this; nothing where it can."""
        return ""

    @abstractmethod
    def reduce(self, task: Task, asked: Asked) -> Case:
        """Return the smallest case that it finds. Raises PgduelError."""


def all_contestants() -> dict[str, Contestant]:
    """Return name -> contestant, pgduel's own first."""
    found = {each.name: each for each in instances(Contestant, reduction)}  # type: ignore[type-abstract]
    return dict(sorted(found.items(), key=lambda item: (item[0] != "pgduel", item[0])))
