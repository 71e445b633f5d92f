"""SELECT: what stands above FROM, subqueries within it, set operations, WITH, and an end that is a total order."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from fuzz.generators.choices import Weighted, between, chance, pick, some
from fuzz.sources.typed.aggregates import aggregate, grouping, windowed
from fuzz.sources.typed.conditions import condition, where
from fuzz.sources.typed.datatypes import DataType
from fuzz.sources.typed.expressions import exact, expression, some_exact_type, some_type, sort_key
from fuzz.sources.typed.relations import Item, joined, plain_item
from fuzz.sources.typed.scope import Relation, Scope, names, numbered, under

_RELATIONS: Final = Weighted((45, 1), (35, 2), (15, 3), (5, 4))
_DEEPEST: Final = 3  # levels of queries within queries
_CUT: Final = 50  # rows that a subquery hands on, at most


@dataclass(frozen=True, slots=True)
class Select:
    """A query without ORDER BY: its columns as SQL and their types, from what it selects, and constructs in it."""

    head: str  # SELECT, perhaps DISTINCT
    columns: tuple[str, ...]
    types: tuple[DataType, ...]
    rest: str  # FROM and what follows
    tags: tuple[str, ...] = ()
    exact: bool = False  # equal columns are the same
    sortable: bool = True  # its columns may be sorted by here; else only outside of it

    @property
    def sql(self) -> str:
        """Return it whole."""
        return f"{self.head} {', '.join(self.columns)}{self.rest}"


def level(rng: random.Random, scope: Scope, *, alone: bool = False) -> tuple[str, Scope]:
    """Return FROM and WHERE, and the scope over them; `alone`, without the columns of levels around."""
    items: list[Item] = []
    seen = scope
    for n in range(_RELATIONS.pick(rng)):
        item = _item(rng, seen, scope.alias(n))
        items.append(item)
        seen = seen.over(item.columns, 1)
    sql, over = joined(rng, scope, items)
    rest = f" FROM {sql}{where(rng, over, 45)}"
    return rest, over.only(over.columns[len(scope.columns) :]) if alone else over


def _item(rng: random.Random, scope: Scope, alias: str) -> Item:
    if scope.level >= _DEEPEST or not chance(rng, 18):
        return plain_item(rng, scope, alias)
    lateral = chance(rng, 50)
    within = scope.inner() if lateral else scope.inner().only(())
    sql, _, select = ended(rng, small(rng, within), most=_CUT)
    columns = numbered(select.types)
    return Item(f"{'LATERAL ' if lateral else ''}({sql}) AS {alias} ({names(columns)})", under(alias, columns), _CUT)


def small(rng: random.Random, scope: Scope) -> Select:
    """Return a query for use within another."""
    return _SMALL.pick(rng)(rng, scope)


def plain(rng: random.Random, scope: Scope, types: Sequence[DataType] = ()) -> Select:
    """Return expressions over rows, of such types if any are named."""
    rest, over = level(rng, scope)
    wanted = tuple(types) or tuple(some_type(rng, over) for _ in range(between(rng, 1, 4)))
    columns = tuple(expression(rng, over, type_) for type_ in wanted)
    return Select("SELECT", columns, wanted, rest, ("rows",))


def distinct(rng: random.Random, scope: Scope, types: Sequence[DataType] = ()) -> Select:
    """Return exact expressions over rows, which may be distinct ones."""
    rest, over = level(rng, scope)
    wanted = tuple(types) or tuple(some_exact_type(rng, over) for _ in range(between(rng, 1, 3)))
    columns = tuple(exact(rng, over, type_) for type_ in wanted)
    return Select(pick(rng, ("SELECT", "SELECT DISTINCT")), columns, wanted, rest, ("distinct",), exact=True)


def totalled(rng: random.Random, scope: Scope) -> Select:
    """Return aggregates over all rows. One with columns of a level around alone would be that level's."""
    rest, over = level(rng, scope, alone=True)
    made = _aggregates(rng, over)
    return Select("SELECT", tuple(sql for sql, _ in made), tuple(type_ for _, type_ in made), rest, ("total",))


def _aggregates(rng: random.Random, scope: Scope) -> list[tuple[str, DataType]]:
    drawn = [aggregate(rng, scope) for _ in range(between(rng, 1, 3))]
    text = scope.catalog.types["text"]
    return [(sql, type_) if type_ else (f"({sql})::text", text) for sql, type_ in drawn]


def grouped(rng: random.Random, scope: Scope) -> Select:
    """Return aggregates over groups, which may be sets of groups."""
    rest, over = level(rng, scope, alone=True)
    types = [some_exact_type(rng, over) for _ in range(between(rng, 1, 3))]
    keys = [exact(rng, over.without_relations(), type_, 1) for type_ in types]
    made = _aggregates(rng, over)
    sets, is_set = grouping(rng, len(keys))
    if is_set and chance(rng, 50):
        made.append((f"grouping({', '.join(keys)})", over.catalog.types["int4"]))
    having = f" HAVING {_on_groups(rng, over)}" if chance(rng, 20) else ""
    columns = (*keys, *(sql for sql, _ in made))
    tags = ("grouping sets",) if is_set else ("grouped",)
    all_types = (*types, *(type_ for _, type_ in made))
    # Before PostgreSQL 18 the planner takes a key that equals a constant for sorted, though grouping sets null it.
    return Select("SELECT", columns, all_types, f"{rest} GROUP BY {sets}{having}", tags, sortable=not is_set)


