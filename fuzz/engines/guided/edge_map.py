"""Map of edges: which of them sessions have reached so far."""

import os
from pathlib import Path
from typing import Self

import numpy as np

from fuzz import workdir
from fuzz.servers.edges.counters import Counts


class EdgeMap:
    """One byte for each edge: 1 if it was reached. At first, none is."""

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
        """Add the counters of a case; return whether an edge is new."""
        (new,) = np.nonzero((counts != 0) & (self._seen == 0))
        self._seen[new] = 1
        return bool(len(new))

    @property
    def reached(self) -> int:
        """Return the number of edges that were reached."""
        return int(np.count_nonzero(self._seen))
