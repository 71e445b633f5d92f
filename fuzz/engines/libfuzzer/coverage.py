"""Coverage of a harness run, per function and per branch, from clang's source-based coverage."""

import json
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from fuzz.servers.account import server_account

_PROFDATA = "llvm-profdata-19"
_COV = "llvm-cov-19"


@dataclass(frozen=True, slots=True)
class FunctionCoverage:
    """Coverage of a function: number of calls, and how often each condition (by source text) was true and false."""

    calls: int
    branches: Mapping[str, tuple[int, int]]


def function_coverage(program: Path, profile: Path) -> dict[str, FunctionCoverage]:
    """Return the coverage of all functions of a program, by name, from the raw profile that it wrote.

    A function in a header has one entry per including file; these are added up.
    """
    indexed = profile.with_suffix(".indexed")
    _tool(_PROFDATA, "merge", "-sparse", profile, "-o", indexed)
    home = f"-compilation-dir={program.parent}"  # file names are relative to it
    exported = json.loads(_tool(_COV, "export", program, f"-instr-profile={indexed}", "-skip-expansions", home))
    covered: dict[str, FunctionCoverage] = {}
    for function in exported["data"][0]["functions"]:
        name = function["name"].rpartition(":")[2]
        covered[name] = _together(covered.get(name), FunctionCoverage(function["count"], _branches(function)))
    return covered


def _together(one: FunctionCoverage | None, other: FunctionCoverage) -> FunctionCoverage:
    if one is None:
        return other
    return FunctionCoverage(one.calls + other.calls, _summed(chain(one.branches.items(), other.branches.items())))


def _branches(function: dict[str, Any]) -> dict[str, tuple[int, int]]:
    return _summed(
        (_text(Path(function["filenames"][file]), line, column, end_line, end_column), (taken, not_taken))
        for line, column, end_line, end_column, taken, not_taken, file, *_ in function["branches"]
    )


def _summed(branches: Iterable[tuple[str, tuple[int, int]]]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for text, (taken, not_taken) in branches:
        before = found.get(text, (0, 0))
        found[text] = (before[0] + taken, before[1] + not_taken)
    return found


def _text(source: Path, line: int, column: int, end_line: int, end_column: int) -> str:
    lines = list(_lines(source)[line - 1 : end_line])
    lines[-1] = lines[-1][: end_column - 1]
    lines[0] = lines[0][column - 1 :]
    return " ".join(" ".join(lines).split())


@cache
def _lines(source: Path) -> tuple[str, ...]:
    # The program determines the file name, so the file is read with the account's rights.
    with server_account().file_access():
        return tuple(source.read_text().splitlines())


def _tool(*command: str | Path) -> str:
    account = server_account()  # these tools read files that a patched program wrote
    return subprocess.run(command, capture_output=True, text=True, check=True, **account.options()).stdout
