"""Counters of edges, and maps of the edges that a campaign has reached.

The counters are a file for each arm, which all sessions of one worker's cases share.
"""

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from fuzz import workdir
from fuzz.errors import ServerError, first_line
from fuzz.servers.account import server_account
from fuzz.servers.arm import Arm
from fuzz.servers.build import Build
from fuzz.servers.modules import ensure_module

MODULE: Final = "pgduel_edges"
Counts = npt.NDArray[np.uint8]

_SECTION: Final = re.compile(r"\] (\S+) +[A-Z]\w* +([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+) ")
COUNTERS: Final = "__sancov_cntrs"
PCS: Final = "__sancov_pcs"  # addresses and flags of all edges
PC: Final = np.dtype([("address", "<u8"), ("flags", "<u8")])  # of one edge
_FILE: Final = "edges"  # of a campaign, in its directory
SEVERAL: Final = 255  # mark of edges that more than one case reached


@dataclass(frozen=True, slots=True)
class Region:
    """The counters of one program or library: their place in the file, and their number without padding."""

    offset: int
    edges: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The regions of a build's counters in their file, in the order of fuzz/servers/edges/regions.c."""

    regions: tuple[Region, ...]
    size: int  # bytes of the file

    @property
    def edges(self) -> int:
        """Return the number of all counted edges."""
        return sum(region.edges for region in self.regions)


def layout_of(build: Build) -> Layout:
    """Return the layout of a build's counters. Raises ServerError if it has none."""
    return layout_in(programs_of(build))


def programs_of(build: Build) -> tuple[Path, ...]:
    """Return the programs and libraries of a build that count edges."""
    return build.bindir / "postgres", build.prefix / "lib" / "postgresql" / "postgres_fdw.so"


def layout_in(programs: Sequence[Path]) -> Layout:
    """Return the layout of the counters of programs and libraries. Raises ServerError if one has none."""
    sections = [sections_of(program) for program in programs]
    *offsets, size = accumulate((each[COUNTERS].size for each in sections), initial=0)
    edges = (each[PCS].size // PC.itemsize for each in sections)
    return Layout(tuple(map(Region, offsets, edges)), size)


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a program: address in memory, place in the file, and size, in bytes."""

    address: int
    offset: int
    size: int


@cache
def sections_of(program: Path) -> Mapping[str, Section]:
    """Return the sections of a program that counts edges, by name. Raises ServerError."""
    command = ["readelf", "--section-headers", "--wide", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, **server_account().options())
    found = {name: Section(*(int(each, 16) for each in place)) for name, *place in _SECTION.findall(done.stdout)}
    if not {COUNTERS, PCS} <= found.keys():
        why = first_line(done.stderr) if done.returncode else "it counts no edges"
        raise ServerError(f"cannot find the counters of {program}: {why}; compile it again (pgduel build --prune)")
    return found


def ensure_modules(arms: Sequence[Arm]) -> None:
    """Compile the module that sessions load, where it is missing. Raises BuildError."""
    for arm in arms:
        ensure_module(arm.build, MODULE)


class EdgeCounters:
    """The counters of one worker's sessions. Those of one arm are read; sessions of all arms count, as arms are alike.

    A file is in the data directory, and lives as long. A session starts with `parameters`.
    """

    def __init__(self, arms: Sequence[Arm], read: Arm, worker: str) -> None:
        """Create the files. `worker` distinguishes those on the same arms. Raises ServerError, StorageError."""
        self.layout = layout_of(read.build)
        name = f"{MODULE}.{worker}"
        for arm in arms:
            _create(arm.cluster.data / name, layout_of(arm.build).size)
        self.parameters: Mapping[str, str] = {"session_preload_libraries": MODULE, f"{MODULE}.file": name}
        with server_account().file_access():
            self.descriptor = os.open(read.cluster.data / name, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)

    def clear(self) -> None:
        """Set all counters to zero, before a case."""
        os.pwrite(self.descriptor, bytes(self.layout.size), 0)

    def counts(self) -> Counts:
        """Return how often each edge was taken since `clear`, modulo 256."""
        read = np.frombuffer(os.pread(self.descriptor, self.layout.size, 0).ljust(self.layout.size, b"\0"), np.uint8)
        return np.concatenate([read[each.offset : each.offset + each.edges] for each in self.layout.regions])

    def write(self, counts: Counts) -> None:
        """Set the counters as if a case had taken each edge so often."""
        begun = 0
        for region in self.layout.regions:
            os.pwrite(self.descriptor, counts[begun : begun + region.edges].tobytes(), region.offset)
            begun += region.edges

    def close(self) -> None:
        """Close the file."""
        os.close(self.descriptor)


def _create(path: Path, size: int) -> None:
    """Create a file of zeros. It is the account's, so that its server may write to it."""
    with workdir.writing(path), server_account().file_access():
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            os.ftruncate(descriptor, size)
        finally:
            os.close(descriptor)


class EdgeMap:
    """One byte for each edge: 0 at first, then the mark of the case that reached it, SEVERAL after another case.

    A process may overwrite what another one writes at the same time. So a few marks may be wrong.
    """

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

    def new(self, counts: Counts) -> int:
        """Return the number of edges in the counters of a case that are not in the map."""
        return int(np.count_nonzero(self._unseen(counts)))

    def add(self, counts: Counts, mark: int = 1) -> int:
        """Add the counters of a case with a mark, SEVERAL at most; return the number of new edges."""
        new = self._unseen(counts)
        self._seen[(counts != 0) & ~new] = SEVERAL
        self._seen[new] = mark
        return int(np.count_nonzero(new))

    def _unseen(self, counts: Counts) -> npt.NDArray[np.bool_]:
        unseen: npt.NDArray[np.bool_] = np.logical_and(counts, self._seen == 0)
        return unseen

    @property
    def reached(self) -> int:
        """Return the number of edges that were reached."""
        return int(np.count_nonzero(self._seen))


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
        return cls(counters, EdgeMap.shared(directory / _FILE, counters.layout.edges))

    def note(self, mark: int) -> None:
        """Add what sessions counted since the counters were cleared, for a case with this mark."""
        self.reached.add(self.counters.counts(), mark)


def read_map(directory: Path) -> Counts | None:
    """Return the bytes of a campaign's edges, as in EdgeMap, or None if its builds count none."""
    path = directory / _FILE
    return np.fromfile(path, np.uint8) if path.exists() else None
