"""SELECT statements: output, grouping and windows, subqueries, set operations, WITH, and a total order at the end."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from fuzz.generators.choices import Weighted, between, chance, pick, some
from fuzz.generators.sql.queries import Select
from fuzz.generators.sql.scope import Relation, RowSource, names, under
from fuzz.sources.typed.aggregates import aggregate, grouping, windowed
from fuzz.sources.typed.datatypes import DataType
from fuzz.sources.typed.expressions import exact, expression, some_exact_type, some_type, sort_key
from fuzz.sources.typed.predicates import maybe_where, predicate
from fuzz.sources.typed.relations import joined, plain_item
from fuzz.sources.typed.scope import TypedScope, numbered

_RELATIONS: Final = Weighted((45, 1), (35, 2), (15, 3), (5, 4))
_DEEPEST: Final = 3  # levels of nested queries
_CUT: Final = 50  # upper bound of a subquery's rows


def level(rng: random.Random, scope: TypedScope, *, alone: bool = False) -> tuple[str, TypedScope]:
    """Return FROM and WHERE, and the scope over them; with `alone`, without columns of outer levels."""
    items: tuple[Relation[DataType], ...] = ()
    for n in range(_RELATIONS.pick(rng)):
        items += (_item(rng, scope.over(items, 1), scope.alias(n)),)
    sql, over = joined(rng, scope, items)
    rest = f" FROM {sql}{maybe_where(rng, over, 45)}"
    return rest, over.only(*over.relations) if alone else over


def _item(rng: random.Random, scope: TypedScope, alias: str) -> Relation[DataType]:
    if scope.level >= _DEEPEST or not chance(rng, 18):
        return plain_item(rng, scope, alias)
    lateral = chance(rng, 50)
    within = scope.inner() if lateral else scope.inner().only()
    sql, _, select = ended(rng, small(rng, within), most=_CUT)
    return derived(sql, alias, select.types, "LATERAL " if lateral else "")


def derived(sql: str, alias: str, types: Sequence[DataType], prefix: str = "") -> Relation[DataType]:
    """Return a subquery as a FROM item."""
    columns = numbered(types)
    return Relation(f"{prefix}({sql}) AS {alias} ({names(columns)})", alias, under(alias, columns), _CUT)


def small(rng: random.Random, scope: TypedScope) -> Select[DataType]:
    """Return a query for use in another one."""
    return _SMALL.pick(rng)(rng, scope)


def plain(rng: random.Random, scope: TypedScope, types: Sequence[DataType] = ()) -> Select[DataType]:
    """Return a query for expressions over rows, of the given types if any."""
    rest, over = level(rng, scope)
    wanted = tuple(types) or tuple(some_type(rng, over) for _ in range(between(rng, 1, 4)))
    columns = tuple(expression(rng, over, type_) for type_ in wanted)
    return Select(columns, rest, tags=("rows",), types=wanted, exact=False)


def distinct(rng: random.Random, scope: TypedScope, types: Sequence[DataType] = ()) -> Select[DataType]:
    """Return a query for canonical expressions over rows, sometimes with DISTINCT."""
    rest, over = level(rng, scope)
    wanted = tuple(types) or tuple(some_exact_type(rng, over) for _ in range(between(rng, 1, 3)))
    columns = tuple(exact(rng, over, type_) for type_ in wanted)
    return Select(columns, rest, tags=("distinct",), head=pick(rng, ("SELECT", "SELECT DISTINCT")), types=wanted)


def totalled(rng: random.Random, scope: TypedScope) -> Select[DataType]:
    """Return aggregates over all rows.

    The scope excludes outer columns, because an aggregate over outer columns alone would belong to the outer query.
    """
    rest, over = level(rng, scope, alone=True)
    made = _aggregates(rng, over)
    columns, types = zip(*made, strict=True)
    return Select(columns, rest, tags=("total",), types=types, exact=False)


def _aggregates(rng: random.Random, scope: TypedScope) -> list[tuple[str, DataType]]:
    drawn = [aggregate(rng, scope) for _ in range(between(rng, 1, 3))]
    text = scope.catalog.types["text"]
    return [(sql, type_) if type_ else (f"({sql})::text", text) for sql, type_ in drawn]


def grouped(rng: random.Random, scope: TypedScope) -> Select[DataType]:
    """Return aggregates over groups, or over grouping sets."""
    rest, over = level(rng, scope, alone=True)
    types = [some_exact_type(rng, over) for _ in range(between(rng, 1, 3))]
    keys = [exact(rng, over.without_sources(), type_, 1) for type_ in types]
    made = _aggregates(rng, over)
    sets, is_set = grouping(rng, len(keys))
    if is_set and chance(rng, 50):
        made.append((f"grouping({', '.join(keys)})", over.catalog.types["int4"]))
    having = f" HAVING {_on_groups(rng, over)}" if chance(rng, 20) else ""
    columns = (*keys, *(sql for sql, _ in made))
    tags = ("grouping sets",) if is_set else ("grouped",)
    all_types = (*types, *(type_ for _, type_ in made))
    # Before PostgreSQL 18, the planner considers a key that equals a constant sorted. Grouping sets may set it to NULL
    # (4cfb7a7b549e).
    rest += f" GROUP BY {sets}{having}"
    return Select(columns, rest, tags=tags, sortable=not is_set, types=all_types, exact=False)


def _on_groups(rng: random.Random, scope: TypedScope) -> str:
    """Return a condition on groups."""
    truth = pick(rng, ("bool_or", "bool_and"))
    counted = f"count(*) {pick(rng, ('>', '<', '<>'))} {between(rng, 1, 3)}"
    return counted if chance(rng, 50) else f"{truth}({predicate(rng, scope)})"


def over_windows(rng: random.Random, scope: TypedScope) -> Select[DataType]:
    """Return window functions over the columns of a subquery."""
    below = distinct(rng, scope.inner().only())
    relation = derived(below.sql, scope.alias(0), below.types)
    over = scope.only(relation)
    made = [sql for _ in range(3) if (sql := windowed(rng, over.without_sources()))]
    text = scope.catalog.types["text"]
    columns = (*(column.sql for column in relation.columns), *(f"({sql})::text" for sql in made))
    types = (*below.types, *(text for _ in made))
    return Select(columns, f" FROM {relation.sql}", tags=("window",), types=types)


def combined(rng: random.Random, scope: TypedScope) -> Select[DataType]:
    """Return a set operation of queries with canonical columns of equal types."""
    types = tuple(some_exact_type(rng, scope) for _ in range(between(rng, 1, 3)))
    operators = ("UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")
    sides = [f"({distinct(rng, scope.inner(), types).sql})" for _ in range(between(rng, 2, 3))]
    sql = sides[0] + "".join(f" {pick(rng, operators)} {side}" for side in sides[1:])
    relation = derived(sql, scope.alias(0), types)
    shown = tuple(column.sql for column in relation.columns)
    return Select(shown, f" FROM {relation.sql}", tags=("set operation",), types=types)


_SMALL: Final[Weighted[Callable[[random.Random, TypedScope], Select[DataType]]]] = Weighted(
    (40, plain), (20, distinct), (20, grouped), (10, totalled), (5, combined), (5, over_windows)
)
_TOPS: Final[Weighted[Callable[[random.Random, TypedScope], Select[DataType]]]] = Weighted(
    (30, plain), (12, distinct), (22, grouped), (12, totalled), (14, over_windows), (10, combined)
)


def ended(rng: random.Random, select: Select[DataType], *, most: int = 0) -> tuple[str, bool, Select[DataType]]:
    """Return the query's SQL, often with ORDER BY and LIMIT; whether its rows have a total order; and the `Select`.

    `most` is an upper bound of its rows; 0: none.
    """
    if not select.sortable or (not most and chance(rng, 45)):
        return select.sql, False, select
    keys = [_key(select, n) for n, _ in enumerate(select.columns)]
    order = [f"{key}{pick(rng, ('', '', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST'))}" for key in keys]
    if not most and chance(rng, 12) and select.exact:
        return f"{select.sql} ORDER BY {order[0]} FETCH FIRST {between(rng, 1, 9)} ROWS WITH TIES", False, select
    if not most and chance(rng, 10) and select.head == "SELECT":
        first_of_each = replace(select, head=f"SELECT DISTINCT ON ({keys[0]})", tags=(*select.tags, "distinct on"))
        return f"{first_of_each.sql} ORDER BY {', '.join(order)}", True, first_of_each
    limit = f" LIMIT {most or between(rng, 1, 30)}" if most or chance(rng, 50) else ""
    offset = f" OFFSET {between(rng, 1, 9)}" if limit and chance(rng, 20) else ""
    return f"{select.sql} ORDER BY {', '.join(order)}{limit}{offset}", True, select


def _key(select: Select[DataType], n: int) -> str:
    type_ = select.types[n]
    return str(n + 1) if select.exact or (type_.exact and type_.ordered) else sort_key(select.columns[n], type_)


def query(rng: random.Random, scope: TypedScope) -> tuple[str, bool, tuple[str, ...]]:
    """Return a query, whether its rows have a total order, and tags of its constructs."""
    prefix, scope, tags = with_clause(rng, scope) if chance(rng, 25) else ("", scope, ())
    sql, ordered, select = ended(rng, _TOPS.pick(rng)(rng, scope))
    return prefix + sql, ordered, tags + select.tags


def with_clause(rng: random.Random, scope: TypedScope) -> tuple[str, TypedScope, tuple[str, ...]]:
    """Return a WITH clause, the scope after it, and its tag."""
    if chance(rng, 40):
        body, types = _recursive(rng, scope)
        named, how, tag = "WITH RECURSIVE w", "", "recursive"
    else:
        select = small(rng, scope.inner())
        body, _, _ = ended(rng, select, most=_CUT) if chance(rng, 40) else (select.sql, False, select)
        types = select.types
        how = pick(rng, ("", "MATERIALIZED ", "NOT MATERIALIZED "))
        named, tag = "WITH w", f"with {how}".strip().lower()
    columns = numbered(types)
    after = scope.with_sources((RowSource("w", columns, _CUT),))
    return f"{named} ({names(columns)}) AS {how}({body}) ", after, (tag,)


def _recursive(rng: random.Random, scope: TypedScope) -> tuple[str, tuple[DataType, ...]]:
    """Return the body of a recursive query.

    Its first column counts and ends the recursion, and no level has more rows than the previous one.
    """
    count = scope.catalog.types["int4"]
    free = [type_ for type_ in scope.catalog.types.values() if not type_.collated and type_.kind != "d"]
    types = some(rng, free, between(rng, 1, 3))
    first = plain(rng, scope.inner(), types)
    own = scope.inner().only(RowSource("w", numbered((count, *types)), _CUT).relation("w"))
    made = [f"({expression(rng, own, type_, 2)})::{type_.name}" for type_ in types]
    begun = [f"({sql})::{type_.name}" for sql, type_ in zip(first.columns, types, strict=True)]
    further = f" AND {predicate(rng, own)}" if chance(rng, 40) else ""
    step = f"SELECT w.c1 + 1, {', '.join(made)} FROM w WHERE w.c1 < {between(rng, 2, 6)}{further}"
    return f"SELECT 1, {', '.join(begun)}{first.rest} UNION ALL {step}", (count, *types)