def _on_groups(rng: random.Random, scope: Scope) -> str:
    """Return a condition on groups."""
    truth = pick(rng, ("bool_or", "bool_and"))
    counted = f"count(*) {pick(rng, ('>', '<', '<>'))} {between(rng, 1, 3)}"
    return counted if chance(rng, 50) else f"{truth}({condition(rng, scope)})"


def over_windows(rng: random.Random, scope: Scope) -> Select:
    """Return window functions over the columns of a subquery."""
    inner = scope.inner()
    below = distinct(rng, inner.only(()))
    alias = scope.alias(0)
    columns = numbered(below.types)
    over = scope.only(under(alias, columns))
    made = [sql for _ in range(3) if (sql := windowed(rng, over.without_relations()))]
    text = scope.catalog.types["text"]
    return Select(
        "SELECT",
        (*(column.name for column in over.columns), *(f"({sql})::text" for sql in made)),
        (*below.types, *(text for _ in made)),
        f" FROM ({below.sql}) AS {alias} ({names(columns)})",
        ("window",),
        exact=True,
    )


def combined(rng: random.Random, scope: Scope) -> Select:
    """Return a set operation of queries with exact columns of the same types."""
    types = tuple(some_exact_type(rng, scope) for _ in range(between(rng, 1, 3)))
    operators = ("UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")
    sides = [f"({distinct(rng, scope.inner(), types).sql})" for _ in range(between(rng, 2, 3))]
    sql = sides[0] + "".join(f" {pick(rng, operators)} {side}" for side in sides[1:])
    alias, columns = scope.alias(0), numbered(types)
    shown = tuple(column.name for column in under(alias, columns))
    rest = f" FROM ({sql}) AS {alias} ({names(columns)})"
    return Select("SELECT", shown, types, rest, ("set operation",), exact=True)


_SMALL: Final[Weighted[Callable[[random.Random, Scope], Select]]] = Weighted(
    (40, plain), (20, distinct), (20, grouped), (10, totalled), (5, combined), (5, over_windows)
)
_TOPS: Final[Weighted[Callable[[random.Random, Scope], Select]]] = Weighted(
    (30, plain), (12, distinct), (22, grouped), (12, totalled), (14, over_windows), (10, combined)
)


def ended(rng: random.Random, select: Select, *, most: int = 0) -> tuple[str, bool, Select]:
    """Return the query with ORDER BY and LIMIT, or without; whether its rows are in a total order; and itself.

    `most`: it returns at most so many rows.
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


def _key(select: Select, n: int) -> str:
    type_ = select.types[n]
    return str(n + 1) if select.exact or (type_.exact and type_.ordered) else sort_key(select.columns[n], type_)


def query(rng: random.Random, scope: Scope) -> tuple[str, bool, tuple[str, ...]]:
    """Return a query, whether its rows come in a total order, and the constructs in it."""
    prefix, scope, tags = with_clause(rng, scope) if chance(rng, 25) else ("", scope, ())
    sql, ordered, select = ended(rng, _TOPS.pick(rng)(rng, scope))
    return prefix + sql, ordered, tags + select.tags


def with_clause(rng: random.Random, scope: Scope) -> tuple[str, Scope, tuple[str, ...]]:
    """Return WITH, the scope after it, and the construct that it is."""
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
    after = scope.with_relations((Relation("w", columns, _CUT),))
    return f"{named} ({names(columns)}) AS {how}({body}) ", after, (tag,)


def _recursive(rng: random.Random, scope: Scope) -> tuple[str, tuple[DataType, ...]]:
    """Return the body of a recursion that ends by its first column, which counts, and never branches out."""
    count = scope.catalog.types["int4"]
    free = [type_ for type_ in scope.catalog.types.values() if not type_.collated and type_.kind != "d"]
    types = some(rng, free, between(rng, 1, 3))
    first = plain(rng, scope.inner(), types)
    own = scope.inner().only(under("w", numbered((count, *types))))
    made = [f"({expression(rng, own, type_, 2)})::{type_.name}" for type_ in types]
    begun = [f"({sql})::{type_.name}" for sql, type_ in zip(first.columns, types, strict=True)]
    further = f" AND {condition(rng, own)}" if chance(rng, 40) else ""
    step = f"SELECT w.c1 + 1, {', '.join(made)} FROM w WHERE w.c1 < {between(rng, 2, 6)}{further}"
    return f"SELECT 1, {', '.join(begun)}{first.rest} UNION ALL {step}", (count, *types)
