"""Calls of aggregates and window functions whose results do not depend on the order of peers."""

import random
from collections.abc import Sequence
from typing import Final

from fuzz.generators.choices import Weighted, between, chance, pick
from fuzz.generators.sql.expressions import Signature
from fuzz.sources.typed.catalog import Aggregate
from fuzz.sources.typed.datatypes import DataType
from fuzz.sources.typed.expressions import as_exact, expression, is_comparable, some_type, sort_key
from fuzz.sources.typed.predicates import predicate
from fuzz.sources.typed.scope import TypedScope

_TRIES: Final = 20
_FRACTIONS: Final = ("0.5", "0", "0.25", "1")
_DEPTH: Final = 2
_FRAMES: Final = (
    "",
    " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
    " ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING EXCLUDE CURRENT ROW",
    " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
)
# Frames that contain all peers of a row or none of them.
_PEER_FRAMES: Final = (
    "",
    " RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    " GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    " GROUPS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE GROUP",
    " RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE TIES",
)
# Ranking functions with equal results for all peers.
_RANKING: Final = ("rank", "dense_rank", "percent_rank", "cume_dist")


def aggregate(rng: random.Random, scope: TypedScope) -> tuple[str, DataType | None]:
    """Return an aggregate over the rows of the scope, and its type (None for a type that no other expression uses)."""
    if chance(rng, 5):
        return _json(rng, scope)
    options = [each for each in scope.catalog.aggregates if each.kind != "w"]
    for _ in range(_TRIES):
        chosen = pick(rng, options)
        form = _resolved(rng, scope, chosen.form)
        if form is not None and (call := _MAKERS[chosen.kind](rng, scope, chosen, form)):
            condition_sql = f" FILTER (WHERE {predicate(rng, scope)})" if chance(rng, 20) else ""
            return call + condition_sql, scope.catalog.types.get(form.result)
    return "count(*)", scope.catalog.types["int8"]


def _resolved(rng: random.Random, scope: TypedScope, form: Signature) -> Signature | None:
    """Return the signature with columns' types in place of polymorphic ones, or None if a type is missing."""
    types, some = scope.catalog.types, some_type(rng, scope)
    wanted = types.get(form.result)
    for guess in (wanted,) if wanted else (some, types["int4"]):
        if guess and (found := scope.catalog.polymorphism.resolved(form, guess, some)):
            form = found
            break
    arguments = tuple(some_type(rng, scope).key if key == "any" else key for key in form.arguments)
    return Signature("", arguments, form.result) if types.keys() >= set(arguments) else None


def _normal(rng: random.Random, scope: TypedScope, chosen: Aggregate, form: Signature) -> str | None:
    """Return count(a), sum(DISTINCT a), string_agg(a, b ORDER BY a DESC, b) and the like."""
    types = [scope.catalog.types[key] for key in form.arguments]
    if not types:
        return f"{chosen.name}(*)"
    if not all(map(is_comparable, types)) and not (chosen.name == "count" and chosen.fit):
        return _sorted_by_text(rng, scope, chosen, types)
    made = _exact(rng, scope, types)
    if len(made) == 1 and is_comparable(types[0]) and chance(rng, 15):
        return f"{chosen.name}(DISTINCT {made[0]})"
    ordered = "" if chosen.fit and chance(rng, 85) else _order(rng, made)
    return f"{chosen.name}({', '.join(made)}{ordered})"


def _sorted_by_text(rng: random.Random, scope: TypedScope, chosen: Aggregate, types: Sequence[DataType]) -> str:
    made = _expressions(rng, scope, types)
    return f"{chosen.name}({', '.join(sql for sql, _ in made)}{_order(rng, _keys(made))})"


def _keys(made: Sequence[tuple[str, DataType]]) -> list[str]:
    return [sort_key(sql, type_) for sql, type_ in made]


def _expressions(rng: random.Random, scope: TypedScope, types: Sequence[DataType]) -> list[tuple[str, DataType]]:
    return [(expression(rng, scope, type_, _DEPTH), type_) for type_ in types]


def _exact(rng: random.Random, scope: TypedScope, types: Sequence[DataType]) -> list[str]:
    """Return expressions, in canonical form if their type is comparable."""
    made = _expressions(rng, scope, types)
    return [as_exact(sql, type_) if is_comparable(type_) else sql for sql, type_ in made]


