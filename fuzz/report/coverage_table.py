"""The tables of a measurement of coverage, for people and for programs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import PurePath
from typing import Any

from rich.table import Table

from fuzz.report.console import Console
from fuzz.servers.coverage import Covered, FileCoverage, PatchCoverage, together


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
        table.add_row(PurePath(file).name, *_cells(found.covered), entered, str(found.left_out), *by_suites)
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
        "lines_left_out": found.left_out,
        "functions": len(found.functions),
        "functions_not_entered": found.not_entered,
        "lines_not_reached": found.lines_not_reached(found.lines),
        "lines_with_branch_not_reached": found.branches_not_reached(found.branches),
    }


def patch_json(each: PatchCoverage) -> dict[str, Any]:
    """Return the data of a patch for `--json`: of each file the lines with code, reached or not."""
    return asdict(each.covered) | {"files": {file: _owned(each, file) for file in each.lines}}


def _owned(each: PatchCoverage, file: str) -> dict[str, Any]:
    found, lines = each.files[file], each.lines[file]
    return {
        "lines_reached": sorted(line for line in lines if found.lines.get(line)),
        "lines_not_reached": found.lines_not_reached(lines),
        "lines_with_branch_not_reached": found.branches_not_reached(lines),
    }
