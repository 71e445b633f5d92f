"""Runs of a native harness, which fuzz for a number of seconds or replay a corpus, and their coverage."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fuzz.engines.libfuzzer.coverage import FunctionCoverage, function_coverage
from fuzz.errors import CaseError, last_line
from fuzz.servers.account import server_account

_EXECUTED = re.compile(r"^stat::number_of_executed_units:\s*(\d+)", re.MULTILINE)
_COMPLAINT = re.compile(r"^(?:pgduel harness: |.*runtime error: |==\d+== ?ERROR: )(.+)$", re.MULTILINE)
_ARTIFACT = re.compile(r"Test unit written to (.+)$", re.MULTILINE)
# maximum length of an input in bytes: about 120 operations
_LONGEST = 400
# seconds after the requested ones until a run counts as hung
_GRACE = 120


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
