"""Store of mutants' results: a directory for each series and choice of cases, to which each run adds."""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from fuzz import documents, workdir
from fuzz.documents import DocumentError
from fuzz.errors import StorageError
from fuzz.mutation.own_tests import SoundTests
from fuzz.mutation.result import MutantResult

_CONTROL: Final = "control.json"
_RESULTS: Final = "mutants.jsonl"
_FORM: Final = "2"  # changes when older results no longer count


@dataclass(frozen=True, slots=True)
class Control:
    """The result of the series against itself, which needs no repetition."""

    workloads: Mapping[str, int]  # weights of generators and sources
    false_alarms: Mapping[str, str]  # summaries by fingerprint: findings of a build against itself
    seconds: float  # of all cases
    tests: SoundTests


class MutantStore:
    """The results of one series. Each is on disk before the next mutant, so a killed process loses only the last."""

    def __init__(self, directory: Path) -> None:
        """Read what earlier runs wrote. Raises StorageError."""
        self.directory = directory
        self.results: dict[str, MutantResult] = {each.mutant.key: each for each in self._read()}

    @property
    def control(self) -> Control | None:
        """Return the control, if it was stored."""
        try:
            return documents.loads((self.directory / _CONTROL).read_text(), Control)
        except (OSError, DocumentError):
            return None

    def set_control(self, control: Control) -> None:
        """Store the control. Raises StorageError."""
        workdir.write(self.directory / _CONTROL, documents.dumps(control))

    def patch(self, key: str) -> Path:
        """Return the file of a mutant's diff."""
        return self.directory / f"{key}.patch"

    def add(self, result: MutantResult) -> None:
        """Store a result, and the diff of a judged mutant. Raises StorageError."""
        key = result.mutant.key
        if result.judged:
            workdir.write(self.patch(key), result.mutant.diff)
        path = self.directory / _RESULTS
        with workdir.writing(path), path.open("a", encoding="utf-8") as lines:
            lines.write(f"{documents.dumps(result)}\n")
            lines.flush()
            os.fsync(lines.fileno())
        self.results[key] = result

    def _read(self) -> Iterator[MutantResult]:
        """Yield the stored results. A line that a killed process left unfinished is cut off."""
        path = self.directory / _RESULTS
        if not path.exists():
            return
        with workdir.writing(path):
            text = path.read_text(encoding="utf-8")
            whole = text[: text.rfind("\n") + 1]
            if whole != text:
                os.truncate(path, len(whole.encode()))
        for line in whole.splitlines():
            try:
                yield documents.loads(line, MutantResult)
            except DocumentError as error:
                raise StorageError(
                    f"cannot read {path}: {error}; delete the file to judge its mutants again"
                ) from error


@contextmanager
def opened(identity: Sequence[str]) -> Iterator[MutantStore]:
    """Open the store of everything that results depend on. Raises StorageError, also if another process has it open."""
    digest = hashlib.sha256("\0".join((_FORM, *identity)).encode()).hexdigest()
    directory = workdir.mutants() / digest[:12]
    directory.mkdir(exist_ok=True)
    try:
        with FileLock(f"{directory}.lock", timeout=0):
            yield MutantStore(directory)
    except Timeout as error:
        raise StorageError(f"another process judges these mutants, in {directory}; wait until it ends") from error
