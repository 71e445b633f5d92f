"""Kept inputs of a harness, with which its next run begins, and the inputs of failures.

libFuzzer writes both at once, so a killed run loses neither. They belong to the account of servers, because a harness
has the code of a patch. The directory above them belongs to the caller.
"""

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from fuzz import workdir
from fuzz.engines.libfuzzer.run import (
    INPUT_NAME,
    account_directory,
    lent_copy,
    libfuzzer,
    message_of,
    reading_time,
)
from fuzz.errors import CaseError, last_line
from fuzz.servers.account import server_account

TRIES: Final = 20  # runs of an input, because threads may hide a failure
MINIMIZATION: Final = 60.0  # seconds
_STEP: Final = 5  # seconds of libFuzzer's search for one smaller input
_MERGE: Final = 600.0  # seconds, in addition to those for the inputs
_CANDIDATES: Final = 5  # smallest inputs of a minimization that are tried
_REPORTED: Final = 20_000  # characters of a failure's report
_FAILED: Final = ("crash-", "leak-", "oom-", "timeout-")  # libFuzzer's prefixes of the inputs of failures
_FRAME: Final = re.compile(r"^ +#\d+ 0x[0-9a-f]+ in (?P<function>\w+) (?P<file>\S+?):(?P<line>\d+)", re.MULTILINE)
_OWN_FILE: Final = re.compile(r"(?:^|/)harness/(?P<file>[\w./-]+)$")
_TREE_FILE: Final = re.compile(r"(?:^|/)(?P<file>(?:src|contrib)/[\w./-]+)$")
_ASSERTION: Final = re.compile(
    r"^failed (?:assertion: (?P<condition>.+), line \d+|Assert\(\"(?P<server>.+)\"\), File: .*)$"
)
_RAISED: Final = re.compile(r"^(?P<what>\w+): .*, raised in (?P<function>\w+), (?P<file>[\w.]+)$")  # by the server
_ASSERTING: Final = "src/backend/utils/error/assert.c"
_FORK: Final = "a process "  # beginnings of messages about a fork (in_process.c)
_SLOW_FORK: Final = f"{_FORK}takes more than "
_VARYING: Final = re.compile(r"[\"(\d]| 0x| on (?:unknown )?address")  # the rest of a message may depend on the input
_OWN: Final = "pgduel harness: "
_BEGINNINGS: Final = (_OWN, "TRAP: ", "ERROR: ", "runtime error: ")  # of reports


@dataclass(frozen=True, slots=True)
class Failure:
    """An input that a harness fails on: a message of the harness or of a sanitizer, a leak, a timeout."""

    origin: str  # the same for all inputs that show one fault
    message: str  # one line
    report: str
    data: bytes


def failure_of(output: str, data: bytes) -> Failure:
    """Return the failure that libFuzzer's output describes."""
    places = [at for word in _BEGINNINGS if (at := output.find(word)) >= 0]
    start = min(places, default=0)
    report = output[output.rfind("\n", 0, start) + 1 :][:_REPORTED]
    message = message_of(output) or last_line(output, "no output")
    return Failure(_origin(output, message), message, report, data)


def _origin(output: str, message: str) -> str:
    """Return the kind of a failure and its place.

    The place of a check is its line in the harness. That of any other message is a function, because a patch moves
    lines.
    """
    if _is_of_limit(message) or message.startswith(_FORK):
        return _VARYING.split(message)[0].strip()  # of a timeout or of too much memory, the place is chance
    function, file, line = _site(output)
    if assertion := _ASSERTION.match(message):
        condition = assertion["condition"] or assertion["server"]
        return f"failed assertion {condition} in {function or 'an unknown function'}"
    if raised := _RAISED.match(message):
        return f"{raised['what']} in {raised['function']}, {raised['file']}"
    if _OWN in output and function:
        return f"check in {function}, {file}:{line}"
    what = _VARYING.split(message)[0].strip(" :,")
    return f"{what} in {function}, {file}" if function else what


def _is_of_limit(message: str) -> bool:
    """Return whether an input takes too much time or memory."""
    return message.startswith(("libFuzzer: ", _SLOW_FORK)) and "deadly signal" not in message


def _site(output: str) -> tuple[str, str, str]:
    """Return function, file and line of the first frame in the tree's or the harness's own code."""
    for frame in _FRAME.finditer(output):
        own, tree = _OWN_FILE.search(frame["file"]), _TREE_FILE.search(frame["file"])
        found = own or tree
        stub = own and "/" not in own["file"]  # beside the folders of harnesses
        if found and not stub and found["file"] != _ASSERTING:
            return frame["function"], found["file"], frame["line"]
    return "", "", ""


@dataclass(frozen=True, slots=True)
class Kept:
    """The directories of one harness."""

    home: Path

    @property
    def inputs(self) -> Path:
        """Return the directory of inputs that reached new code."""
        return self.home / "inputs"

    @property
    def artifacts(self) -> Path:
        """Return the directory where libFuzzer writes inputs of failures."""
        return self.home / "artifacts"

    def names(self) -> list[str]:
        """Return the names of the inputs."""
        with server_account().file_access(), suppress(FileNotFoundError):
            return sorted(path.name for path in self.inputs.iterdir())
        return []

    def failed(self) -> list[Path]:
        """Return the inputs of failures that are not stored as findings."""
        with server_account().file_access():
            return sorted(path for path in self.artifacts.iterdir() if path.name.startswith(_FAILED))


