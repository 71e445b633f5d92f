"""Reducers of a finding's case, and the size of their results. One file per reducer; `all_reducers` finds them.

A size has measures that suit all reducers and ignore a script's comments.
"""

import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pglast import ast

from fuzz.bench import reduction
from fuzz.errors import CaseError
from fuzz.servers.arm import Arm
from fuzz.triage.findings import StoredFinding
from fuzz.triage.interestingness import InterestingnessTest
from fuzz.triage.reduction.problem import TimeUp
from fuzz.triage.reduction.trees import parts_of
from fuzz.triage.reproducer.reproducer import parse
from oracles.model.case import Case
from oracles.model.discovery import instances
from oracles.model.mode import settings_of


@dataclass(frozen=True, slots=True)
class Task:
    """A finding, the script of its original case, and running arms."""

    found: StoredFinding
    script: str
    arms: Sequence[Arm]


class CountedTest:
    """The interestingness test of all reducers, with its number of tries and the sizes of cases that passed it."""

    def __init__(self, interestingness: InterestingnessTest, seconds: float) -> None:
        """Create a test that ends in `seconds` from now."""
        self.interestingness = interestingness
        self._began = time.monotonic()
        self.until = self._began + seconds
        self.tries = 0
        self.progress: list[tuple[float, int]] = []  # (seconds from the start, characters)

    def case(self, case: Case) -> bool:
        """Return whether a case shows the finding. Raises ServerError."""
        self.tries += 1
        shows = self.interestingness.shows(case)
        if shows:
            self._note(_characters_of(case))
        return shows

    def _note(self, characters: int) -> None:
        if not self.progress or characters < self.progress[-1][1]:
            self.progress.append((time.monotonic() - self._began, characters))

    def provisional(self, case: Case) -> bool:
        """Return whether a case shows the finding provisionally, in fewer runs. Raises ServerError."""
        self.tries += 1
        return self.interestingness.shows_symptom(case)

    def text(self, text: str) -> bool:
        """Return whether a script shows the finding; unreadable scripts do not. Raises TimeUp, ServerError."""
        if time.monotonic() > self.until:
            raise TimeUp
        try:
            case = parse(text)
        except CaseError:
            self.tries += 1
            return False
        return self.case(case)


class Reducer(ABC):
    """A reducer."""

    name: ClassVar[str]
    program: ClassVar[str] = ""  # required program, from Debian's package of the same name

    def lacks(self) -> str:
        """Return the missing requirement and its remedy, or an empty string."""
        missing = self.program and shutil.which(self.program) is None
        return f"{self.program} is not installed; apt-get install {self.program}" if missing else ""

    def unfit(self, task: Task) -> str:
        """Return the reason why it cannot reduce this finding, or an empty string."""
        return ""

    @abstractmethod
    def reduce(self, task: Task, test: CountedTest) -> Case:
        """Return the smallest case that was found. Raises PgduelError."""


def all_reducers() -> dict[str, Reducer]:
    """Return name -> reducer, pgduel's own first."""
    found = {each.name: each for each in instances(Reducer, reduction)}  # type: ignore[type-abstract]
    return dict(sorted(found.items(), key=lambda item: (item[0] != "pgduel", item[0])))


@dataclass(frozen=True, slots=True)
class Size:
    """Statements, including settings; their characters, with data and parameters; nodes of their syntax trees.

    `alone` is the number of characters of the statement that shows the finding.
    """

    statements: int
    characters: int
    nodes: int
    alone: int


def size_of(case: Case, step: int | None) -> Size:
    """Return the size of a case. `step` is the step that shows the finding, if it is a single one."""
    statements = _statements(case)
    return Size(
        len(statements),
        _characters_of(case),
        sum(map(_nodes, statements)),
        0 if step is None else len(case.all_steps[step].sql),
    )


def _characters_of(case: Case) -> int:
    """Return the number of characters of a case's statements, with data and parameters."""
    data = sum(len(each.copy_data or b"") + sum(len(value or "") for value in each.params) for each in case.all_steps)
    return sum(map(len, _statements(case))) + data


def _statements(case: Case) -> list[str]:
    settings = [f"SET {name} = '{value}'" for name, value in settings_of(case.modes).items()]
    return [*settings, *(each.sql for each in case.all_steps)]


def _nodes(sql: str) -> int:
    """Count the nodes of a statement's syntax tree, plus one for the statement itself, even without a tree."""
    return 1 + sum(isinstance(part, ast.Node) for _, part in parts_of(sql))
