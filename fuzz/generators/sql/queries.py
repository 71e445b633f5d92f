"""SELECT statements over join trees. Results are small: few rows, or one digest of many rows."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from fuzz.generators.choices import Weighted, between, chance, pick, shuffled, some
from fuzz.generators.sql.expressions import leaf, scalar
from fuzz.generators.sql.joins import Joined, join_tree
from fuzz.generators.sql.predicates import predicate, where
from fuzz.generators.sql.scope import WIDE_ROWS, Column, Expr, Scope, Source
from fuzz.generators.sql.sqltypes import FAMILIES
from fuzz.generators.sql.subqueries import subquery
from oracles.model.case import Kind, Step

# Aggregates by type family of their argument. None depends on the order of rows.
_TEMPLATES: dict[str, Weighted[str]] = {
    "int": Weighted(
        (20, "sum({})"), (15, "count({})"), (12, "max({})"), (12, "min({})"), (6, "count(DISTINCT {})"),
        (8, "round(avg({}), 4)"), (3, "round(stddev({}), 4)"), (3, "array_length(array_agg({}), 1)"),
    ),
    "numeric": Weighted((20, "sum({})"), (10, "max({})"), (10, "round(avg({}), 4)"), (5, "count({})")),
    "text": Weighted(
        (15, "max({})"), (15, "min({})"), (10, "count({})"), (5, "count(DISTINCT {})"),
        (5, "md5(string_agg({0}, ',' ORDER BY {0}))"), (10, "sum(length({}))"),
    ),
    "date": Weighted((10, "max({})"), (10, "min({})"), (5, "count({})")),
    "uuid": Weighted((10, "count({})"), (5, "max({}::text)")),
    "bool": Weighted((10, "bool_or({})"), (10, "bool_and({})"), (5, "count({})")),
}  # fmt: skip
_WRAPPED = ("round", "md5", "array_length")  # functions around an aggregate, which then takes no FILTER
_AGGREGATED_FAMILIES = Weighted((45, "int"), (25, "text"), (12, "numeric"), (8, "date"), (4, "uuid"), (6, "bool"))


def aggregate(rng: random.Random, scope: Scope) -> str:
    """Return an aggregate call over the scope."""
    if chance(rng, 25):
        return pick(rng, ("count(*)", *(f"count({relation.alias})" for relation in scope.relations)))
    family = _AGGREGATED_FAMILIES.pick(rng)
    call = _TEMPLATES[family].pick(rng).format(scalar(rng, scope, family).sql)
    if not call.startswith(_WRAPPED) and chance(rng, 12):
        call = f"{call} FILTER (WHERE {predicate(rng, scope)})"
    return call


_SHOWN = 60  # upper bound of result rows; larger results become a digest
_RELATIONS = Weighted((34, 2), (30, 3), (16, 4), (8, 5), (6, 1), (3, 6), (2, 7), (2, 8))
_FAMILIES = Weighted((40, "int"), (25, "text"), (12, "numeric"), (10, "date"), (5, "uuid"), (8, "bool"))


@dataclass(frozen=True, slots=True)
class Select:
    """A query without ORDER BY: its SQL, number of columns, upper bound of rows, and kinds of joins."""

    sql: str
    width: int
    rows: int
    kinds: tuple[str, ...]
    sortable: bool = True


@dataclass(frozen=True, slots=True)
class Level:
    """A FROM list with its WHERE clause, and the scope of expressions above it."""

    scope: Scope
    joined: Joined
    sql: str


def query(rng: random.Random, sources: tuple[Source, ...], relations: int) -> Step:
    """Return a query step over the sources, with at most `relations` relations per FROM list."""
    params, values = _parameters(rng, sources)
    scope = Scope(sources, params=params)
    prefix = ""
    if chance(rng, 12):
        prefix, scope = _with(rng, scope, relations)
    select = TOPS.pick(rng)(rng, scope, min(relations, _RELATIONS.pick(rng)))
    sql, ordered = ended(rng, select)
    sql, used = _renumbered(prefix + sql, values)
    return Step(sql, Kind.QUERY, params=used, ordered=ordered, tags=tuple(sorted(set(select.kinds))))


def _parameters(rng: random.Random, sources: tuple[Source, ...]) -> tuple[tuple[Expr, ...], tuple[str, ...]]:
    """Return parameters that may replace constants, preferably of the types of partition keys, and their values."""
    if not chance(rng, 30):
        return (), ()
    columns = [column for source in sources for column in source.keys + source.columns[:2] if not column.wide]
    chosen = [pick(rng, columns) for _ in range(between(rng, 1, 3))]
    exprs = tuple(Expr(f"${n}::{column.type.name}", column.type) for n, column in enumerate(chosen, 1))
    return exprs, tuple(column.type.text(_near(rng, column)) for column in chosen)


def _near(rng: random.Random, column: Column) -> int:
    return pick(rng, column.hints) if column.hints and chance(rng, 50) else rng.randrange(column.domain + 1)


def _renumbered(sql: str, values: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return the SQL without gaps in the parameter numbers, and the values of its parameters.

    The server cannot determine the type of an unused parameter.
    """
    used = sorted({int(n) for n in re.findall(r"\$(\d)", sql)}) if values else []
    if used != list(range(1, len(used) + 1)):
        sql = re.sub(r"\$(\d)", lambda found: f"${used.index(int(found[1])) + 1}", sql)
    return sql, tuple(values[n - 1] for n in used)


