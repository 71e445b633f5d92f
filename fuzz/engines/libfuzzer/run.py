"""Runs of a native harness, which fuzz for a number of seconds or replay a corpus, and their coverage.

Coverage is that of clang, per function and per branch.
"""

import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from fuzz.errors import CaseError, last_line
from fuzz.execution.exchanges import never
from fuzz.servers.account import server_account

_EXECUTED = re.compile(r"^stat::number_of_executed_units:\s*(\d+)", re.MULTILINE)
_REACHED = re.compile(
    r"^#\d+\t(?P<event>\w+) +cov: (?P<edges>\d+) ft: (?P<features>\d+) corp: (?P<inputs>\d+)/", re.MULTILINE
)
_MESSAGE = re.compile(
    r"^(?:(?:pgduel harness: |.*runtime error: |==\d+== ?ERROR: )(.+)|TRAP: (.+), PID: \d+)$", re.MULTILINE
)
_ARTIFACT = re.compile(r"Test unit written to (.+)$", re.MULTILINE)
# maximum length of an input in bytes: about 120 operations
_LONGEST = 400
# seconds after the requested ones, and after those for the corpus, until a run counts as hung
_GRACE = 120
_SLOWEST = 0.5  # seconds for an input on a busy machine: the slowest harness takes 0.05 s of CPU time
INPUT_NAME = re.compile("[0-9a-f]{40}")
_POLLED = 0.5  # seconds between two calls of `stop`
_PROFDATA = "llvm-profdata-19"
_COV = "llvm-cov-19"
_SYMBOLIZER = "llvm-symbolizer-19"
OPTIONS = (
    *(f"-max_len={_LONGEST}", "-len_control=0", "-timeout=60", "-print_final_stats=1", "-print_funcs=0"),
    "-report_slow_units=1000000",  # a slow input is no failure
)


@dataclass(frozen=True, slots=True)
class FunctionCoverage:
    """Coverage of a function: number of calls, and how often each condition (by source text) was true and false."""

    calls: int
    branches: Mapping[str, tuple[int, int]]
    file: str = ""  # relative to the harness; of a function in a header, the header


@dataclass(frozen=True, slots=True)
class Reached:
    """The reach of a corpus: edges, features (edges, with the magnitude of their counts), and the number of inputs."""

    edges: int = 0
    features: int = 0
    inputs: int = 0


@dataclass(frozen=True, slots=True)
class HarnessRun:
    """The result of a run, which ends at the first crash.

    Without one, `functions` has the coverage by function name, unless the run was stopped, or ran in a server.
    """

    executions: int
    crash: Path | None = None  # the input, kept next to the harness or among the artifacts
    message: str = ""  # first line about the crash, of the harness or a sanitizer
    functions: Mapping[str, FunctionCoverage] = field(default_factory=dict)
    output: str = ""  # of libFuzzer
    begun: Reached = Reached()  # before the first change of an input
    ended: Reached = Reached()
    cpu_seconds: float = 0.0

    @property
    def has_read_corpus(self) -> bool:
        """Return whether no input of the corpus failed."""
        return self.begun.inputs > 0


def input_name(data: bytes) -> str:
    """Return the name of an input, as libFuzzer forms it."""
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()


def run_harness(
    harness: Path,
    seconds: float,
    corpus: Path,
    *,
    seed: int = 1,
    variables: Mapping[str, str] | None = None,
    kept: Path | None = None,
    artifacts: Path | None = None,
    stop: Callable[[], bool] = never,
) -> HarnessRun:
    """Fuzz for `seconds` with the rights of the servers' account, starting from a corpus, which is not modified.

    With 0 seconds, the corpus is only replayed. `kept` is a directory of more inputs, where libFuzzer adds new ones at
    once; it writes the input of a crash to `artifacts`. Both belong to the account. The run ends early when `stop`
    returns true. Raises CaseError if it ends neither normally nor by a crash.
    """
    account = server_account()
    if artifacts is None:
        artifacts = harness.parent / "crashes"
        if not artifacts.exists():
            account.make_private(artifacts)
    with tempfile.TemporaryDirectory(prefix="pgduel-harness-") as scratch:
        written = account_directory(Path(scratch))
        profile, found = written / "profile", kept or account.make_private(written / "found")
        known = lent_copy(corpus, Path(scratch) / "corpus")
        limit = "-runs=0" if seconds == 0 else f"-max_total_time={max(1, round(seconds))}"
        options = [limit, f"-seed={seed}", f"-artifact_prefix={artifacts}/", str(found), str(known)]
        environment = {"LLVM_PROFILE_FILE": str(profile)} | dict(variables or {})
        before, limit_of_run = _cpu_seconds(), seconds + reading_time(found, known) + _GRACE
        status, output = libfuzzer(harness, options, environment, limit_of_run, stop)
        return replace(_result(harness, status, output, profile), cpu_seconds=_cpu_seconds() - before)


