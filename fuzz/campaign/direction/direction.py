"""Direction: CPU time of each workload, according to the functions that the arms' patches change.

`entered.jsonl` has the shares of the workloads in the calls of each function of PostgreSQL. All patches get equal time.
A workload gets a patch's time in proportion to its mean share of the functions that the patch changes. EVEN of the time
stays as it is without a direction, because a patch may break what it does not change. The idea is that of directed
fuzzing: Böhme, Pham, Nguyen, Roychoudhury, "Directed Greybox Fuzzing", CCS 2017.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Final

from fuzz import documents
from fuzz.servers.arm import Arm
from fuzz.servers.changed_functions import Function, changed_functions
from fuzz.sources.context import SourceContext
from fuzz.sources.workloads import HOUR, default_workloads, workload_named

ENTERED: Final = Path(__file__).with_name("entered.jsonl")
EVEN: Final = 0.3  # of the CPU time
_SHOWN: Final = 5  # workloads


@dataclass(frozen=True, slots=True)
class Entered:
    """Shares of workloads in the calls of each function, in percent, in the order of `workloads`, by file and name.

    Functions that all workloads call about equally often are left out.
    """

    workloads: tuple[str, ...]
    shares: Mapping[str, Mapping[str, tuple[int, ...]]]

    def of(self, functions: Collection[Function]) -> list[tuple[int, ...]]:
        """Return the shares of those of the functions that are known."""
        return [found for file, name in sorted(functions) if (found := self.shares.get(file, {}).get(name))]


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of the shipped table: the functions of a file, or in the first line the workloads."""

    file: str = ""
    functions: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    workloads: tuple[str, ...] = ()


def read_entered() -> Entered:
    """Return the shipped table."""
    head, *rows = (documents.loads(line, _Row) for line in ENTERED.read_text().splitlines())
    return Entered(head.workloads, {row.file: row.functions for row in rows})


def write_entered(entered: Entered) -> None:
    """Replace the shipped table."""
    rows = [_Row(workloads=entered.workloads), *(_Row(file, found) for file, found in sorted(entered.shares.items()))]
    ENTERED.write_text("".join(f"{json.dumps(documents.to_changes(row))}\n" for row in rows))


@dataclass(frozen=True, slots=True)
class Direction:
    """Workloads with their numbers of cases in an hour of CPU time, and the reason for these."""

    cases: Mapping[str, int]
    reason: str  # empty: without a direction


def directed_workloads(target: SourceContext, patches: Sequence[tuple[str, str]]) -> tuple[Direction, dict[str, str]]:
    """Return the workloads of a run without options, and the reasons why sources are left out.

    `patches` are the trees before and after each patch that directs. If they change no known function, the direction
    has no reason, and the cases are those without a direction. Raises ServerError, SourceError.
    """
    cases, left_out = default_workloads(target)
    direction = directed(cases, [changed_functions(*pair) for pair in patches], read_entered())
    return direction or Direction(cases, ""), left_out


def patches_between(arms: Sequence[Arm]) -> list[tuple[str, str]]:
    """Return the trees before and after each patch of an arm that the first arm lacks."""
    reference, *others = arms
    pairs = dict.fromkeys(pair for arm in others for pair in pairwise(arm.trees))
    return [pair for pair in pairs if pair not in set(pairwise(reference.trees))]


def directed(cases: Mapping[str, int], changes: Sequence[Collection[Function]], entered: Entered) -> Direction | None:
    """Return the direction for the functions that each patch changes, or None if no workload is known to enter one."""
    means = [_mean(known) for functions in changes if (known := entered.of(functions))]
    measured = {name: score for name, score in zip(entered.workloads, _mean(means), strict=False) if name in cases}
    if not any(measured.values()):
        return None
    seconds = {name: workload_named(name).cpu_seconds for name in cases}
    middle = fmean(measured.values())
    scores = {name: measured.get(name, middle) for name in cases}  # a new workload is not measured yet
    shares = {
        name: EVEN * cases[name] * seconds[name] / HOUR + (1 - EVEN) * scores[name] / sum(scores.values())
        for name in cases
    }
    return Direction(
        {name: max(1, round(HOUR * share / seconds[name])) for name, share in shares.items()},
        f"directed by {len({each for functions in changes for each in functions})} changed functions: "
        f"{_largest(shares)}",
    )


def _mean(rows: Sequence[Sequence[float]]) -> list[float]:
    """Return the mean of each column."""
    return [fmean(column) for column in zip(*rows, strict=True)]


def _largest(shares: Mapping[str, float]) -> str:
    ordered = sorted(shares, key=lambda name: (-shares[name], name))
    named = [f"{name} {shares[name]:.0%}" for name in ordered[:_SHOWN]]
    return ", ".join([*named, f"others {sum(shares[name] for name in ordered[_SHOWN:]):.0%} of the CPU time"])
