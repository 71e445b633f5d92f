"""Runs of a native harness, which fuzz for a number of seconds or replay a corpus, and their coverage.

Coverage is that of clang, per function and per branch.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from fuzz.errors import CaseError, last_line
from fuzz.servers.account import server_account

_EXECUTED = re.compile(r"^stat::number_of_executed_units:\s*(\d+)", re.MULTILINE)
_COMPLAINT = re.compile(r"^(?:pgduel harness: |.*runtime error: |==\d+== ?ERROR: )(.+)$", re.MULTILINE)
_ARTIFACT = re.compile(r"Test unit written to (.+)$", re.MULTILINE)
# maximum length of an input in bytes: about 120 operations
_LONGEST = 400
# seconds after the requested ones until a run counts as hung
_GRACE = 120
_PROFDATA = "llvm-profdata-19"
_COV = "llvm-cov-19"


@dataclass(frozen=True, slots=True)
class FunctionCoverage:
    """Coverage of a function: number of calls, and how often each condition (by source text) was true and false."""

    calls: int
    branches: Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class HarnessRun:
    """The result of a run, which ends at the first crash.

    Without one, `functions` has the coverage by function name.
    """

    executions: int
    crash: Path | None = None  # the input, kept next to the harness
    complaint: str = ""  # first line about the crash, of the harness or a sanitizer
    functions: Mapping[str, FunctionCoverage] = field(default_factory=dict)


def run_harness(
    harness: Path, seconds: int, corpus: Path, *, seed: int = 1, variables: Mapping[str, str] | None = None
) -> HarnessRun:
    """Fuzz for `seconds` with the rights of the servers' account, starting from a corpus, which is not modified.

    With 0 seconds, the corpus is only replayed. Raises CaseError if the run ends neither normally nor by a crash.
    """
    account = server_account()
    artifacts = harness.parent / "crashes"
    if not artifacts.exists():
        account.make_private(artifacts)
    with tempfile.TemporaryDirectory(prefix="pgduel-harness-") as scratch:
        account.lend(Path(scratch))
        written = account.make_private(Path(scratch) / "written")
        profile, found = written / "profile", account.make_private(written / "found")
        # A copy with other permissions, because the account may have no access to the original.
        known = Path(scratch) / "corpus"
        shutil.copytree(corpus, known, copy_function=shutil.copyfile)
        known.chmod(0o755)
        limit = ["-runs=0"] if seconds == 0 else [f"-max_total_time={seconds}"]
        done = subprocess.run(
            [
                harness, *limit, f"-seed={seed}", f"-max_len={_LONGEST}", "-len_control=0", "-timeout=60",
                "-print_final_stats=1", "-verbosity=0", f"-artifact_prefix={artifacts}/", found, known,
            ],
            env=os.environ | {"LLVM_PROFILE_FILE": str(profile)} | dict(variables or {}),
            capture_output=True,
            timeout=seconds + _GRACE,
            **account.options(),
        )  # fmt: skip
        return _result(harness, done.returncode, done.stderr.decode(errors="replace"), profile)


def _result(harness: Path, returncode: int, output: str, profile: Path) -> HarnessRun:
    executed = _EXECUTED.search(output)
    executions = int(executed[1]) if executed else 0
    complaint = _COMPLAINT.search(output)
    if artifact := _ARTIFACT.search(output):
        return HarnessRun(executions, Path(artifact[1]), complaint[1] if complaint else "")
    if returncode or not executed:
        reason = complaint[1] if complaint else last_line(output, "no output")
        raise CaseError(f"harness {harness} ended with {returncode}: {reason}")
    return HarnessRun(executions, functions=function_coverage(harness, profile))


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