@contextmanager
def kept_inputs(name: str, place: Path | None = None) -> Iterator[Kept]:
    """Open the directories of a harness, in the cache or another place, for one process.

    Raises CaseError, StorageError, ServerError.
    """
    kept = kept_of(name, place)
    account = server_account()
    with workdir.writing(kept.home):
        kept.home.mkdir(parents=True, exist_ok=True)
        for directory in (kept.inputs, kept.artifacts):
            if not directory.exists():
                account.make_private(directory)
    account.require_entry(kept.inputs)
    try:
        with FileLock(kept.home / "lock", timeout=0):
            yield kept
    except Timeout as error:
        raise CaseError(f"another run uses the inputs of {name} in {kept.home}; try again when it has ended") from error


def kept_of(name: str, place: Path | None = None) -> Kept:
    """Return the directories of a harness, which may not exist yet."""
    return Kept((place or workdir.harness_inputs()).absolute() / name)  # a server changes its working directory


def read_input(path: Path) -> bytes:
    """Return an input that a harness wrote. A link leads no further than the account may go."""
    with server_account().file_access():
        return path.read_bytes()


def delete_input(path: Path) -> None:
    """Delete an input that a harness wrote."""
    with server_account().file_access():
        path.unlink(missing_ok=True)


def replay(program: Path, data: bytes) -> Failure | None:
    """Run one input, several times if it passes; return the failure, if any. Raises CaseError."""
    with tempfile.TemporaryDirectory(prefix="pgduel-harness-") as scratch:
        server_account().lend(Path(scratch))
        file = _lent_input(data, Path(scratch))
        status, output = libfuzzer(program, [f"-runs={TRIES}", str(file)], _no_profile(), 60.0 * TRIES)
    if status and not message_of(output):  # a full disk, for example, ends a harness that starts a server
        raise CaseError(f"harness {program} ended with {status}: {last_line(output, 'no output')}")
    return failure_of(output, data) if status else None


def _lent_input(data: bytes, scratch: Path) -> Path:
    """Write an input to a directory that the account may enter. Return the file, which the account may read."""
    file = scratch / "input"
    file.write_bytes(data)
    file.chmod(0o644)
    return file


def minimized(program: Path, failure: Failure, seconds: float = MINIMIZATION) -> Failure:
    """Return the failure with a smaller input, as small as libFuzzer makes it in some time; at worst the same."""
    if _is_of_limit(failure.message):
        return failure  # each try would take as long as the timeout
    with tempfile.TemporaryDirectory(prefix="pgduel-harness-") as scratch:
        written = account_directory(Path(scratch))
        file = _lent_input(failure.data, Path(scratch))
        options = ["-minimize_crash=1", f"-max_total_time={_STEP}", f"-artifact_prefix={written}/", str(file)]
        with suppress(CaseError):  # the time is up
            libfuzzer(program, options, _no_profile(), seconds)
        with server_account().file_access():
            inputs = sorted(path.read_bytes() for path in written.iterdir())
        smaller = sorted(inputs, key=len)[:_CANDIDATES]
    for data in smaller:
        if len(data) < len(failure.data):
            found = replay(program, data)
            if found is not None and found.origin == failure.origin:
                return found
    return failure


def merge(program: Path, kept: Kept, seeds: Path) -> None:
    """Delete inputs that reach nothing beyond the others, and add seeds that do. Raises CaseError.

    After a kill there are too many inputs, never too few.
    """
    with tempfile.TemporaryDirectory(prefix="pgduel-harness-") as scratch:
        written = account_directory(Path(scratch))
        known = lent_copy(seeds, Path(scratch) / "corpus")
        minimal = _merged(program, written, kept, kept.inputs, known)
        with server_account().file_access():
            for name, data in minimal.items():
                (kept.inputs / name).write_bytes(data)
    for name in set(kept.names()) - minimal.keys():
        delete_input(kept.inputs / name)


def minimal_corpus(program: Path, kept: Kept, corpus: Path) -> dict[str, bytes]:
    """Return a small corpus that reaches all edges that `corpus` and the kept inputs do. Raises CaseError.

    Kept inputs also differ in how often they take an edge. That gives ten times as many, too many for a checkout.
    Inputs with names that people gave stay.
    """
    with tempfile.TemporaryDirectory(prefix="pgduel-harness-") as scratch:
        written = account_directory(Path(scratch))
        known = lent_copy(corpus, Path(scratch) / "corpus")
        named = {path.name: path.read_bytes() for path in known.iterdir() if not INPUT_NAME.fullmatch(path.name)}
        with server_account().file_access():
            for name, data in named.items():
                (written / name).write_bytes(data)
        return named | _merged(program, written, kept, known, kept.inputs, options=("-use_counters=0",))


def _merged(
    program: Path, written: Path, kept: Kept, *directories: Path, options: Sequence[str] = ()
) -> dict[str, bytes]:
    merging = ["-merge=1", *options, f"-artifact_prefix={kept.artifacts}/", str(written), *map(str, directories)]
    seconds = reading_time(written, *directories) + _MERGE
    status, output = libfuzzer(program, merging, _no_profile(), seconds)
    if status:
        raise CaseError(f"harness {program} did not merge its inputs: {last_line(output)}; all are kept")
    with server_account().file_access():
        return {path.name: path.read_bytes() for path in written.iterdir()}


def _no_profile() -> dict[str, str]:
    return {"LLVM_PROFILE_FILE": "/dev/null"}
