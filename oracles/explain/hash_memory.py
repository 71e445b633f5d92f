"""Hash memory: the limit of a statement, and variations of a run with a somewhat higher limit."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from oracles.model.case import Case, Kind
from oracles.model.mode import Mode

DEFAULT_WORK_MEM: Final = "4MB"  # EXPLAIN (SETTINGS) omits settings with their built-in value
_DEFAULT_MULTIPLIER: Final = "2"
_UNITS: Final = {"kB": 1, "MB": 1024, "GB": 1024**2, "TB": 1024**3}
_SETS_WORK_MEM: Final = re.compile(r"\s*((?i:SET (?:LOCAL |SESSION )?work_mem)) *(?:=|(?i:TO)) *'?(\d+)([kMGT]B)'?\s*")


@dataclass(frozen=True, slots=True)
class Variation:
    """A variation of a run: additional modes, replacement statements by position, or a repetition."""

    modes: tuple[Mode, ...] = ()
    instead: tuple[tuple[int, str], ...] = ()
    repetition: int = 0


def allowance(settings: Mapping[str, str]) -> float:
    """Return the memory limit of a hash table in kB under these settings, as EXPLAIN (SETTINGS) reports them."""
    multiplier = float(settings.get("hash_mem_multiplier", _DEFAULT_MULTIPLIER))
    return kilobytes(settings.get("work_mem", DEFAULT_WORK_MEM)) * multiplier


def kilobytes(setting: str) -> int:
    """Return the kB of an amount of memory in the server's format, such as 4MB."""
    return int(setting[:-2]) * _UNITS[setting[-2:]]


def with_work_mem(case: Case, work_mem: int, factor: float) -> Variation:
    """Return the variation with `factor` times the work_mem (kB) of the session and of SET statements in the case."""
    mode = Mode(f"work_mem * {factor}", (("work_mem", f"{int(work_mem * factor)}kB"),))
    instead = (
        (position, f"{found[1]} = '{int(kilobytes(found[2] + found[3]) * factor)}kB'")
        for position, step in enumerate(case.all_steps)
        if step.kind is Kind.COMMAND and (found := _SETS_WORK_MEM.fullmatch(step.sql))
    )
    return Variation((mode,), tuple(instead))
