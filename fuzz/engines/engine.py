"""Engines: who makes the random choices of a campaign's cases."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from oracles.model.case import Case, CaseId
from oracles.model.oracle import Observations


class EngineName(StrEnum):
    """The engines of campaigns."""

    SEEDED = "seeded"  # a plain seed
    LIBFUZZER = "libfuzzer"  # libFuzzer, steered by the edges that cases reach


@dataclass(frozen=True, slots=True)
class DrawnCase:
    """A case, and the name by which `pgduel replay` generates it again."""

    name: str
    case: Case
    record: Callable[[], None] = lambda: None  # stores what the name stands for, before a finding or doubt names it
    # Runs of the engine itself, which are to be judged if those of the oracles show nothing
    conspicuous: Observations = field(default_factory=dict)


class Engine(Protocol):
    """The engine of one worker. After `draw`, `conclude` must be called before the next one."""

    def draw(self, case_id: CaseId) -> DrawnCase | None:
        """Return the case at a place of the schedule, or None if it was executed and is not to be judged.

        Raises the errors of generators and sources.
        """

    def conclude(self, *, executed: bool) -> None:
        """End a case. An engine learns from those that were executed completely and in time."""

    def close(self) -> None:
        """End the engine."""
