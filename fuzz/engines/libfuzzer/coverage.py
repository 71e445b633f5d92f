"""What a run of a harness reached, per function and per branch, from clang's source-based coverage."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_PROFDATA = "llvm-profdata-19"
_COV = "llvm-cov-19"


@dataclass(frozen=True, slots=True)
class FunctionCoverage:
    """How often a function was called, and how often each of its conditions, by source text, was (true, false)."""

    calls: int
    branches: Mapping[str, tuple[int, int]]


def function_coverage(program: Path, profile: Path) -> dict[str, FunctionCoverage]:
    """Return the coverage of all functions of a program, by name, from the raw profile that it wrote."""
    indexed = profile.with_suffix(".indexed")
    _tool(_PROFDATA, "merge", "-sparse", profile, "-o", indexed)
    exported = json.loads(_tool(_COV, "export", program, f"-instr-profile={indexed}", "-skip-expansions"))
    return {
        function["name"].rpartition(":")[2]: FunctionCoverage(function["count"], _branches(function))
        for function in exported["data"][0]["functions"]
    }


def _branches(function: dict[str, Any]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for line, column, end_line, end_column, taken, not_taken, file, *_ in function["branches"]:
        text = _text(Path(function["filenames"][file]), line, column, end_line, end_column)
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
    return tuple(source.read_text().splitlines())


def _tool(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
