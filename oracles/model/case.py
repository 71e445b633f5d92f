"""Case: a scene (schema and data) and the steps that run in it. Pure content: a function of (generator, seed)."""

from dataclasses import dataclass
from enum import StrEnum

from oracles.model.mode import Mode


class Kind(StrEnum):
    """What a step is, as far as execution has to know."""

    QUERY = "query"  # reads only: may be repeated, explained, run under any protocol
    COMMAND = "command"  # any other single statement; simple protocol
    COPY_IN = "copy_in"  # COPY ... FROM STDIN; `copy_data` is what the client sends
    COPY_OUT = "copy_out"  # COPY ... TO STDOUT


@dataclass(frozen=True, slots=True)
class Step:
    """One statement. It runs in the schema `duel`, which is first in search_path and dropped after the case."""

    sql: str  # one statement, without the closing semicolon
    kind: Kind = Kind.COMMAND
    copy_data: bytes | None = None
    params: tuple[str | None, ...] = ()  # text form of $1, $2 ... of a QUERY; any makes the protocol extended
    ordered: bool = False  # rows come in a total order, so they are compared in order
    may_fail: bool = False  # an error here is made on purpose (or follows from one that was)
    tags: tuple[str, ...] = ()  # workload paths that this step is meant to take, counted in the display


@dataclass(frozen=True, slots=True)
class Case:
    """A scene and the steps to run in it, one session an arm, under `modes`."""

    generator: str
    scene: tuple[Step, ...]
    steps: tuple[Step, ...]
    modes: tuple[Mode, ...] = ()
    part: str = ""  # which of the things that its source replays whole it is

    @property
    def all_steps(self) -> tuple[Step, ...]:
        """Scene and steps, as executed; positions in observations and findings count along this tuple."""
        return self.scene + self.steps


@dataclass(frozen=True, slots=True)
class CaseId:
    """Where a case comes from; `str()` of it is the seed of its random generator."""

    seed: int
    generator: str
    index: int

    def __str__(self) -> str:
        return f"{self.seed}/{self.generator}/{self.index}"
