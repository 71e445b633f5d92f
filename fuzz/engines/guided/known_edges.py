"""The edges that kept inputs reached, so that a later run on the same builds need not execute these inputs again.

They are only a cache: an input of unknown edges is executed. So a file that cannot be read or written is no error.
"""

import os
import shutil
import zlib
from collections.abc import Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import numpy as np

from fuzz import workdir
from fuzz.errors import StorageError
from fuzz.servers.edges.counters import Counts

_MOST: Final = 8  # directories, the last used ones: builds change with each commit of a patch
_AGAIN: Final = ".again"  # ends the name of the file of an input that a later run is to execute, too
_DRAFT: Final = ".draft"  # of fuzz/workdir.py


@dataclass(frozen=True, slots=True)
class KnownEdges:
    """A file for each input, which has a bit for each edge, compressed. Inputs make other cases in another pgduel."""

    directory: Path  # of the same builds and the same code of pgduel; it has one directory for each generator

    @classmethod
    def of(cls, key: str) -> Self:
        """Return the edges for a digest of builds and code. Those that were not used for longest are deleted."""
        home = workdir.input_edges()
        found = cls(home / key)
        with suppress(OSError):
            found.directory.mkdir(exist_ok=True)
            os.utime(found.directory)
        for path in _last_used_first(home)[_MOST:]:  # another campaign may use one of them, and makes it again
            shutil.rmtree(path, ignore_errors=True)
        return found

    def read(self, generator: str, name: str, edges: int, *, again: bool = False) -> Counts | None:
        """Return 1 for each of so many edges that an input reached, and 0 for others; None if they are not known.

        Those of an input that is to be executed again are returned with `again` only.
        """
        files = (name, f"{name}{_AGAIN}") if again else (name,)
        bits = _bits(self.directory / generator, *files)
        return None if bits is None else np.unpackbits(bits, count=edges)

    def write(self, generator: str, name: str, counts: Counts, *, again: bool = False) -> None:
        """Keep the edges of an input, which a later run executes only with `again`."""
        home = self.directory / generator
        bits = zlib.compress(np.packbits(counts != 0).tobytes())
        with suppress(StorageError):
            with workdir.writing(home):
                home.mkdir(parents=True, exist_ok=True)
            workdir.write(home / f"{name}{_AGAIN if again else ''}", bits)
            if not again:
                (home / f"{name}{_AGAIN}").unlink(missing_ok=True)

    def added(self, generator: str, names: Sequence[str]) -> dict[str, int]:
        """Return the number of edges that each input adds to those before it, without inputs of unknown edges.

        Inputs whose edges are known of other builds only are compared with each other.
        """
        added: dict[str, int] = {}
        for directory in _last_used_first(self.directory.parent):
            reached = np.zeros(1, np.uint8)
            for name in names:
                if name in added or (bits := _bits(directory / generator, name, f"{name}{_AGAIN}")) is None:
                    continue
                added[name] = int(np.count_nonzero(np.unpackbits(bits & ~reached)))
                reached = reached | bits
        return added

    def keep_only(self, generator: str, names: Set[str]) -> None:
        """Delete the edges of all other inputs."""
        for path in (self.directory / generator).glob("*"):
            # another worker may be writing a draft
            if path.name.removesuffix(_AGAIN) not in names and path.suffix != _DRAFT:
                path.unlink(missing_ok=True)


def _bits(directory: Path, *files: str) -> Counts | None:
    """Return the bits in the first of these files that can be read."""
    for file in files:
        with suppress(OSError, zlib.error):  # a file may be cut off after a loss of power
            return np.frombuffer(zlib.decompress((directory / file).read_bytes()), np.uint8)
    return None


def _last_used_first(home: Path) -> list[Path]:
    return sorted(home.iterdir(), key=_last_use, reverse=True)


def _last_use(directory: Path) -> float:
    with suppress(FileNotFoundError):  # another worker may delete it at this moment
        return directory.stat().st_mtime
    return 0
