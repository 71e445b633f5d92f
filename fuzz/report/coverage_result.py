"""A measurement of coverage, as `pgduel coverage --json` writes it, and as tables."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import chain, pairwise
from pathlib import Path, PurePath
from typing import Any, Self

from rich.table import Table

from fuzz.documents import DocumentError, from_data, to_data
from fuzz.errors import CaseError
from fuzz.report.console import Console
from fuzz.servers.coverage import Covered, FileCoverage, PatchCoverage, together, total


class Reach(StrEnum):
    """The part of a line that a measurement reached."""

    REACHED = "reached"
    SOME_BRANCHES = "reached, but not all branches"
    NOT_REACHED = "not reached"
    INTERNAL_ERROR = "internal error"  # has code, but is left out of all figures
    NO_CODE = "no code"


@dataclass(frozen=True, slots=True)
class LineCounts:
    """The executions of a line with code, and of its branches, which come in pairs: true, false."""

    executions: int
    branches: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Check that branches are in pairs. Raises ValueError."""
        if len(self.branches) % 2:
            raise ValueError(f"{len(self.branches)} branches are not pairs")

    @property
    def reach(self) -> Reach:
        """Return the part that was reached."""
        if not self.executions:
            return Reach.NOT_REACHED
        return Reach.SOME_BRANCHES if 0 in self.branches else Reach.REACHED

    @property
    def branches_reached(self) -> int:
        """Return the number of branches that were reached."""
        return sum(map(bool, self.branches))

    @property
    def covered(self) -> Covered:
        """Return the numbers of this line and its branches."""
        return Covered(1, int(self.executions > 0), len(self.branches), self.branches_reached)

    def plus(self, other: Self) -> Self:
        """Return the sums of two measurements of one build. Raises ValueError if the branches are different ones."""
        branches = zip(self.branches, other.branches, strict=True)
        return type(self)(self.executions + other.executions, tuple(one + more for one, more in branches))


@dataclass(frozen=True, slots=True)
class AddedLine:
    """A line that a patch adds or changes, and its executions by the cases and by PostgreSQL's own suites."""

    line: int
    text: str
    cases: LineCounts | None  # None: the line has no code, or is left out
    suites: LineCounts | None = None  # None as well without suites
    internal_error: bool = False

    def __post_init__(self) -> None:
        """Check that both measurements have the same branches. Raises ValueError."""
        if self.suites is not None:
            if self.cases is None:
                raise ValueError(f"line {self.line} has code for suites only")
            self.cases.plus(self.suites)

    @property
    def reach(self) -> Reach:
        """Return the part that the cases reached."""
        if self.cases is None:
            return Reach.INTERNAL_ERROR if self.internal_error else Reach.NO_CODE
        return self.cases.reach

    @property
    def only_suites(self) -> bool:
        """Return whether suites reach the line, but no case does."""
        return self.reach is Reach.NOT_REACHED and self.suites is not None and self.suites.executions > 0

    @property
    def with_suites(self) -> LineCounts | None:
        """Return the executions by cases and suites together."""
        return self.cases if self.cases is None or self.suites is None else self.cases.plus(self.suites)


@dataclass(frozen=True, slots=True)
class AddedLines:
    """Lines that a patch adds or changes, in one file or in all."""

    added: tuple[AddedLine, ...]

    @property
    def covered(self) -> Covered:
        """Return the numbers of lines and branches that the cases reach."""
        return total(each.cases.covered for each in self.added if each.cases is not None)

    @property
    def covered_with_suites(self) -> Covered:
        """Return the numbers of lines and branches that cases or suites reach."""
        return total(counts.covered for each in self.added if (counts := each.with_suites) is not None)

    @property
    def only_suites(self) -> int:
        """Return the number of lines that only suites reach."""
        return sum(each.only_suites for each in self.added)

    @property
    def complete(self) -> bool:
        """Return whether the cases reach all lines and branches."""
        return not {Reach.NOT_REACHED, Reach.SOME_BRANCHES} & {each.reach for each in self.added}


@dataclass(frozen=True, slots=True)
class MeasuredPatch:
    """The lines by file that a patch adds or changes, and no later patch of the series changes."""

    patch: str
    files: dict[str, AddedLines]

    @property
    def whole(self) -> AddedLines:
        """Return the lines of all files."""
        return AddedLines(tuple(chain.from_iterable(each.added for each in self.files.values())))


@dataclass(frozen=True, slots=True)
class CoverageResult:
    """The coverage of each patch of the last arm of a campaign."""

    arms: dict[str, Any]
    seed: int
    cases: int
    patches: tuple[MeasuredPatch, ...]

    @property
    def arm(self) -> str:
        """Return the name of the measured arm."""
        return list(self.arms)[-1]

    @property
    def with_suites(self) -> bool:
        """Return whether PostgreSQL's own suites were measured, too."""
        return any(line.suites is not None for patch in self.patches for line in patch.whole.added)


def read_coverage(file: Path) -> CoverageResult:
    """Return the measurement in a file. Raises CaseError."""
    try:
        result = from_data(json.loads(file.read_text(encoding="utf-8")), CoverageResult)
        if not (result.arms and result.patches):
            raise ValueError("it has no patches")
    except (OSError, ValueError, DocumentError) as error:
        right = "give --coverage a file of pgduel coverage --series --json"
        raise CaseError(f"{file} cannot be read ({error}); {right}") from error
    return result


