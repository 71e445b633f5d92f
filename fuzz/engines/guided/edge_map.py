"""Map of edges: which edges sessions have reached, and how often at most at once, in classes of libFuzzer's."""

import os
from pathlib import Path
from typing import Final, Self

import numpy as np

from fuzz import workdir
from fuzz.servers.edges.counters import Counts

# A counter is in the class of the highest bound that it reaches. Each class is one bit, as in libFuzzer.
_BOUNDS: Final = (1, 2, 3, 4, 8, 16, 32, 128)


def _classes() -> Counts:
    counts = np.arange(256)
    classes = np.searchsorted(_BOUNDS, counts, side="right")  # 0: the edge was not taken
    bits: Counts = np.where(classes > 0, 1 << np.maximum(classes - 1, 0), 0).astype(np.uint8)
    return bits


_CLASS_OF: Final = _classes()


class EdgeMap:
    """The classes in which each edge was counted, as bits. It is empty at first."""

    def __init__(self, edges: int) -> None:
        self._seen: Counts = np.zeros(edges, np.uint8)

    @classmethod
    def shared(cls, path: Path, edges: int) -> Self:
        """Return the map in a file that several processes extend, which is created on first use.

        Raises StorageError.
        """
        found = cls(edges)
        with workdir.writing(path):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                os.ftruncate(descriptor, edges)
            finally:
                os.close(descriptor)
            found._seen = np.memmap(path, np.uint8, "r+", shape=(edges,))
        return found

    def add(self, counts: Counts) -> bool:
        """Add the counters of a case; return whether an edge has a new class."""
        classes = _CLASS_OF[counts]
        (new,) = np.nonzero(classes & ~self._seen)
        self._seen[new] |= classes[new]
        return bool(len(new))

    @property
    def reached(self) -> int:
        """Return the number of edges that were reached."""
        return int(np.count_nonzero(self._seen))
