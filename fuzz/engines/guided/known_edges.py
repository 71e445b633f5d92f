"""The edges that kept inputs reached, so that a later run on the same builds need not execute these inputs again."""

import shutil
import zlib
from collections.abc import Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import numpy as np

from fuzz import workdir
from fuzz.servers.edges.counters import Counts

_MOST: Final = 8  # directories, the last used ones: builds change with each commit of a patch


@dataclass(frozen=True, slots=True)
class KnownEdges:
    """A file for each input, which has a bit for each edge, compressed. Inputs make other cases in another pgduel."""

    directory: Path  # of the same builds and the same code of pgduel; it has one directory for each generator

    @classmethod
    def of(cls, key: str) -> Self:
        """Return the edges for a digest of builds and code. Those that were not used for longest are deleted.

        Raises StorageError.
        """
        home = workdir.input_edges()
        found = cls(home / key)
        with workdir.writing(found.directory):
            found.directory.mkdir(exist_ok=True)
            found.directory.touch()
        for path in sorted(home.iterdir(), key=_last_use, reverse=True)[_MOST:]:
            shutil.rmtree(path, ignore_errors=True)
        return found

    def read(self, generator: str, name: str, edges: int) -> Counts | None:
        """Return 1 for each of so many edges that an input reached, and 0 for others; None if they are not known."""
        with suppress(FileNotFoundError, zlib.error):  # a file may be cut off after a loss of power
            packed = zlib.decompress((self.directory / generator / name).read_bytes())
            return np.unpackbits(np.frombuffer(packed, np.uint8), count=edges)
        return None

    def write(self, generator: str, name: str, counts: Counts) -> None:
        """Keep the edges of an input. Raises StorageError."""
        home = self.directory / generator
        with workdir.writing(home):
            home.mkdir(exist_ok=True)
        workdir.write(home / name, zlib.compress(np.packbits(counts != 0).tobytes()))

    def keep_only(self, generator: str, names: Set[str]) -> None:
        """Delete the edges of all other inputs."""
        for path in (self.directory / generator).glob("*"):
            if path.name not in names and not path.suffix:  # another worker may be writing a draft
                path.unlink(missing_ok=True)


def _last_use(directory: Path) -> float:
    with suppress(FileNotFoundError):  # another worker may delete it at this moment
        return directory.stat().st_mtime
    return 0
