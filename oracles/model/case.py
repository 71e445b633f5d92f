"""Case: a scene (schema and data) and the steps that run in it.

Its content is a function of generator, seed and index. A case of a source also depends on the source's database.
"""

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from oracles.model.mode import Mode

_PARAMETER: Final = re.compile(r"\$(\d+)")


class Kind(StrEnum):
    """Kinds of steps that are executed differently."""

    QUERY = "query"  # reads only, so it may be repeated, explained, and sent over any protocol
    COMMAND = "command"  # any other single statement; always the simple protocol
    COPY_IN = "copy_in"  # COPY ... FROM STDIN; the client sends `copy_data`
    COPY_OUT = "copy_out"  # COPY ... TO STDOUT


class SameRows(StrEnum):
    """Why a query must have the rows of the step before it, according to another fuzzer or a generator."""

    BY_MEANING = "by meaning"  # for any contents of the tables
    BY_CONTENT = "by content"  # because of the contents of tables
    BY_TRIGGERS = "by triggers"  # two logs of changed rows, for any changes: of row triggers and of statement triggers


@dataclass(frozen=True, slots=True)
class Step:
    """One statement.

    It runs in the schema `duel`, which is the first in search_path and is dropped after the case.
    """

    sql: str  # one statement, without the closing semicolon
    kind: Kind = Kind.COMMAND
    copy_data: bytes | None = None
    params: tuple[str | None, ...] = ()  # text form of $1, $2 ... of a QUERY; parameters require the extended protocol
    ordered: bool = False  # the query has a total order, so its rows are compared in order
    may_fail: bool = False  # an error is expected here, or follows from an expected one
    tags: tuple[str, ...] = ()  # workload paths that this step should exercise; counted in the display
    same_rows: SameRows | None = None  # a report about this query and the step before

    def used_parameters(self, sql: str) -> list[int]:
        """Return the numbers of the step's parameters that a statement uses, in ascending order."""
        return sorted({int(number) for number in _PARAMETER.findall(sql)} & set(range(1, len(self.params) + 1)))

    def with_statement(self, sql: str) -> "Step":
        """Return the step with another statement, and only with the parameters that this one uses.

        They are numbered anew, because the server cannot infer the types of unused ones.
        """
        used = self.used_parameters(sql)
        numbers = {str(old): f"${new}" for new, old in enumerate(used, start=1)}
        renumbered = _PARAMETER.sub(lambda found: numbers.get(found[1], found[0]), sql)
        return replace(self, sql=renumbered, params=tuple(self.params[number - 1] for number in used))


@dataclass(frozen=True, slots=True)
class Case:
    """A scene and its steps, run in one session per arm, under `modes`."""

    generator: str
    scene: tuple[Step, ...]
    steps: tuple[Step, ...]
    modes: tuple[Mode, ...] = ()
    part: str = ""  # name of the source's item that the case replays as a whole, such as a regression test
    samples: tuple[str, ...] = ()  # names of the oracles' samples that contain it, independent of its content
    sampled_by_content: bool = True  # False: it is in no other sample

    @property
    def all_steps(self) -> tuple[Step, ...]:
        """Return scene and steps, as executed. Positions in observations and findings are indexes of this tuple."""
        return self.scene + self.steps


@dataclass(frozen=True, slots=True)
class CaseId:
    """Identity of a case. `str()` of it is the seed of the case's random generator."""

    seed: int
    generator: str
    index: int

    def __str__(self) -> str:
        return f"{self.seed}/{self.generator}/{self.index}"


def generator_of(name: str) -> str:
    """Return the generator in the name of a case, such as `1/outer_joins/7`, or "" if the name has none."""
    parts = name.split("/")
    return parts[1] if len(parts) == 3 else ""
