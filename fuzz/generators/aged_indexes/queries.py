"""Queries and conditions for which the indexes of the table can be scanned."""

import random

from fuzz.generators.aged_indexes.table import Index, Table
from fuzz.generators.choices import Weighted, between, chance, pick, shuffled, some
from fuzz.generators.sql.predicates import where
from oracles.model.case import Kind, Step

_COLUMNS = ("id", "k", "t", "d", "r", "a")
_OTHERS = Weighted((55, 0), (35, 1), (10, 2))
_DIRECTIONS = Weighted((60, ""), (30, " DESC"), (10, " NULLS FIRST"))
_DIGEST = "SELECT count(*), sum(hashtextextended(q::text, 0)) FROM ({}) AS q"
_PROBES = (
    "SELECT o.n, q.id FROM (VALUES ({value}), ({other}), (NULL)) AS o (n)"
    " LEFT JOIN LATERAL (SELECT id FROM t WHERE k = o.n ORDER BY id DESC LIMIT 3) AS q ON true"
)
_ORDERED = "SELECT {keys} FROM t{where} ORDER BY {order} LIMIT {limit}"
_FORMS = Weighted(
    (40, _DIGEST.format("SELECT {columns} FROM t{where}")),
    (20, _ORDERED),
    (8, "SELECT count(*), min(t), max(t), min(id), max(k) FROM t{where}"),
    (4, "SELECT min(k), max(k) FROM t"),
    (8, _DIGEST.format("SELECT {column}, count(*) FROM t{where} GROUP BY 1")),
    (12, _DIGEST.format(_PROBES)),
    (8, _DIGEST.format("SELECT {columns} FROM t WHERE {column} IN (SELECT {column} FROM t{where})")),
)


def make_query(rng: random.Random, table: Table) -> Step:
    """Return a query for one of the indexes."""
    index = pick(rng, table.indexes)
    columns = index.columns if chance(rng, 65) else some(rng, (*_COLUMNS, "length(p)"), 3)
    form = _FORMS.pick(rng)
    sql = form.format(
        columns=", ".join(columns),
        column=index.column,
        keys=", ".join(index.columns),
        where=_conditions(rng, table, index),
        value=rng.randrange(table.repeat),
        other=between(rng, 0, table.repeat),
        order=", ".join(f"{column}{_DIRECTIONS.pick(rng)}" for column in shuffled(rng, index.columns)),
        limit=between(rng, 1, 30),
    )
    return Step(sql, Kind.QUERY, ordered=form is _ORDERED, tags=(index.method,))


def _conditions(rng: random.Random, table: Table, index: Index) -> str:
    """Return WHERE with a condition on the index's first column, and perhaps conditions on other columns."""
    others = some(rng, [column for column in _COLUMNS if column != index.column], _OTHERS.pick(rng))
    conditions = [condition(rng, table, column) for column in (index.column, *others)]
    if others and chance(rng, 25):
        return where([f"({' OR '.join(conditions)})"])
    return where(conditions)


def condition(rng: random.Random, table: Table, column: str) -> str:
    """Return a condition on a column for which indexes of some method can be scanned."""
    low = rng.randrange(table.repeat)
    high = low + between(rng, 0, 9)
    number = between(rng, 0, table.next_id)
    day = f"date '2024-01-01' + {number // 3}"
    text, other_text = table.text(rng), table.text(rng)
    made = {
        "id": (f"id <= {number}", f"id = {number}", f"id BETWEEN {number} AND {number + 20}", "id % 2 = 0"),
        # no array beside the row comparison: corpus/upstream/30bd832d13bb.sql
        "k": (
            *(f"k = {low}", f"k < {high}", f"k BETWEEN {low} AND {high}", f"k IN ({low}, {high}, {low + 20})"),
            *(f"k = ANY ('{{{low},{high},NULL}}'::int[])", "k IS NULL", "k IS NOT NULL", f"k % 10 = {low % 10}"),
            f"(k, id) > ({low}, {number})",
        ),
        "t": (
            *(f"t = {text}", f"t >= {text}", f"t IN ({text}, {other_text})", f"t BETWEEN {text} AND {other_text}"),
            *("t LIKE 'v0%'", "t ^@ 'v00'"),
        ),
        "d": (f"d = {day}", f"d >= {day}", f"d BETWEEN {day} AND {day} + {high - low}"),
        "r": (
            *(f"r && int4range({low}, {high})", f"r @> {low}", f"r <@ int4range({low}, {high})", "isempty(r)"),
            *(f"r = int4range({low}, {high})", f"r -|- int4range({low}, {high})", f"r < int4range({low}, {high})"),
        ),
        "a": (
            *(f"a @> ARRAY[{low}]", f"a && ARRAY[{low}, {high}]", f"a <@ ARRAY[{low}, {low % 7}, 1, 2, 3]"),
            *(f"a = ARRAY[{low % 7}, {low}]", f"a @> ARRAY[{low % 7}, {low}]", "a @> '{}'"),
        ),
    }
    return pick(rng, made[column])
