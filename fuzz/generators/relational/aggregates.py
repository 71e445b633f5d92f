"""Aggregates whose value does not depend on the order of rows, by the family of their argument."""

import random

from fuzz.generators.choices import Weighted, chance, pick
from fuzz.generators.relational.expressions import scalar
from fuzz.generators.relational.predicates import predicate
from fuzz.generators.relational.scope import Scope

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
_WRAPPED = ("round", "md5", "array_length")  # functions around an aggregate take no FILTER
_FAMILIES = Weighted((45, "int"), (25, "text"), (12, "numeric"), (8, "date"), (4, "uuid"), (6, "bool"))


def aggregate(rng: random.Random, scope: Scope) -> str:
    """Return an aggregate call over the scope."""
    if chance(rng, 25):
        return pick(rng, ("count(*)", *(f"count({relation.alias})" for relation in scope.relations)))
    family = _FAMILIES.pick(rng)
    call = _TEMPLATES[family].pick(rng).format(scalar(rng, scope, family).sql)
    if not call.startswith(_WRAPPED) and chance(rng, 12):
        call = f"{call} FILTER (WHERE {predicate(rng, scope)})"
    return call
