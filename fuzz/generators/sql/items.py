"""FROM items: tables, and small subqueries over one table. Their columns keep the names used in join conditions."""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from fuzz.generators.choices import Weighted, between, chance, first_made, pick, some
from fuzz.generators.sql.expressions import constant, expression
from fuzz.generators.sql.predicates import predicate, where
from fuzz.generators.sql.scope import Column, Relation, Scope, under
from fuzz.generators.sql.sqltypes import INT4, INT8, TEXT

Maker = Callable[[random.Random, Scope, str], Relation | None]

RESCANS = 40_000  # upper bound of the rows read by a subquery over all its rescans


def item(rng: random.Random, scope: Scope, alias: str) -> Relation:
    """Return a FROM item without references to other items."""
    return first_made(rng, ITEMS, rng, scope, alias) or table(rng, scope, alias)


def table(rng: random.Random, scope: Scope, alias: str) -> Relation:
    """Return a table or a common table expression."""
    return pick(rng, scope.sources).relation(alias)


def derived(
    alias: str, body: str, columns: Sequence[Column], rows: int, *, read: int = 0, prefix: str = ""
) -> Relation:
    """Return a subquery as a FROM item. Its columns refer to the subquery's output names."""
    return Relation(f"{prefix}({body}) AS {alias}", alias, under(alias, columns), rows, read=read)


def base(rng: random.Random, scope: Scope) -> tuple[Scope, Relation]:
    """Return a random table, and the scope of a subquery over it."""
    inner = scope.inner()
    relation = table(rng, inner, inner.alias(0))
    return inner.over((relation,), relation.rows), relation


def listed(columns: Iterable[Column]) -> str:
    """Return a select list that keeps the columns' names."""
    return ", ".join(f"{column.sql} AS {column.name}" for column in columns)


def ordered(columns: Iterable[Column]) -> str:
    """Return an ORDER BY clause over all columns of the select list."""
    return "ORDER BY " + ", ".join(str(n) for n, _ in enumerate(columns, 1))


def _filtered(rng: random.Random, scope: Scope, alias: str) -> Relation:
    inner, relation = base(rng, scope)
    columns = relation.columns[: between(rng, 2, len(relation.columns))]
    conditions = [predicate(rng, inner) for _ in range(between(rng, 1, 2))]
    body = f"SELECT {listed(columns)} FROM {relation.sql}{where(conditions)}"
    return derived(alias, body, columns, relation.rows)


def _grouped(rng: random.Random, scope: Scope, alias: str) -> Relation:
    inner, relation = base(rng, scope)
    key = pick(rng, [column for column in relation.columns if not column.wide])
    if key.family == "int" and chance(rng, 30):  # the planner misestimates the number of groups of such an expression
        other = pick(rng, [column for column in relation.columns if column.family == "int"])
        key = replace(key, sql=f"({key.sql}::int4 * 3 + {other.sql}::int4)", domain=key.domain * 3 + other.domain)
    rows = min(relation.rows, key.domain + 1)
    extra = expression(rng, inner, "int", 1)
    columns = (
        replace(key, fan=1),
        Column("count(*)", "i8", INT8, rows, relation.rows),
        Column(f"max({extra})", "i9", INT8, rows, key.domain),
    )
    body = f"SELECT {listed(columns)} FROM {relation.sql} GROUP BY {key.sql}"
    return derived(alias, body, columns, rows, read=relation.rows)


def _distinct(rng: random.Random, scope: Scope, alias: str) -> Relation:
    _, relation = base(rng, scope)
    columns = some(rng, [column for column in relation.columns if not column.wide], between(rng, 1, 2))
    if len(columns) == 1:
        columns = (replace(columns[0], fan=1),)
    return derived(alias, f"SELECT DISTINCT {listed(columns)} FROM {relation.sql}", columns, relation.rows)


def _united(rng: random.Random, scope: Scope, alias: str) -> Relation | None:
    _, left = base(rng, scope)
    _, right = base(rng, scope)
    common = [(column, other) for column in left.columns if (other := right.named(column.name))]
    chosen = some(rng, common, between(rng, 2, 4))
    sides = (listed(side) for side in zip(*chosen, strict=True))
    body = " UNION ALL ".join(f"SELECT {s} FROM {r.sql}" for s, r in zip(sides, (left, right), strict=True))
    columns = [replace(column, fan=column.fan + other.fan) for column, other in chosen]
    return derived(alias, body, columns, left.rows + right.rows)


def _widened(rng: random.Random, scope: Scope, alias: str) -> Relation:
    """Return a subquery with a text column of unknown width, so that a hash table outgrows the planner's estimate."""
    inner, relation = base(rng, scope)
    source = expression(rng, inner, pick(rng, ("int", "text")), 1)
    wide = f"repeat(md5({source}::text), {between(rng, 10, 60)})"
    columns = (*relation.columns[: between(rng, 2, 5)], Column(wide, "w2", TEXT, relation.rows, 0, wide=True))
    if sum(column.name == "w2" for column in columns) > 1:
        return relation
    return derived(alias, f"SELECT {listed(columns)} FROM {relation.sql}", columns, relation.rows)


