"""Partition schemes: keys, bounds, levels, and conditions for rows that fit a partition.

A scheme is SQL over column names, with @ in place of the relation. Tables that share a scheme have equal bounds. Tables
with a varied scheme have nearly equal bounds.
"""

import random
from dataclasses import dataclass, replace
from itertools import pairwise

from fuzz.generators.choices import Weighted, between, chance, pick, some
from fuzz.generators.sql.scope import Column
from fuzz.generators.sql.sqltypes import INT4, INT8, TEXT

DEFAULT = "DEFAULT"
_SPREAD = Weighted((50, 4), (35, 6), (15, 12))  # upper bound of the partitions on one level


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition: its bound, and the condition that its rows meet ("" if there is no short one in SQL)."""

    bound: str
    rows: str = ""
    sub: "Scheme | None" = None


@dataclass(frozen=True, slots=True)
class Scheme:
    """Partitioning of a table on all levels. Only the first level may lack a partition for some rows."""

    method: str
    keys: tuple[Column, ...]
    partitions: tuple[Partition, ...]

    @property
    def clause(self) -> str:
        """Return the PARTITION BY clause."""
        return f"PARTITION BY {self.method} ({', '.join(key.sql for key in self.keys)})".replace("@", "")

    @property
    def accepts(self) -> str:
        """Return a condition for rows that fit a partition, over unqualified columns; "" if all rows do."""
        if any(not partition.rows for partition in self.partitions):
            return ""
        return "(" + " OR ".join(partition.rows for partition in self.partitions).replace("@", "") + ")"

    @property
    def all_keys(self) -> tuple[Column, ...]:
        """Return the partition keys of all levels."""
        subs = (partition.sub.all_keys for partition in self.partitions if partition.sub)
        return tuple(dict.fromkeys(self.keys + tuple(key for keys in subs for key in keys)))


def key_of(rng: random.Random, column: Column) -> Column:
    """Return a partition key: the column, or sometimes an expression over it."""
    modulus = pick(rng, (7, 3, 12))
    wider = INT8 if column.type is INT8 else INT4
    expressions = {
        "int": (
            replace(column, sql=f"(({column.sql} % {modulus}))", name="", type=wider, domain=modulus),
            replace(column, sql=f"(({column.sql} / 10))", name="", type=wider, domain=column.domain // 10 + 1),
        ),
        "text": (replace(column, sql=f"(lower({column.sql}))", name="", type=TEXT),),
        "date": (replace(column, sql=f"(({column.sql} - DATE '2024-01-01'))", name="", type=INT4),),
    }
    if chance(rng, 15) and column.family in expressions:
        return pick(rng, expressions[column.family])
    return column


def draw_scheme(rng: random.Random, columns: tuple[Column, ...], limit: int) -> Scheme:
    """Return a scheme over some of the columns with two to `limit` leaf partitions."""
    top = min(limit, between(rng, 2, _SPREAD.pick(rng)))
    scheme = _METHODS.pick(rng)(rng, columns, top)
    left = limit - len(scheme.partitions)
    partitions = []
    for partition in scheme.partitions:
        if left > 1 and chance(rng, 12):
            sub = whole(_METHODS.pick(rng)(rng, columns, between(rng, 2, min(left, 4))))
            partition = replace(partition, sub=sub)
            left -= len(sub.partitions)
        partitions.append(partition)
    return replace(scheme, partitions=tuple(partitions))


def vary(rng: random.Random, scheme: Scheme) -> Scheme:
    """Return a scheme with nearly the same bounds: one partition fewer, or an additional default partition."""
    has_default = any(partition.bound == DEFAULT for partition in scheme.partitions)
    if scheme.method == "HASH":
        return scheme
    if not has_default and chance(rng, 50):
        return replace(scheme, partitions=(*scheme.partitions, Partition(DEFAULT)))
    gone = rng.randrange(len(scheme.partitions))
    rest = tuple(partition for n, partition in enumerate(scheme.partitions) if n != gone)
    return replace(scheme, partitions=rest) if rest else scheme


def whole(scheme: Scheme) -> Scheme:
    """Return the scheme with a partition for every row."""
    if not scheme.accepts:
        return scheme
    return replace(scheme, partitions=(*scheme.partitions[:-1], Partition(DEFAULT)))


def attached(create: str, name: str, parent: str, bound: str) -> tuple[str, str, str]:
    """Return statements that create a table, drop its column `gone`, and attach the table as a partition."""
    return create, f"ALTER TABLE {name} DROP COLUMN gone", f"ALTER TABLE {parent} ATTACH PARTITION {name} {bound}"


def _default(rng: random.Random, partitions: list[Partition], percent: int) -> tuple[Partition, ...]:
    """Return the partitions; with a probability of `percent`, a default partition replaces the last one."""
    return (*partitions[:-1], Partition(DEFAULT)) if chance(rng, percent) else tuple(partitions)


def _range(rng: random.Random, columns: tuple[Column, ...], count: int) -> Scheme:
    chosen = some(rng, [column for column in columns if column.family != "bool"], 2 if chance(rng, 20) else 1)
    keys = tuple(key_of(rng, column) for column in chosen)
    cuts = sorted(some(rng, range(1, max(3, keys[0].domain)), count - 1))
    edges = [None, *((cut, *(rng.randrange(key.domain + 1) for key in keys[1:])) for cut in cuts), None]
    partitions = [_range_partition(keys, low, high) for low, high in pairwise(edges)]
    keys = tuple(replace(key, hints=tuple(cuts)) for key in keys)
    if len(partitions) > 2 and chance(rng, 20):
        partitions.pop(rng.randrange(len(partitions)))
    return Scheme("RANGE", keys, _default(rng, partitions, 50))


def _range_partition(keys: tuple[Column, ...], low: tuple[int, ...] | None, high: tuple[int, ...] | None) -> Partition:
    def bound(ns: tuple[int, ...] | None, none: str) -> str:
        if ns is None:
            return ", ".join(none for _ in keys)
        return ", ".join(key.type.literal(n) for key, n in zip(keys, ns, strict=True))

    compared = "ROW({}) {} ROW({})" if len(keys) > 1 else "{} {} {}"
    row = ", ".join(key.sql for key in keys)
    conditions = [f"{key.sql} IS NOT NULL" for key in keys]
    if low is not None:
        conditions.append(compared.format(row, ">=", bound(low, "")))
    if high is not None:
        conditions.append(compared.format(row, "<", bound(high, "")))
    sql = f"FOR VALUES FROM ({bound(low, 'MINVALUE')}) TO ({bound(high, 'MAXVALUE')})"
    return Partition(sql, f"({' AND '.join(conditions)})")


def _list(rng: random.Random, columns: tuple[Column, ...], count: int) -> Scheme:
    key = key_of(rng, pick(rng, columns))
    domain = 2 if key.family == "bool" else key.domain
    values: list[int | None] = [*some(rng, range(domain), min(domain, count * between(rng, 1, 4)))]
    if chance(rng, 40):
        values.insert(rng.randrange(len(values) + 1), None)
    groups = [values[n::count] for n in range(count) if values[n::count]]
    partitions = [_list_partition(key, group) for group in groups]
    hints = tuple(value for value in values if value is not None)
    sparse = len(values) * 2 < domain  # without a default partition, most rows would fit nowhere
    return Scheme("LIST", (replace(key, hints=hints),), _default(rng, partitions, 100 if sparse else 40))


def _list_partition(key: Column, values: list[int | None]) -> Partition:
    literals = [key.type.literal(value) for value in values if value is not None]
    conditions = [f"{key.sql} IN ({', '.join(literals)})"] if literals else []
    if None in values:
        literals.append("NULL")
        conditions.append(f"{key.sql} IS NULL")
    return Partition(f"FOR VALUES IN ({', '.join(literals)})", f"({' OR '.join(conditions)})")


def _hash(rng: random.Random, columns: tuple[Column, ...], count: int) -> Scheme:
    keys = tuple(key_of(rng, column) for column in some(rng, columns, 2 if chance(rng, 25) else 1))
    bounds = [(count, n) for n in range(count)]
    if count > 2 and chance(rng, 20):  # split one remainder, with twice the modulus
        modulus, remainder = bounds.pop()
        bounds += [(2 * modulus, remainder), (2 * modulus, remainder + modulus)]
    return Scheme("HASH", keys, tuple(Partition(f"FOR VALUES WITH (MODULUS {m}, REMAINDER {r})") for m, r in bounds))


_METHODS = Weighted((45, _range), (30, _list), (25, _hash))
