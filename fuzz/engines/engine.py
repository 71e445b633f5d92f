"""Engines: sources of the random choices of a campaign's cases."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from oracles.model.case import Case, CaseId


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
    # Called after each trial of the case: returns whether the case is judged even if the trial was not conspicuous.
    # None: the case is judged without a trial.
    is_new: Callable[[], bool] | None = None


class Engine(Protocol):
    """The engine of one worker. After `draw`, `conclude` must be called before the next one."""

    def draw(self, case_id: CaseId) -> DrawnCase:
        """Return the case at a place of the schedule.

        Raises the errors of generators and sources.
        """

    def conclude(self, *, executed: bool) -> None:
        """End a case. An engine uses the edges of those that were executed completely and in time."""

    def cpu_seconds(self) -> float:
        """Return the CPU seconds of processes of the engine that still run."""

    def close(self) -> None:
        """End the engine."""
