"""Levels of a partition tree: method, keys, bounds and conditions for rows that fit.

An edge of a range has an integer for each key. Infinity stands for MINVALUE and MAXVALUE, in any place of the row.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import inf, isfinite

from fuzz.generators.choices import Weighted, between, chance, first_made, pick, shuffled, some
from fuzz.generators.pruned_partitions.keys import Key, KeyColumn, draw_key
from fuzz.generators.sql.partitions import DEFAULT

Edge = tuple[float, ...]

_DEEPEST = 4  # levels of a tree
_TRIES = 4


@dataclass(frozen=True)
class Piece:
    """The bound of a partition, and the condition that it sets over unqualified columns; "" for a default partition."""

    bound: str
    rows: str = ""
    halves: "tuple[Piece, Piece] | None" = None  # bounds of two partitions that replace this one


@dataclass(frozen=True)
class Part:
    """A partition, with the level below if it is partitioned itself."""

    name: str
    piece: Piece
    level: "Level | None" = None

    @property
    def is_default(self) -> bool:
        """Return whether it is the default partition."""
        return self.piece.bound == DEFAULT


@dataclass(frozen=True)
class Level:
    """A partitioned table without its columns."""

    name: str
    method: str
    keys: tuple[Key, ...]
    parts: tuple[Part, ...]
    complete: bool = False  # whether each row fits a partition
    edges: tuple[Edge, ...] = ()  # of ranges, and the values of lists as rows of one

    @property
    def clause(self) -> str:
        """Return the PARTITION BY clause."""
        return f"PARTITION BY {self.method} ({', '.join(key.clause for key in self.keys)})"

    @cached_property
    def accepts(self) -> str:
        """Return a condition for rows that fit, over unqualified columns; "" if all rows do."""
        if self.complete and not any(part.level and part.level.accepts for part in self.parts):
            return ""
        named = [part.piece.rows for part in self.parts if not part.is_default]
        others = f"coalesce(NOT ({' OR '.join(named)}), true)" if named else "true"
        fitting = []
        for part in self.parts:
            own = others if part.is_default else part.piece.rows
            below = part.level.accepts if part.level else ""
            fitting.append(f"({own} AND {below})" if below else own)
        return f"({' OR '.join(fitting)})"

    @property
    def levels(self) -> "Iterator[Level]":
        """Yield this level and all below it."""
        yield self
        for part in self.parts:
            if part.level:
                yield from part.level.levels

    @property
    def leaves(self) -> Iterator[Part]:
        """Yield all partitions that are not partitioned."""
        for part in self.parts:
            if part.level:
                yield from part.level.leaves
            else:
                yield part


@dataclass(frozen=True)
class _Split:
    """The bounds of one level before its partitions have names."""

    method: str
    keys: tuple[Key, ...]
    pieces: tuple[Piece, ...]
    complete: bool
    edges: tuple[Edge, ...] = ()


def draw_level(rng: random.Random, name: str, columns: tuple[KeyColumn, ...], limit: int, depth: int = 1) -> Level:
    """Return a tree with about `limit` leaves at most. Each branch has its own depth, methods and keys."""
    width = _WIDTHS.pick(rng) if depth == 1 else between(rng, 2, 4)
    split = _draw_split(rng, name, columns, max(2, min(limit, width)))
    left = limit - len(split.pieces)
    parts = []
    for number, piece in enumerate(split.pieces, 1):
        below = None
        if left > 1 and depth < _DEEPEST and chance(rng, _DEEPER[depth]):
            below = draw_level(rng, f"{name}_{number}", _below(rng, split, columns), min(left, 10), depth + 1)
            left -= len(list(below.leaves))
        parts.append(Part(f"{name}_{number}", piece, below))
    return Level(name, split.method, split.keys, tuple(parts), split.complete, split.edges)


def _below(rng: random.Random, split: _Split, columns: tuple[KeyColumn, ...]) -> tuple[KeyColumn, ...]:
    """Return the columns for the keys of a level below, mostly others than those of this one, if there are any."""
    used = {key.column for key in split.keys}
    others = tuple(column for column in columns if column not in used)
    return others if others and chance(rng, 70) else columns


_WIDTHS = Weighted((12, 2), (20, 3), (35, 5), (27, 8), (13, 12), (5, 24))
_DEEPER = {1: 25, 2: 40, 3: 40}  # percentage of partitions that are partitioned, by depth


def varied(rng: random.Random, level: Level, name: str) -> Level:
    """Return a tree of another name with nearly the same bounds at the top, and leaves only."""
    pieces = [part.piece for part in level.parts]
    for _ in range(min(len(pieces), between(rng, 0, 2))):
        place = rng.randrange(len(pieces))
        pieces[place : place + 1] = _varied(rng, level.method, pieces[place])
        pieces = pieces or [level.parts[0].piece]
    if level.method == "HASH":
        pieces = [replace(p, rows=p.rows.replace(f"'{level.name}'", f"'{name}'")) for p in pieces]
    elif not any(piece.bound == DEFAULT for piece in pieces) and chance(rng, 25):
        pieces.append(Piece(DEFAULT))
    complete = level.complete if level.method == "HASH" else any(piece.bound == DEFAULT for piece in pieces)
    parts = tuple(Part(f"{name}_{number}", replace(p, halves=None)) for number, p in enumerate(pieces, 1))
    return Level(name, level.method, level.keys, parts, complete, level.edges)


def _varied(rng: random.Random, method: str, piece: Piece) -> list[Piece]:
    """Return what replaces a piece: itself, both halves, one half, or nothing."""
    halves = list(piece.halves or (piece,))
    if method == "HASH":
        return pick(rng, ([piece], halves))
    return pick(rng, ([piece], halves, halves[:1], halves[-1:], []))


def _draw_split(rng: random.Random, name: str, columns: tuple[KeyColumn, ...], width: int) -> _Split:
    for _ in range(_TRIES):
        made = first_made(rng, _METHODS, rng, name, columns, width)
        if made is not None:
            return made
    raise AssertionError("each kind of key has a range")


def _keys(rng: random.Random, columns: tuple[KeyColumn, ...], method: str, count: int) -> tuple[Key, ...] | None:
    chosen = some(rng, columns, count)
    keys = [draw_key(rng, column, method) for column in chosen]
    found = tuple(key for key in keys if key is not None)
    return found if len(found) == len(chosen) else None


def _hinted(keys: tuple[Key, ...], edges: list[Edge]) -> tuple[Key, ...]:
    """Return the keys, with the finite values of the edges as hints."""
    return tuple(
        replace(key, hints=tuple(sorted({int(edge[n]) for edge in edges if isfinite(edge[n])})))
        for n, key in enumerate(keys)
    )


def _range(rng: random.Random, name: str, columns: tuple[KeyColumn, ...], width: int) -> _Split | None:
    keys = _keys(rng, columns, "RANGE", _ROWS.pick(rng))
    if keys is None:
        return None
    edges = sorted({_edge(rng, keys) for _ in range(width - 1)} | _neighbours(rng, keys))
    if chance(rng, 60):
        edges.insert(0, (-inf,) * len(keys))
    if chance(rng, 60) or len(edges) < 2:
        edges.append((inf,) * len(keys))
    edges = list(dict.fromkeys(edges))
    if len(edges) < 2:
        return None
    keys = _hinted(keys, edges)
    bounded = [_between(keys, low, high) for low, high in pairwise(edges)]
    for _ in range(_GAPS.pick(rng)):
        if len(bounded) > 1:
            bounded.pop(rng.randrange(len(bounded)))
    default = chance(rng, 45)
    pieces = [*bounded, Piece(DEFAULT)] if default else bounded
    return _Split("RANGE", keys, shuffled(rng, pieces), default, tuple(edges))


_ROWS = Weighted((38, 1), (32, 2), (20, 3), (10, 4))  # keys, at most one of each column
_GAPS = Weighted((60, 0), (25, 1), (15, 2))


def _edge(rng: random.Random, keys: tuple[Key, ...]) -> Edge:
    """Return an edge, with MINVALUE or MAXVALUE from some place on.

    The first keys have few values, so that edges share prefixes. Some edges have a prefix of their own.
    """
    finite = between(rng, 1, len(keys)) if chance(rng, 50) else len(keys)
    own = finite < len(keys) and chance(rng, 50)
    few = [pick(rng, key.integers[:: 1 if own else max(1, len(key.integers) // 4)]) for key in keys[:-1]]
    values = [*few, pick(rng, keys[-1].integers)][:finite]
    return (*map(float, values), *(pick(rng, (-inf, inf)),) * (len(keys) - finite))


def _neighbours(rng: random.Random, keys: tuple[Key, ...]) -> set[Edge]:
    """Return two edges around a single value, or none."""
    if chance(rng, 65):
        return set()
    values = [float(pick(rng, key.integers[:-1])) for key in keys if len(key.integers) > 1]
    if len(values) < len(keys):
        return set()
    if len(keys) > 1 and chance(rng, 50):
        place = between(rng, 1, len(keys) - 1)
        rest = len(keys) - place
        below, above = ((*values[:place], *(infinite,) * rest) for infinite in (-inf, inf))
        return pick(rng, ({below, above}, {above}, {below}))
    return {tuple(values), (*values[:-1], values[-1] + keys[-1].kind.step)}


def _between(keys: tuple[Key, ...], low: Edge, high: Edge, *, whole: bool = True) -> Piece:
    """Return the bound of a range; unless `whole`, it is half of another one and remains so."""
    conditions = [f"{key.compared} IS NOT NULL" for key in keys]
    conditions += _compared(keys, low, ">=", ">") + _compared(keys, high, "<", "<=")
    sql = f"FOR VALUES FROM ({_limits(keys, low)}) TO ({_limits(keys, high)})"
    return Piece(sql, f"({' AND '.join(conditions)})", _halves(keys, low, high) if whole else None)


def _limits(keys: tuple[Key, ...], edge: Edge) -> str:
    infinite = {-inf: "MINVALUE", inf: "MAXVALUE"}
    return ", ".join(
        infinite.get(value) or key.kind.type.literal(int(value)) for key, value in zip(keys, edge, strict=True)
    )


def _compared(keys: tuple[Key, ...], edge: Edge, before: str, beyond: str) -> list[str]:
    """Return a comparison of the keys with an edge, by `beyond` if the edge ends with MAXVALUE."""
    finite = [(key, int(value)) for key, value in zip(keys, edge, strict=True) if isfinite(value)]
    if not finite:
        return []
    left = ", ".join(key.compared for key, _ in finite)
    right = ", ".join(key.kind.type.literal(value) for key, value in finite)
    operator = beyond if edge[-1] == inf else before
    return [f"ROW({left}) {operator} ROW({right})" if len(finite) > 1 else f"{left} {operator} {right}"]


def _halves(keys: tuple[Key, ...], low: Edge, high: Edge) -> tuple[Piece, Piece] | None:
    """Return two halves of a range, or None if it is too small."""
    inside = [value for value in keys[0].integers if low[0] < value < high[0]]
    if not inside:
        return None
    middle = (float(inside[len(inside) // 2]), *(-inf,) * (len(keys) - 1))
    return _between(keys, low, middle, whole=False), _between(keys, middle, high, whole=False)


def _list(rng: random.Random, name: str, columns: tuple[KeyColumn, ...], width: int) -> _Split | None:
    keys = _keys(rng, columns, "LIST", 1)
    if keys is None:
        return None
    key, default = keys[0], chance(rng, 60)
    integers = key.integers
    count = pick(rng, (len(integers), width + between(rng, 0, 2), between(rng, 1, len(integers))))
    if default and chance(rng, 70):  # as many values as partitions, some of which may be interleaved nevertheless
        count = width + 1
    values: list[int | None] = [*some(rng, integers, count)]
    alone = chance(rng, 25)
    if not alone and chance(rng, 30):
        values.insert(rng.randrange(len(values) + 1), None)
    groups = [group for n in range(width) if (group := values[n::width])] + ([[None]] if alone else [])
    key = replace(key, hints=tuple(sorted(value for value in values if value is not None)))
    edges = tuple((float(value),) for value in key.hints)
    pieces = [_among(key, group) for group in groups]
    if default:
        pieces.append(Piece(DEFAULT))
    return _Split("LIST", (key,), shuffled(rng, pieces), default, edges)


def _among(key: Key, values: list[int | None], *, whole: bool = True) -> Piece:
    literals = [key.kind.type.literal(value) for value in values if value is not None]
    conditions = [f"{key.compared} IN ({', '.join(literals)})"] if literals else []
    if None in values:
        literals.append("NULL")
        conditions.append(f"{key.compared} IS NULL")
    middle = len(values) // 2
    splits = whole and middle > 0
    halves = (_among(key, values[:middle], whole=False), _among(key, values[middle:], whole=False)) if splits else None
    return Piece(f"FOR VALUES IN ({', '.join(literals)})", f"({' OR '.join(conditions)})", halves)


def _hash(rng: random.Random, name: str, columns: tuple[KeyColumn, ...], width: int) -> _Split | None:
    keys = _keys(rng, columns, "HASH", _ROWS.pick(rng))
    if keys is None:
        return None
    factor = pick(rng, (2, 3))  # each modulus must be a factor of the next larger one
    bounds = [(min(width, 6), n) for n in range(min(width, 6))]
    for _ in range(_SPLITS.pick(rng)):
        modulus, remainder = bounds.pop(rng.randrange(len(bounds)))
        bounds += [(modulus * factor, remainder + n * modulus) for n in range(factor)]
    complete = len(bounds) < 2 or not chance(rng, 25)
    if not complete:
        bounds.pop(rng.randrange(len(bounds)))
    keys = tuple(replace(key, hints=tuple(some(rng, key.integers, 4))) for key in keys)
    return _Split("HASH", keys, tuple(_remainder(name, keys, *bound, factor) for bound in bounds), complete)


_SPLITS = Weighted((55, 0), (30, 1), (15, 2))


def _remainder(name: str, keys: tuple[Key, ...], modulus: int, remainder: int, factor: int = 0) -> Piece:
    given = ", ".join(key.of("") for key in keys)
    bound = f"FOR VALUES WITH (MODULUS {modulus}, REMAINDER {remainder})"
    rows = f"satisfies_hash_partition('{name}'::regclass, {modulus}, {remainder}, {given})"
    halves = None
    if factor == 2:
        halves = (
            _remainder(name, keys, 2 * modulus, remainder), _remainder(name, keys, 2 * modulus, remainder + modulus),
        )  # fmt: skip
    return Piece(bound, rows, halves)


_Maker = Callable[[random.Random, str, tuple[KeyColumn, ...], int], _Split | None]
_METHODS: Weighted[_Maker] = Weighted((47, _range), (33, _list), (20, _hash))
