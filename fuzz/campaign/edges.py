"""Edges that a campaign reached: of the whole server, of each file, and of the functions that the arms' patches change.

The campaign's directory has the map of reached edges, and their places.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from fuzz import documents, workdir
from fuzz.campaign.direction.direction import Function, Line, added_lines, changed_functions, patches_between
from fuzz.servers.arm import Arm, explained_arm
from fuzz.servers.edges.counters import SEVERAL, Counts, read_map
from fuzz.servers.edges.places import Place, places_of

_PLACES: Final = "edge-places.json"


@dataclass(frozen=True, slots=True)
class EdgePlaces:
    """The place of each counted edge, in the order of `EdgeCounters.counts`."""

    files: tuple[str, ...]  # all paths in the tree
    file_of: tuple[int, ...]  # each edge's index in `files`
    changed: tuple[int, ...]  # edges in functions that patches change
    added: tuple[int, ...]  # edges at lines that patches add

    @classmethod
    def of(cls, places: Sequence[Place], changed: Set[Function], added: Set[Line]) -> Self:
        """Return the places of edges. Each counts for the file into which it is inlined, and for all its functions."""
        files = [place[-1].file if place else "" for place in places]
        index = {file: number for number, file in enumerate(sorted(set(files)))}
        return cls(
            tuple(index),
            tuple(index[file] for file in files),
            tuple(edge for edge, place in enumerate(places) if any(frame[:2] in changed for frame in place)),
            tuple(edge for edge, place in enumerate(places) if any((at.file, at.line) in added for at in place)),
        )

    @property
    def preferred(self) -> tuple[int, ...]:
        """Return the edges that libFuzzer prefers, those at added lines twice."""
        return self.changed + self.added


@dataclass(frozen=True, slots=True)
class Reached:
    """Numbers of reached and of counted edges."""

    reached: int
    counted: int

    def __str__(self) -> str:
        """Return both in words."""
        return f"{self.reached} of {self.counted}"


@dataclass(frozen=True, slots=True)
class ReachedEdges:
    """The edges that a campaign reached."""

    edges: Reached
    changed: Reached  # in functions that patches change
    files: Mapping[str, Reached]  # by path in the tree

    def __str__(self) -> str:
        """Return the totals in words."""
        changed = f"; in functions that the patches change, {self.changed}" if self.changed.counted else ""
        return f"edges reached: {self.edges}{changed}"

    def to_json(self) -> dict[str, Any]:
        """Return the data for `--json`."""
        data: dict[str, Any] = documents.to_data(self)
        edges: dict[str, int] = data.pop("edges")
        return edges | data


def keep_places(arms: Sequence[Arm], directory: Path) -> None:
    """Keep the places of the counted edges with a campaign. Raises ServerError, SourceError, StorageError."""
    if (directory / _PLACES).exists():
        return
    changed = frozenset(chain.from_iterable(changed_functions(*pair) for pair in patches_between(arms)))
    explained = explained_arm(arms)
    added = added_lines(arms[0].trees[-1], explained.trees[-1])
    places = EdgePlaces.of(places_of(explained.build), changed, added)
    workdir.write(directory / _PLACES, documents.dumps(places))


def kept_places(directory: Path) -> EdgePlaces | None:
    """Return the places of a campaign's edges, or None if its builds count none."""
    path = directory / _PLACES
    return _read(path) if path.exists() else None


@lru_cache(1)  # a campaign displays its edges every few seconds
def _read(path: Path) -> EdgePlaces:
    return documents.loads(path.read_text(), EdgePlaces)


def marks_of(generators: Iterable[str]) -> dict[str, int]:
    """Return the mark of each generator's cases in the map of a campaign's edges."""
    return {name: min(mark, SEVERAL - 1) for mark, name in enumerate(generators, start=1)}


def edges_of_one_case(directory: Path, generators: Iterable[str]) -> Counter[str]:
    """Return the number of edges that only one case reached, by its generator."""
    seen = read_map(directory)
    if seen is None:
        return Counter()
    counts = np.bincount(seen, minlength=SEVERAL + 1)
    return Counter({name: int(counts[mark]) for name, mark in marks_of(generators).items()})


def number_of_edges(directory: Path) -> int:
    """Return the number of edges that a campaign reached; 0 if its builds count none."""
    seen = read_map(directory)
    return 0 if seen is None else _reached(seen).reached


def reached_edges(directory: Path) -> ReachedEdges | None:
    """Return the edges that a campaign reached, or None if its builds count none."""
    return _reached_at(kept_places(directory), read_map(directory))


def _reached_at(places: EdgePlaces | None, seen: Counts | None) -> ReachedEdges | None:
    if places is None or seen is None or len(seen) != len(places.file_of):
        return None
    file_of = np.array(places.file_of)
    counted, reached = (np.bincount(files, minlength=len(places.files)) for files in (file_of, file_of[seen != 0]))
    files = {file: Reached(int(reached[number]), int(counted[number])) for number, file in enumerate(places.files)}
    return ReachedEdges(_reached(seen), _reached(seen[list(places.changed)]), files)


@dataclass(frozen=True, slots=True)
class _Union:
    """The edges that runs reached together, a bit for each, and the directory of the last run."""

    bits: Counts
    counted: int
    directory: Path


@dataclass(frozen=True, slots=True)
class EdgesOfRuns:
    """The edges that runs on equal builds (arm → key) reached together. Edges of other builds are others."""

    _unions: dict[tuple[tuple[str, str], ...], _Union] = field(default_factory=dict)

    def add(self, builds: Mapping[str, str], directory: Path) -> int:
        """Add a run. Return the number of edges that all runs on its builds reached so far.

        A run without a map adds none: another machine or --disk has it no more, or its builds count no edges.
        """
        key, seen = _key(builds), read_map(directory)
        before = self._unions.get(key)
        if seen is not None:
            bits = np.packbits(seen != 0)
            alike = before is not None and before.counted == len(seen)
            before = _Union(bits | before.bits if before and alike else bits, len(seen), directory)
            self._unions[key] = before
        return 0 if before is None else int(np.count_nonzero(np.unpackbits(before.bits)))

    def of(self, builds: Mapping[str, str]) -> ReachedEdges | None:
        """Return the edges that all runs on these builds reached, or None if there are none."""
        union = self._unions.get(_key(builds))
        if union is None:
            return None
        return _reached_at(kept_places(union.directory), np.unpackbits(union.bits, count=union.counted))


def _key(builds: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(builds.items()))


def _reached(seen: Counts) -> Reached:
    return Reached(int(np.count_nonzero(seen)), len(seen))