def print_files(console: Console, files: Mapping[str, FileCoverage], suites: Mapping[str, FileCoverage]) -> None:
    """Print a line for each file, then the functions that no statement entered, and lines that only suites reached.

    `suites` has the same files as PostgreSQL's own suites reach them, or none.
    """
    table = _table("file")
    titles = ("functions", "left out", *(("suites: lines", "suites: branches") if suites else ()))
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    for file, found in files.items():
        entered = _share(len(found.functions) - len(found.not_entered), len(found.functions))
        by_suites = _cells(suites[file].covered) if suites else ()
        table.add_row(PurePath(file).name, *_cells(found.covered), entered, str(len(found.left_out)), *by_suites)
    console.print_whole(table)
    for file, found in files.items():
        if found.not_entered:
            console.say(f"{PurePath(file).name}, functions not entered: {', '.join(found.not_entered)}")
        if suites and (missed := suites[file].lines_reached & set(found.lines_not_reached(found.lines))):
            console.say(f"{PurePath(file).name}, lines that only the suites reached: {ranges(missed)}")


def print_patches(
    console: Console, patches: Sequence[tuple[str, PatchCoverage]], suites: Sequence[PatchCoverage]
) -> None:
    """Print a line for each patch, then its lines that were not reached, or not in all branches.

    `suites` has the same patches as PostgreSQL's own suites reach them, or none. What either reaches is reached.
    """
    table = _table("patch")
    for title in ("with suites: lines", "branches") if suites else ():
        table.add_column(title, justify="right", no_wrap=True)
    names = [name for name, _ in patches]
    reached = [each for _, each in patches]
    whole = list(map(together, reached, suites)) if suites else reached
    for name, each, with_suites in zip(names, reached, whole, strict=True):
        table.add_row(name, *_cells(each.covered), *(_cells(with_suites.covered) if suites else ()))
    console.print_whole(table)
    for name, each in zip(names, whole, strict=True):
        console.say(name)
        for file, lines in each.lines.items():
            _print_missed(console, file, each.files[file], lines)


def _print_missed(console: Console, file: str, found: FileCoverage, lines: Iterable[int]) -> None:
    if missed := found.lines_not_reached(lines):
        console.say(f"  {file}, lines not reached: {ranges(missed)}")
    if missed := found.branches_not_reached(lines):
        console.say(f"  {file}, reached lines with a branch that was not: {ranges(missed)}")


def _table(first: str) -> Table:
    table = Table()
    table.add_column(first, no_wrap=True)
    for title in ("lines", "branches"):
        table.add_column(title, justify="right", no_wrap=True)
    return table


def _cells(covered: Covered) -> tuple[str, str]:
    return (
        _share(covered.lines_reached, covered.lines),
        _share(covered.branches_reached, covered.branches),
    )


def _share(reached: int, total: int) -> str:
    return f"{reached} of {total}, {reached / total:6.1%}" if total else "none"


def ranges(numbers: Iterable[int]) -> str:
    """Return numbers as text, with consecutive ones as a range: 3, 5-7."""
    ordered = sorted(numbers)
    starts = [right for left, right in pairwise([-1, *ordered]) if right != left + 1]
    ends = [left for left, right in pairwise([*ordered, -1]) if right != left + 1]
    return ", ".join(f"{start}" if start == end else f"{start}-{end}" for start, end in zip(starts, ends, strict=True))


def file_json(found: FileCoverage) -> dict[str, Any]:
    """Return the data of a file for `--json`. Lines with an unreached branch are reached themselves."""
    return asdict(found.covered) | {
        "lines_left_out": len(found.left_out),
        "functions": len(found.functions),
        "functions_not_entered": found.not_entered,
        "lines_not_reached": found.lines_not_reached(found.lines),
        "lines_with_branch_not_reached": found.branches_not_reached(found.branches),
    }


def patch_json(each: PatchCoverage) -> dict[str, Any]:
    """Return the data of a patch for `--json`: of each file the lines with code, reached or not."""
    return asdict(each.covered) | {"files": {file: _owned(each.files[file], each.lines[file]) for file in each.lines}}


def _owned(found: FileCoverage, lines: Iterable[int]) -> dict[str, Any]:
    return {
        "lines_reached": sorted(line for line in lines if found.lines.get(line)),
        "lines_not_reached": found.lines_not_reached(lines),
        "lines_with_branch_not_reached": found.branches_not_reached(lines),
    }


def annotated_json(each: PatchCoverage, suites: PatchCoverage | None) -> dict[str, Any]:
    """Return the data of a patch for `--json`, with the texts and executions of all of its lines.

    `suites` has the same patch as PostgreSQL's own suites reach it, if they ran.
    """
    data = patch_json(each)
    files = {file: found | {"added": to_data(_added(each, suites, file))} for file, found in data["files"].items()}
    return data | {"files": files}


def _added(each: PatchCoverage, suites: PatchCoverage | None, file: str) -> list[AddedLine]:
    found = each.files[file]
    return [
        AddedLine(
            line,
            text,
            cases=_counts(found, line),
            suites=None if suites is None else _counts(suites.files[file], line),
            internal_error=line in found.left_out,
        )
        for line, text in each.lines[file].items()
    ]


def _counts(found: FileCoverage, line: int) -> LineCounts | None:
    if line not in found.lines:
        return None
    return LineCounts(found.lines[line], tuple(found.branches.get(line, ())))
