"""SELECT statements over join trees. Results are small: few rows, or one digest of many rows."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, Self

from fuzz.generators.choices import Weighted, between, chance, pick, shuffled, some
from fuzz.generators.sql.digest import digest
from fuzz.generators.sql.expressions import expression, leaf
from fuzz.generators.sql.joins import Joined, join_tree
from fuzz.generators.sql.predicates import predicate, where
from fuzz.generators.sql.scope import MANY, WIDE_ROWS, Column, RowSource, Scope, T
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
    call = _TEMPLATES[family].pick(rng).format(expression(rng, scope, family))
    if not call.startswith(_WRAPPED) and chance(rng, 12):
        call = f"{call} FILTER (WHERE {predicate(rng, scope)})"
    return call


_SHOWN = 60  # upper bound of result rows; larger results become a digest
_RELATIONS = Weighted((34, 2), (30, 3), (16, 4), (8, 5), (6, 1), (3, 6), (2, 7), (2, 8))
_FAMILIES = Weighted((40, "int"), (25, "text"), (12, "numeric"), (10, "date"), (5, "uuid"), (8, "bool"))


@dataclass(frozen=True, slots=True)
class Select(Generic[T]):
    """A query without ORDER BY."""

    columns: tuple[str, ...]
    rest: str  # FROM and following clauses
    rows: int = MANY  # upper bound
    tags: tuple[str, ...] = ()  # its constructs, such as kinds of joins
    head: str = "SELECT"
    sortable: bool = True  # whether its own ORDER BY is safe; otherwise only that of an outer query
    types: tuple[T, ...] = ()  # of the columns, if they matter
    exact: bool = True  # whether equal columns are identical

    @property
    def sql(self) -> str:
        """Return the complete query."""
        return f"{self.head} {', '.join(self.columns)}{self.rest}"

    def within(self, before: str, after: str = "") -> Self:
        """Return a query with the same columns that contains this one."""
        return replace(self, head=before + self.head, rest=self.rest + after)


@dataclass(frozen=True, slots=True)
class Level:
    """A FROM list with its WHERE clause, and the scope of expressions above it."""

    scope: Scope
    joined: Joined
    sql: str


def query(rng: random.Random, sources: tuple[RowSource, ...], relations: int) -> Step:
    """Return a query step over the sources, with at most `relations` relations per FROM list."""

    def make(scope: Scope) -> tuple[str, Select]:
        prefix = ""
        if chance(rng, 12):
            prefix, scope = _with(rng, scope, relations)
        return prefix, TOPS.pick(rng)(rng, scope, min(relations, _RELATIONS.pick(rng)))

    return parameterized(rng, sources, make)


def parameterized(
    rng: random.Random, sources: tuple[RowSource, ...], make: Callable[[Scope], tuple[str, Select]]
) -> Step:
    """Return a query step whose constants may be parameters.

    `make` returns the WITH clause and the query for a scope over the sources.
    """
    params, values = _parameters(rng, sources)
    prefix, select = make(Scope(sources, params=params))
    sql, ordered = ended(rng, select)
    sql, used = _renumbered(prefix + sql, values)
    return Step(sql, Kind.QUERY, params=used, ordered=ordered, tags=tuple(sorted(set(select.tags))))


def _parameters(rng: random.Random, sources: tuple[RowSource, ...]) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    """Return parameters that may replace constants, preferably of the types of partition keys, and their values."""
    if not chance(rng, 30):
        return (), ()
    columns = [column for source in sources for column in source.keys + source.columns[:2] if not column.wide]
    chosen = [pick(rng, columns) for _ in range(between(rng, 1, 3))]
    params = tuple(replace(column, sql=f"${n}::{column.type.name}") for n, column in enumerate(chosen, 1))
    return params, tuple(column.type.text(_near(rng, column)) for column in chosen)


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
        made = expression(rng, level.scope, family, 1)
        name = f"{family[0]}{n}"
        columns.append(Column(made, name, FAMILIES[family][0], level.joined.rows, 50, nullable=True))
    body = f"SELECT {', '.join(f'{column.sql} AS {column.name}' for column in columns)}{level.sql}"
    how = pick(rng, ("", "MATERIALIZED ", "NOT MATERIALIZED "))
    named = tuple(replace(column, sql=f"@{column.name}") for column in columns)
    source = RowSource("c", named, level.joined.rows, stored=False)
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
    return [expression(rng, scope, family) for family in families]


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
    head = "SELECT DISTINCT" if chance(rng, 15) else "SELECT"
    return Select(tuple(outputs), level.sql, level.joined.rows, (*level.joined.kinds, "rows"), head)


def _totalled(rng: random.Random, level: Level) -> Select:
    outputs = [aggregate(rng, level.scope) for _ in range(between(rng, 1, 4))]
    outputs += _wide(rng, level.scope, "sum(length({}))")
    return Select(tuple(outputs), level.sql, 1, (*level.joined.kinds, "total"))


def _grouped(rng: random.Random, level: Level) -> Select:
    make = expression if chance(rng, 25) else leaf
    keys = [make(rng, level.scope, _FAMILIES.pick(rng)) for _ in range(_KEYS.pick(rng))]
    outputs = [aggregate(rng, level.scope) for _ in range(between(rng, 1, 3))]
    outputs += _wide(rng, level.scope, "max(length({}))")
    positions = ", ".join(str(n) for n, _ in enumerate(keys, 1))
    sets = _SETS.pick(rng).format(positions)
    rest = f"{level.sql} GROUP BY {sets}"
    if chance(rng, 15):
        rest += f" HAVING count(*) {pick(rng, ('>', '>', '<'))} {between(rng, 1, 3)}"
    # Before PostgreSQL 18, the planner considers a key that equals a constant sorted. Grouping sets may set it to NULL
    # (4cfb7a7b549e).
    tags = (*level.joined.kinds, "grouped")
    return Select((*keys, *outputs), rest, level.joined.rows, tags, sortable=sets == positions)


_KEYS = Weighted((55, 1), (35, 2), (10, 3))
_SETS = Weighted((85, "{}"), (5, "ROLLUP ({})"), (4, "CUBE ({})"), (6, "GROUPING SETS (({}), ())"))


def _windowed(rng: random.Random, level: Level) -> Select:
    """Return a query with a window function whose result does not depend on the order of peers."""
    outputs = _outputs(rng, level.scope, _families(rng, 1, 3))
    by = leaf(rng, level.scope, _FAMILIES.pick(rng))
    partition = f"PARTITION BY {by} " if chance(rng, 70) else ""
    function = _WINDOWS.pick(rng).format(expression(rng, level.scope, "int"))
    window = f"{function} OVER ({partition}ORDER BY {', '.join(outputs)}) AS w"
    select: Select = Select((*outputs, window), level.sql, level.joined.rows, (*level.joined.kinds, "window"))
    if not chance(rng, 30):
        return select
    return select.within("SELECT * FROM (", f") AS s WHERE {_RUN_CONDITIONS.pick(rng).format(between(rng, 1, 4))}")


# With a monotonic function, the executor may stop at the first row without the condition.
_RUN_CONDITIONS = Weighted(
    (40, "w <= {}"), (10, "w < {}"), (10, "{} >= w"), (6, "{} > w"), (10, "w = {}"), (12, "{} < w"), (12, "w >= {}")
)
# row_number() numbers peers in any order, but peers are equal in all other outputs.
_WINDOWS = Weighted(
    (20, "rank()"), (15, "dense_rank()"), (20, "row_number()"), (20, "sum({})"), (10, "count(*)"), (10, "max({})")
)


def _combined(rng: random.Random, scope: Scope, count: int) -> Select:
    families = _families(rng, 1, 3)
    levels = [_level(rng, scope, min(count, 3)) for _ in range(between(rng, 2, 3))]
    operator = pick(rng, ("UNION ALL", "UNION", "INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL"))
    tags = (*(kind for level in levels for kind in level.joined.kinds), "set")
    rows = sum(level.joined.rows for level in levels)
    first, *others = (Select(tuple(_outputs(rng, level.scope, families)), level.sql, rows, tags) for level in levels)
    return first.within("(", ")" + "".join(f" {operator} ({other.sql})" for other in others))


def ended(rng: random.Random, select: Select) -> tuple[str, bool]:
    """Return a small, comparable form of the query, and whether its rows have a total order."""
    if select.rows <= _SHOWN and not chance(rng, 25):
        return select.sql, False
    if select.sortable and chance(rng, 40):
        sql = f"SELECT * FROM ({select.sql}) AS q" if select.head.startswith("(") else select.sql
        order = ", ".join(f"{n}{_DIRECTIONS.pick(rng)}" for n in shuffled(rng, range(1, len(select.columns) + 1)))
        limit = f" LIMIT {between(rng, 1, 30)}" if select.rows > _SHOWN or chance(rng, 50) else ""
        offset = f" OFFSET {between(rng, 1, 20)}" if limit and chance(rng, 20) else ""
        return f"{sql} ORDER BY {order}{limit}{offset}", True
    return digest(select.sql), False


# Of keys of an index or an ORDER BY, in generators whose queries are their own.
SORT_DIRECTIONS = Weighted((60, ""), (20, " DESC"), (10, " NULLS FIRST"), (10, " DESC NULLS LAST"))
_DIRECTIONS = Weighted((60, ""), (25, " DESC"), (8, " NULLS FIRST"), (7, " DESC NULLS LAST"))
_Top = Callable[[random.Random, Level], Select]
_Maker = Callable[[random.Random, Scope, int], Select]


def _over_joins(top: _Top) -> _Maker:
    return lambda rng, scope, count: top(rng, _level(rng, scope, count))


_LEVEL_TOPS: tuple[tuple[int, _Top], ...] = ((32, _totalled), (28, _grouped), (26, _plain), (8, _windowed))
LEVEL_TOPS: Weighted[_Top] = Weighted(*_LEVEL_TOPS)
TOPS: Weighted[_Maker] = Weighted(*((weight, _over_joins(top)) for weight, top in _LEVEL_TOPS), (6, _combined))
