"""The file of a run's visits: each is on disk before the next, so an interrupted or killed run loses only the last."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from fuzz import documents, workdir
from fuzz.bench.bench import Bench, Point
from fuzz.bench.run import Measurements, Visit
from fuzz.documents import DocumentError
from fuzz.errors import StorageError
from fuzz.servers.arm import Arm


@contextmanager
def kept_measurements(
    bench: Bench, arms: Sequence[Arm], points: Sequence[Point], seconds: int, *, resume: bool
) -> Iterator[Measurements]:
    """Yield a bench's measurements, which are kept: those of the last run with `resume`, else none.

    Raises StorageError, also if another process measures the same.
    """
    file = workdir.benches() / f"{bench.name}-{_identity(bench, arms, points, seconds)}.jsonl"
    try:
        with FileLock(f"{file}.lock", timeout=0):
            earlier = _read(file) if resume else []
            workdir.write(file, "".join(map(_line, earlier)))
            yield Measurements(earlier, lambda visit: _append(file, visit))
    except Timeout as error:
        raise StorageError(f"another process measures this, into {file}; wait until it ends") from error


def _identity(bench: Bench, arms: Sequence[Arm], points: Sequence[Point], seconds: int) -> str:
    """Return a digest of all that measurements depend on, except the machine."""
    facts = (bench.parameters, dict(bench.settings), bench.environment, list(points), seconds)
    own = [(arm.name, arm.build.key, arm.settings) for arm in arms]
    return hashlib.sha256(repr((facts, own)).encode()).hexdigest()[:12]


def _read(file: Path) -> list[Visit]:
    """Return the visits in a file. A killed process may have left the last line unfinished."""
    if not file.exists():
        return []
    *lines, _ = file.read_text(encoding="utf-8").split("\n")
    try:
        return [documents.loads(line, Visit) for line in lines]
    except DocumentError as error:
        raise StorageError(f"cannot read {file}: {error}; run the command without --resume") from error


def _append(file: Path, visit: Visit) -> None:
    with workdir.writing(file), file.open("a", encoding="utf-8") as lines:
        lines.write(_line(visit))
        lines.flush()
        os.fsync(lines.fileno())


def _line(visit: Visit) -> str:
    return f"{documents.dumps(visit)}\n"