def _order(rng: random.Random, keys: Sequence[str]) -> str:
    ways = ("", " DESC", " NULLS FIRST")
    return f" ORDER BY {', '.join(key + pick(rng, ways) for key in keys)}"


def _ordered_set(rng: random.Random, scope: TypedScope, chosen: Aggregate, form: Signature) -> str | None:
    types = [scope.catalog.types[key] for key in form.arguments[chosen.direct :]]
    if len(types) != 1 or not is_comparable(types[0]):
        return None
    direct = {"float8": pick(rng, _FRACTIONS), "_float8": "'{0,0.5,1}'::float8[]"}
    if not all(key in direct for key in form.arguments[: chosen.direct]):
        return None
    given = ", ".join(direct[key] for key in form.arguments[: chosen.direct])
    return f"{chosen.name}({given}) WITHIN GROUP ({_order(rng, _exact(rng, scope, types)).strip()})"


def _hypothetical(rng: random.Random, scope: TypedScope, chosen: Aggregate, _form: Signature) -> str | None:
    type_ = some_type(rng, scope)
    if not is_comparable(type_):
        return None
    direct = pick(rng, type_.values)
    return f"{chosen.name}({direct}) WITHIN GROUP ({_order(rng, _exact(rng, scope, [type_])).strip()})"


def _json(rng: random.Random, scope: TypedScope) -> tuple[str, DataType]:
    """Return a SQL/JSON aggregate. Arms before SQL/JSON refuse it."""
    made = _expressions(rng, scope, [some_type(rng, scope)])
    nulls = pick(rng, ("ABSENT ON NULL", "NULL ON NULL"))
    sql = f"JSON_ARRAYAGG({made[0][0]}{_order(rng, _keys(made))} {nulls} RETURNING jsonb)"
    return sql, scope.catalog.types["jsonb"]


_MAKERS: Final = {"n": _normal, "o": _ordered_set, "h": _hypothetical}


def windowed(rng: random.Random, scope: TypedScope) -> str | None:
    """Return a window function over the columns of the scope, which are all comparable and canonical.

    Either the order covers all these columns, so that peers are identical, or the result is equal for all peers.
    """
    columns = [column.sql for column in scope.columns]
    count = between(rng, 1, len(columns))
    is_total = count == len(columns) or chance(rng, 50)
    chosen = pick(rng, [each for each in scope.catalog.aggregates if _suits(each, is_total=is_total)])
    form = _resolved(rng, scope, chosen.form)
    if form is None or not all(is_comparable(scope.catalog.types[key]) for key in form.arguments):
        return None
    made = [
        _window_argument(rng, scope, scope.catalog.types[key], fixed=chosen.kind == "w" and key == declared)
        for key, declared in zip(form.arguments, chosen.form.arguments, strict=True)
    ]
    frame = pick(rng, _FRAMES + _PEER_FRAMES if is_total else _PEER_FRAMES)
    partition = f"PARTITION BY {pick(rng, columns)} " if chance(rng, 50) else ""
    order = _order(rng, columns if is_total else columns[:count]).strip()
    filtered = f" FILTER (WHERE {predicate(rng, scope)})" if chosen.kind == "n" and chance(rng, 15) else ""
    star = "*" if not made and chosen.kind == "n" else ""
    return f"{chosen.name}({star}{', '.join(made)}){filtered} OVER ({partition}{order}{frame})"


def _window_argument(rng: random.Random, scope: TypedScope, type_: DataType, *, fixed: bool) -> str:
    """Return an argument. If `fixed`, it is a number of rows or buckets, which must be a constant."""
    return str(between(rng, 1, 3)) if fixed else as_exact(expression(rng, scope, type_, 1), type_)


def _suits(chosen: Aggregate, *, is_total: bool) -> bool:
    if chosen.kind == "w":
        return is_total or chosen.name in _RANKING
    return chosen.kind == "n" and (is_total or chosen.fit)


def grouping(rng: random.Random, keys: int) -> tuple[str, bool]:
    """Return the GROUP BY list for the first `keys` output columns, and whether it has grouping sets."""
    positions = ", ".join(str(n + 1) for n in range(keys))
    form = _SETS.pick(rng)
    return form.format(positions, first="1", last=str(keys)), form != "{}"


_SETS: Final = Weighted(
    (70, "{}"),
    (8, "ROLLUP ({})"),
    (6, "CUBE ({})"),
    (8, "GROUPING SETS (({}), ())"),
    (4, "DISTINCT GROUPING SETS (({}), ({first}), ({last}))"),
)
