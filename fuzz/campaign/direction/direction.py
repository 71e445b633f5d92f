"""Direction: CPU time of each workload, according to the functions that the arms' patches change.

A function counts as changed if it differs between two trees, or if only one of them has it. `entered.jsonl` has the
shares of the workloads in the calls of each function of PostgreSQL. All patches get equal time. A workload gets a
patch's time in proportion to the square of its mean share of the functions that the patch changes, so that workloads
made for these functions come before those that hardly enter them. In a simulation of the schedule with the cases that
are known to show 83 injected bugs, 51 of them are found earlier than without the square, and 27 later. A patch may also
break code that it does not change. So the share EVEN of the time is distributed as without a direction. The idea is
that of directed fuzzing: Böhme, Pham, Nguyen, Roychoudhury, "Directed Greybox Fuzzing", CCS 2017.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Final, Self

from unidiff.patch import PatchedFile, PatchSet

from fuzz import documents
from fuzz.servers import git
from fuzz.servers.arm import Arm
from fuzz.sources.source import SourceContext
from fuzz.sources.workloads import HOUR, default_workloads, workload_named

Function = tuple[str, str]  # path of the file in the tree, name
Line = tuple[str, int]  # path of the file in the tree, number from 1
_DEFINITION: Final = re.compile(r"^(\w+)\(")  # PostgreSQL's style has the name of a function at the start of a line


def changed_functions(before: str, after: str) -> frozenset[Function]:
    """Return the functions that have a changed line, with their files. Raises SourceError."""
    found: set[Function] = set()
    for file in _compared(before, after):
        removed = [line.source_line_no or 0 for hunk in file for line in hunk if line.is_removed]
        for tree, lines in ((before, removed), (after, _added(file))):
            found.update((file.path, name) for name in functions_at(git.show(tree, file.path) or "", lines))
    return frozenset(found)


def added_lines(before: str, after: str) -> frozenset[Line]:
    """Return the lines of the second tree that the first one lacks. Raises SourceError."""
    return frozenset((file.path, number) for file in _compared(before, after) for number in _added(file))


def _compared(before: str, after: str) -> PatchSet:
    compared = ("diff-tree", "-r", "-p", "-U0", "--no-renames", before, after, "--", "*.c")
    text = git.output("--git-dir", git.repository(), *compared, failing="cannot compare trees")
    return PatchSet(text.decode(errors="replace"))


def _added(file: PatchedFile) -> list[int]:
    return [line.target_line_no or 0 for hunk in file for line in hunk if line.is_added]


def functions_at(source: str, numbers: Iterable[int]) -> Iterator[str]:
    """Yield for each line the name of the function whose definition is the last one at or above it."""
    starts, names = [], []
    for number, line in enumerate(source.split("\n"), start=1):
        if (definition := _DEFINITION.match(line)) and not line.rstrip().endswith(";"):
            starts.append(number)
            names.append(definition[1])
    for number in numbers:
        if at := bisect_right(starts, number):
            yield names[at - 1]


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
    """Workloads with their numbers of cases in an hour of CPU time, and the reasons for these."""

    cases: Mapping[str, int]
    reasons: tuple[str, ...] = ()  # empty: without a direction

    @classmethod
    def of_shares(cls, shares: Mapping[str, float], reasons: tuple[str, ...]) -> Self:
        """Return the direction with these shares of the CPU time."""
        hours = {name: HOUR * share for name, share in shares.items()}
        return cls(
            {name: max(1, round(spent / workload_named(name).cpu_seconds)) for name, spent in hours.items()}, reasons
        )

    @property
    def shares(self) -> dict[str, float]:
        """Return the share of each workload in the CPU time."""
        seconds = {name: cases * workload_named(name).cpu_seconds for name, cases in self.cases.items()}
        total = sum(seconds.values())
        return {name: spent / total for name, spent in seconds.items()}

    def __str__(self) -> str:
        """Return the reasons, and the workloads with the largest shares."""
        return f"{', '.join(self.reasons)}: {_largest(self.shares)} of the CPU time"


def directed_workloads(
    target: SourceContext, patches: Sequence[tuple[str, str]], among: Collection[str] | None = None
) -> tuple[Direction, dict[str, str]]:
    """Return the workloads of a run without options, and the reasons why sources are left out.

    `patches` are the trees before and after each patch that directs. If they change no known function, the direction
    has no reasons, and the cases are those without a direction. If `among` is given, all other workloads have no cases,
    and none counts as left out. Raises ServerError, SourceError.
    """
    cases, left_out = default_workloads(target)
    if among is not None:
        cases, left_out = {name: cases[name] for name in among}, {}
    direction = directed(cases, [changed_functions(*pair) for pair in patches], read_entered())
    return direction or Direction(cases), left_out


def patches_between(arms: Sequence[Arm]) -> list[tuple[str, str]]:
    """Return the trees before and after each patch of an arm that the first arm lacks."""
    reference, *others = arms
    pairs = dict.fromkeys(pair for arm in others for pair in pairwise(arm.trees))
    return [pair for pair in pairs if pair not in set(pairwise(reference.trees))]


def directed(cases: Mapping[str, int], changes: Sequence[Collection[Function]], entered: Entered) -> Direction | None:
    """Return the direction for the functions that each patch changes, or None if no workload is known to enter one."""
    parts = [_part(known) for functions in changes if (known := entered.of(functions))]
    measured = {name: score for name, score in zip(entered.workloads, _mean(parts), strict=False) if name in cases}
    if not any(measured.values()):
        return None
    seconds = {name: workload_named(name).cpu_seconds for name in cases}
    middle = fmean(measured.values())
    scores = {name: measured.get(name, middle) for name in cases}  # a new workload is not measured yet
    shares = {
        name: EVEN * cases[name] * seconds[name] / HOUR + (1 - EVEN) * scores[name] / sum(scores.values())
        for name in cases
    }
    changed = {each for functions in changes for each in functions}
    return Direction.of_shares(shares, (f"directed by {len(changed)} changed functions",))


def _part(shares: Sequence[Sequence[float]]) -> list[float]:
    """Return each workload's part of a patch's time, from the workloads' shares of the functions that it changes."""
    squares = [share**2 for share in _mean(shares)]
    total = sum(squares)
    return [square / total for square in squares]


def _mean(rows: Sequence[Sequence[float]]) -> list[float]:
    """Return the mean of each column."""
    return [fmean(column) for column in zip(*rows, strict=True)]


def _largest(shares: Mapping[str, float]) -> str:
    ordered = sorted(shares, key=lambda name: (-shares[name], name))
    named = [f"{name} {shares[name]:.0%}" for name in ordered[:_SHOWN]]
    return ", ".join([*named, f"others {sum(shares[name] for name in ordered[_SHOWN:]):.0%}"])
