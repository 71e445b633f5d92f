"""Counters of edges, and maps of the edges that a campaign has reached.

The counters are a file for each arm, which all sessions of one worker's cases share.
"""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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

_SECTION: Final = re.compile(r"\] __sancov_(cntrs|pcs) +\w+ +[0-9a-f]+ [0-9a-f]+ ([0-9a-f]+)")
_PC_BYTES: Final = 16  # address and flags of one edge
_FILE: Final = "edges"  # of a campaign, in its directory


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
    return layout_in((build.bindir / "postgres", build.prefix / "lib" / "postgresql" / "postgres_fdw.so"))


def layout_in(programs: Sequence[Path]) -> Layout:
    """Return the layout of the counters of programs and libraries. Raises ServerError if one has none."""
    sizes = [_sections(program) for program in programs]
    *offsets, size = accumulate((counters for counters, _ in sizes), initial=0)
    edges = (pcs // _PC_BYTES for _, pcs in sizes)
    return Layout(tuple(map(Region, offsets, edges)), size)


@cache
def _sections(program: Path) -> tuple[int, int]:
    """Return the sizes of the sections of counters, and of PCs, in bytes. Raises ServerError."""
    command = ["readelf", "--section-headers", "--wide", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, **server_account().options())
    sizes = {name: int(size, 16) for name, size in _SECTION.findall(done.stdout)}
    if set(sizes) != {"cntrs", "pcs"}:
        why = first_line(done.stderr) if done.returncode else "it counts no edges"
        raise ServerError(f"cannot find the counters of {program}: {why}; compile it again (pgduel build --prune)")
    return sizes["cntrs"], sizes["pcs"]


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

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count what happens in sessions during the context."""
        self.counters.clear()
        yield
        self.reached.add(self.counters.counts())


def edges_reached(directory: Path) -> tuple[int, int] | None:
    """Return the numbers of reached and of all edges in a campaign, or None if its builds count none."""
    path = directory / _FILE
    if not path.exists():
        return None
    seen = np.fromfile(path, np.uint8)
    return int(np.count_nonzero(seen)), len(seen)