def _with(rng: random.Random, scope: Scope, relations: int) -> tuple[str, Scope]:
    """Return a WITH clause, and the scope after it."""
    level = _level(rng, scope, min(2, relations))
    families = [_FAMILIES.pick(rng) for _ in range(between(rng, 2, 4))]
    columns = []
    for n, family in enumerate(("int", *families), 1):
        expr = scalar(rng, level.scope, family, 1)
        name = f"{family[0]}{n}"
        columns.append(Column(expr.sql, name, FAMILIES[family][0], level.joined.rows, 50, nullable=True))
    body = f"SELECT {', '.join(f'{column.sql} AS {column.name}' for column in columns)}{level.sql}"
    how = pick(rng, ("", "MATERIALIZED ", "NOT MATERIALIZED "))
    named = tuple(replace(column, sql=f"@{column.name}") for column in columns)
    source = Source("c", named, level.joined.rows, stored=False)
    return f"WITH c AS {how}({body}) ", scope.with_sources((source, source))


def _level(rng: random.Random, scope: Scope, count: int) -> Level:
    joined = join_tree(rng, scope, count)
    scope = scope.over(joined.relations, joined.rows)
    conditions = [predicate(rng, scope) for _ in range(_FILTERS.pick(rng))]
    if joined.missing and chance(rng, 12):
        conditions.append(f"{pick(rng, joined.missing)} IS NULL")
    if chance(rng, 60 if count == 1 else 28):
        conditions.append(subquery(rng, scope))
    return Level(scope, joined, f" FROM {joined.sql}{where(conditions)}")


_FILTERS = Weighted((45, 0), (40, 1), (15, 2))


def _outputs(rng: random.Random, scope: Scope, families: list[str]) -> list[str]:
    return [scalar(rng, scope, family).sql for family in families]


def _families(rng: random.Random, low: int, high: int) -> list[str]:
    return [_FAMILIES.pick(rng) for _ in range(between(rng, low, high))]


def _wide(rng: random.Random, scope: Scope, form: str) -> list[str]:
    """Return output expressions over wide columns, if there are any, so that joins carry them."""
    wide = some(rng, scope.wide_columns(), 4) if chance(rng, 85) else ()
    return [form.format(column.sql) for column in wide]


def _plain(rng: random.Random, level: Level) -> Select:
    outputs = _outputs(rng, level.scope, _families(rng, 1, 4)) + _wide(rng, level.scope, "{}")
    stored = [relation.alias for relation in level.joined.relations if relation.stored]
    if stored and chance(rng, 15):
        forms = ("{}.tableoid::regclass::text", "{}::text")  # the latter includes wide columns
        outputs.append(pick(rng, forms if level.joined.rows <= WIDE_ROWS else forms[:1]).format(pick(rng, stored)))
    distinct = "DISTINCT " if chance(rng, 15) else ""
    sql = f"SELECT {distinct}{', '.join(outputs)}{level.sql}"
    return Select(sql, len(outputs), level.joined.rows, (*level.joined.kinds, "rows"))


def _totalled(rng: random.Random, level: Level) -> Select:
    outputs = [aggregate(rng, level.scope) for _ in range(between(rng, 1, 4))]
    outputs += _wide(rng, level.scope, "sum(length({}))")
    return Select(f"SELECT {', '.join(outputs)}{level.sql}", len(outputs), 1, (*level.joined.kinds, "total"))