def _topmost(rng: random.Random, scope: Scope, alias: str) -> Relation:
    _, relation = base(rng, scope)
    columns = tuple(column for column in relation.columns[:5] if not column.wide)
    rows = between(rng, 1, 40)
    body = f"SELECT {listed(columns)} FROM {relation.sql} {ordered(columns)} LIMIT {rows}"
    columns = tuple(replace(column, fan=min(column.fan, rows)) for column in columns)
    return derived(alias, body, columns, min(rows, relation.rows), read=relation.rows)


def _values(rng: random.Random, scope: Scope, alias: str) -> Relation:
    count = between(rng, 1, 12)
    template = pick(rng, scope.sources).columns
    columns = [column for column in template if not column.wide][:3]
    rows = (
        ", ".join(column.type.literal(rng.randrange(column.domain + 1)) for column in columns) for _ in range(count)
    )
    names = ", ".join(column.name for column in columns)
    body = f"SELECT * FROM (VALUES {', '.join(f'({row})' for row in rows)}) AS v ({names})"
    return derived(alias, body, [replace(column, fan=count, hints=()) for column in columns], count)


def _series(rng: random.Random, scope: Scope, alias: str) -> Relation:
    start, length = rng.randrange(20), between(rng, 1, 60)
    column = Column(f"{alias}.i2", "i2", INT4, 1, start + length)
    return Relation(f"generate_series({start}, {start + length}) AS {alias} (i2)", alias, (column,), length + 1)


def _long_series(rng: random.Random, scope: Scope, alias: str) -> Relation:
    """Return generate_series() with an end that the planner cannot see.

    The planner then assumes 1000 rows; the series has 300 to 2500.
    """
    last = between(rng, 300, 2500)
    column = Column(f"{alias}.i1", "i1", INT4, 1, last)
    return Relation(f"generate_series(1, (SELECT {last})) AS {alias} (i1)", alias, (column,), last)


def lateral(rng: random.Random, scope: Scope, alias: str) -> Relation | None:
    """Return a LATERAL item, or None."""
    return LATERALS.pick(rng)(rng, scope, alias)


def _correlated(rng: random.Random, scope: Scope) -> tuple[Scope, Relation, Column, str] | None:
    """Return an inner scope, a table, one of its columns, and a condition that equates it to an outer column.

    Return None if there is no such outer column, or if the table is too large for a rescan per outer row.
    """
    inner, relation = base(rng, scope)
    column = pick(rng, [column for column in relation.columns if not column.wide])
    outer = scope.of_family(column.family)
    if not outer or scope.rows * relation.cost > RESCANS:
        return None
    return inner, relation, column, f"{column.sql} = {pick(rng, outer).sql}"


def _lateral_rows(rng: random.Random, scope: Scope, alias: str) -> Relation | None:
    found = _correlated(rng, scope)
    if found is None:
        return None
    _, relation, column, condition = found
    columns = tuple(column for column in relation.columns[:5] if not column.wide)
    limit = between(rng, 1, 3)
    body = f"SELECT {listed(columns)} FROM {relation.sql} WHERE {condition}"
    if chance(rng, 60):
        body = f"{body} {ordered(columns)} LIMIT {limit}"
        return derived(alias, body, columns, limit, read=relation.rows, prefix="LATERAL ")
    return derived(alias, body, columns, column.fan, read=relation.rows, prefix="LATERAL ")


def _lateral_aggregate(rng: random.Random, scope: Scope, alias: str) -> Relation | None:
    found = _correlated(rng, scope)
    if found is None:
        return None
    inner, relation, _, condition = found
    extra = expression(rng, inner, "int", 1)
    columns = (
        Column("count(*)", "i8", INT8, 1, relation.rows),
        Column(f"min({extra})", "i9", INT8, 1, relation.rows, nullable=True),
    )
    body = f"SELECT {listed(columns)} FROM {relation.sql} WHERE {condition}"
    return derived(alias, body, columns, 1, read=relation.rows, prefix="LATERAL ")


def _lateral_series(rng: random.Random, scope: Scope, alias: str) -> Relation | None:
    outer = scope.of_family("int")
    if not outer:
        return None
    column = Column(f"{alias}.i3", "i3", INT8, 4, 4)
    end = pick(rng, outer).sql
    return Relation(f"LATERAL generate_series(1, {end} % 4) AS {alias} (i3)", alias, (column,), 4)


def _lateral_shifted(rng: random.Random, scope: Scope, alias: str) -> Relation:
    left = expression(rng, scope, "int")
    columns = (
        Column(left, "i8", INT8, 1, 100),
        Column(constant(rng, scope, "int"), "i9", INT8, 1, 100),
    )
    return derived(alias, f"SELECT {listed(columns)}", columns, 1, prefix="LATERAL ")


ITEMS: Weighted[Maker] = Weighted(
    (68, table), (8, _filtered), (6, _grouped), (3, _distinct), (4, _united), (8, _widened), (2, _topmost),
    (2, _values), (1, _series), (2, _long_series),
)  # fmt: skip
LATERALS: Weighted[Maker] = Weighted(
    (30, _lateral_rows), (25, _lateral_aggregate), (10, _lateral_series), (10, _lateral_shifted)
)
