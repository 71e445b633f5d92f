"""Edges of a campaign: those that its cases reached on one arm, in a file of its directory."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import numpy as np

from fuzz.engines.guided.edge_map import EdgeMap
from fuzz.servers.arm import Arm
from fuzz.servers.edges.counters import EdgeCounters

FILE: Final = "edges"


@dataclass(frozen=True, slots=True)
class Edges:
    """The counters of one worker, and the campaign's map, which all workers extend."""

    counters: EdgeCounters
    reached: EdgeMap

    @classmethod
    def of(cls, arms: Sequence[Arm], read: Arm, worker: str, directory: Path) -> Self | None:
        """Return the edges of the arm `read`, or None if its build counts none. Raises ServerError, StorageError."""
        if not read.build.flavor.counts_edges:
            return None
        counters = EdgeCounters(arms, read, worker)
        return cls(counters, EdgeMap.shared(directory / FILE, counters.layout.edges))

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count what happens in sessions during the context."""
        self.counters.clear()
        yield
        self.reached.add(self.counters.counts())


def edges_reached(directory: Path) -> tuple[int, int] | None:
    """Return the numbers of reached and of all edges in a campaign, or None if its builds count none."""
    path = directory / FILE
    if not path.exists():
        return None
    seen = np.fromfile(path, np.uint8)
    return int(np.count_nonzero(seen)), len(seen)