def _grouped(rng: random.Random, level: Level) -> Select:
    make = scalar if chance(rng, 25) else leaf
    keys = [make(rng, level.scope, _FAMILIES.pick(rng)).sql for _ in range(_KEYS.pick(rng))]
    outputs = [aggregate(rng, level.scope) for _ in range(between(rng, 1, 3))]
    outputs += _wide(rng, level.scope, "max(length({}))")
    positions = ", ".join(str(n) for n, _ in enumerate(keys, 1))
    sets = _SETS.pick(rng).format(positions)
    sql = f"SELECT {', '.join(keys + outputs)}{level.sql} GROUP BY {sets}"
    if chance(rng, 15):
        sql += f" HAVING count(*) {pick(rng, ('>', '>', '<'))} {between(rng, 1, 3)}"
    # Before PostgreSQL 18, the planner considers a key that equals a constant sorted. Grouping sets may set it to NULL.
    sortable = sets == positions
    return Select(sql, len(keys) + len(outputs), level.joined.rows, (*level.joined.kinds, "grouped"), sortable)


_KEYS = Weighted((55, 1), (35, 2), (10, 3))
_SETS = Weighted((85, "{}"), (5, "ROLLUP ({})"), (4, "CUBE ({})"), (6, "GROUPING SETS (({}), ())"))


def _windowed(rng: random.Random, level: Level) -> Select:
    """Return a query with a window function whose result does not depend on the order of peers."""
    outputs = _outputs(rng, level.scope, _families(rng, 1, 3))
    by = leaf(rng, level.scope, _FAMILIES.pick(rng)).sql
    partition = f"PARTITION BY {by} " if chance(rng, 70) else ""
    function = _WINDOWS.pick(rng).format(scalar(rng, level.scope, "int").sql)
    window = f"{function} OVER ({partition}ORDER BY {', '.join(outputs)})"
    body = f"SELECT {', '.join(outputs)}, {window} AS w{level.sql}"
    kinds = (*level.joined.kinds, "window")
    if chance(rng, 30):
        body = f"SELECT * FROM ({body}) AS s WHERE w <= {between(rng, 1, 4)}"
    return Select(body, len(outputs) + 1, level.joined.rows, kinds)


# row_number() numbers peers in any order, but peers are equal in all other outputs.
_WINDOWS = Weighted(
    (20, "rank()"), (15, "dense_rank()"), (20, "row_number()"), (20, "sum({})"), (10, "count(*)"), (10, "max({})")
)


def _combined(rng: random.Random, scope: Scope, count: int) -> Select:
    families = _families(rng, 1, 3)
    levels = [_level(rng, scope, min(count, 3)) for _ in range(between(rng, 2, 3))]
    operator = pick(rng, ("UNION ALL", "UNION", "INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL"))
    sides = [f"(SELECT {', '.join(_outputs(rng, level.scope, families))}{level.sql})" for level in levels]
    kinds = tuple(kind for level in levels for kind in level.joined.kinds)
    rows = sum(level.joined.rows for level in levels)
    return Select(f" {operator} ".join(sides), len(families), rows, (*kinds, "set"))


def ended(rng: random.Random, select: Select) -> tuple[str, bool]:
    """Return a small, comparable form of the query, and whether its rows have a total order."""
    if select.rows <= _SHOWN and not chance(rng, 25):
        return select.sql, False
    if select.sortable and chance(rng, 40):
        sql = f"SELECT * FROM ({select.sql}) AS q" if select.sql.startswith("(") else select.sql
        order = ", ".join(f"{n}{_DIRECTIONS.pick(rng)}" for n in shuffled(rng, range(1, select.width + 1)))
        limit = f" LIMIT {between(rng, 1, 30)}" if select.rows > _SHOWN or chance(rng, 50) else ""
        offset = f" OFFSET {between(rng, 1, 20)}" if limit and chance(rng, 20) else ""
        return f"{sql} ORDER BY {order}{limit}{offset}", True
    return f"SELECT count(*), sum(hashtextextended(q::text, 0)) FROM ({select.sql}) AS q", False


_DIRECTIONS = Weighted((60, ""), (25, " DESC"), (8, " NULLS FIRST"), (7, " DESC NULLS LAST"))
_Top = Callable[[random.Random, Level], Select]
_Maker = Callable[[random.Random, Scope, int], Select]


def _over_joins(top: _Top) -> _Maker:
    return lambda rng, scope, count: top(rng, _level(rng, scope, count))


_LEVEL_TOPS: tuple[tuple[int, _Top], ...] = ((32, _totalled), (28, _grouped), (26, _plain), (8, _windowed))
LEVEL_TOPS: Weighted[_Top] = Weighted(*_LEVEL_TOPS)
TOPS: Weighted[_Maker] = Weighted(*((weight, _over_joins(top)) for weight, top in _LEVEL_TOPS), (6, _combined))