def reading_time(*directories: Path) -> float:
    """Return seconds that suffice to execute the inputs in some directories. libFuzzer has no limit of time for it."""
    with server_account().file_access():
        return _SLOWEST * sum(len(os.listdir(each)) for each in directories)


def account_directory(scratch: Path) -> Path:
    """Return a directory below a temporary one of the caller, in which the account may write."""
    account = server_account()
    account.lend(scratch)
    return account.make_private(scratch / "written")


def lent_copy(corpus: Path, copy: Path) -> Path:
    """Copy inputs with other permissions, because the account may have no access to the original. Return the copy."""
    if corpus.is_dir():
        shutil.copytree(corpus, copy, copy_function=shutil.copyfile)
    else:
        copy.mkdir()
    copy.chmod(0o755)
    return copy


def libfuzzer(
    harness: Path,
    options: Sequence[str],
    environment: Mapping[str, str] | None = None,
    seconds: float = _GRACE,
    stop: Callable[[], bool] = never,
) -> tuple[int, str]:
    """Run a harness with options of libFuzzer; return its exit status and output.

    If `stop` returns true, it is asked to end as at its limit of time. Its temporary files are deleted. Raises
    CaseError after `seconds`.
    """
    symbolizer = shutil.which(_SYMBOLIZER)
    own = {"ASAN_SYMBOLIZER_PATH": symbolizer, "UBSAN_OPTIONS": "print_stacktrace=1"} if symbolizer else {}
    started, asked = time.monotonic(), False
    with (
        tempfile.TemporaryDirectory(prefix="pgduel-harness-", ignore_cleanup_errors=True) as scratch,
        subprocess.Popen(
            [harness, *OPTIONS, *options],
            env=os.environ | own | {"TMPDIR": str(account_directory(Path(scratch)))} | dict(environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            **(server_account().options() | {"start_new_session": True}),  # Ctrl-C is for the caller
        ) as process,
    ):
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    output = process.communicate(timeout=_POLLED)[1]
                    return process.returncode, output.decode(errors="replace")
                if stop() and not asked:
                    asked = True
                    process.send_signal(signal.SIGUSR1)
                if time.monotonic() > started + seconds:
                    raise CaseError(f"harness {harness} did not end within {seconds:.0f} s")
        except BaseException:
            process.kill()
            raise


def _cpu_seconds() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def _result(harness: Path, returncode: int, output: str, profile: Path) -> HarnessRun:
    executed = _EXECUTED.search(output)
    reached = [(found["event"], _reached(found)) for found in _REACHED.finditer(output)]
    begun = next((each for event, each in reached if event == "INITED"), Reached())
    run = HarnessRun(
        int(executed[1]) if executed else 0,
        message=message_of(output),
        output=output,
        begun=begun,
        ended=reached[-1][1] if reached else begun,
    )
    if artifact := _ARTIFACT.search(output):
        return replace(run, crash=Path(artifact[1]))
    if returncode or not executed:
        reason = run.message or last_line(output, "no output")
        raise CaseError(f"harness {harness} ended with {returncode}: {reason}")
    # A stopped program does not write it, and one in a server's process has none.
    covered = profile.exists() and profile.stat().st_size > 0
    return replace(run, message="", functions=function_coverage(harness, profile) if covered else {})


def message_of(output: str) -> str:
    """Return the first line about a failure, of the harness or a sanitizer; "" without one."""
    found = _MESSAGE.search(output)
    return found[1] or found[2] if found else ""


def _reached(found: re.Match[str]) -> Reached:
    return Reached(*(int(found[name]) for name in ("edges", "features", "inputs")))


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
        file = os.path.relpath(function["filenames"][0], program.parent)
        one = FunctionCoverage(function["count"], _branches(function), file)
        covered[name] = _together(covered.get(name), one)
    return covered


def _together(one: FunctionCoverage | None, other: FunctionCoverage) -> FunctionCoverage:
    if one is None:
        return other
    branches = _summed(chain(one.branches.items(), other.branches.items()))
    return FunctionCoverage(one.calls + other.calls, branches, one.file)


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
