"""Joins of three relations one of which is itself a join: under EXISTS, in a subquery, in LATERAL, or of a change.

All clauses compare integer columns. postgres_fdw sends a semi join although it cannot send a clause of it
(corpus/README.md).
"""

import random
from collections.abc import Sequence
from typing import Final

from fuzz.generators.choices import between, pick, some
from fuzz.generators.foreign_tables.scene import NEAR, Relation, Scene, sources

_ANY: Final = ("EXISTS", "EXISTS", "NOT EXISTS")
# {0} to {2} are relations, {3} is EXISTS or NOT EXISTS, {4} a small number, {5} a join.
_QUERIES: Final = (
    "SELECT x.k, x.b FROM {0} AS x WHERE {3} (SELECT FROM {1} AS y WHERE y.k = x.k AND y.a <> {4}"
    " AND EXISTS (SELECT FROM {2} AS z WHERE z.k = y.k)) ORDER BY x.k",
    "SELECT x.k, s.c FROM {0} AS x {5} (SELECT y.k, y.c FROM {1} AS y WHERE y.a > {4}"
    " AND {3} (SELECT FROM {2} AS z WHERE z.k = y.k)) AS s ON s.k = x.k ORDER BY x.k, s.k",
    "SELECT s.k, x.b FROM (SELECT y.k FROM {1} AS y WHERE {3} (SELECT FROM {2} AS z WHERE z.k = y.k AND z.a < 6)) AS s"
    " {5} {0} AS x ON s.k = x.k ORDER BY s.k, x.k",
    "SELECT x.k, y.k FROM {0} AS x JOIN {1} AS y ON y.k = x.k + {4} WHERE {3} (SELECT FROM {2} AS z WHERE z.k = y.k)"
    " AND EXISTS (SELECT FROM {2} AS w WHERE w.k = x.k AND w.a >= {4}) ORDER BY x.k",
    "SELECT x.k FROM {0} AS x WHERE EXISTS (SELECT FROM {1} AS y JOIN {2} AS z ON z.k = y.k WHERE y.k = x.k"
    " AND z.a <= x.a) ORDER BY x.k",
    "SELECT count(*) FROM (SELECT FROM {0} AS x WHERE x.a < {4}) AS p"
    " FULL JOIN (SELECT FROM {1} AS y WHERE y.a < 3) AS q ON true",
    f"SELECT l.k, q.s FROM {NEAR} AS l LEFT JOIN LATERAL (SELECT x.k + l.k AS s FROM {{0}} AS x"
    " JOIN {1} AS y ON y.k = x.k WHERE y.a <= l.a) AS q ON true WHERE l.k <= {4} + 3 ORDER BY 1, 2",
    f"SELECT l.k, x.b FROM {NEAR} AS l {{5}} {{0}} AS x ON x.k = l.k AND x.a <= l.k AND x.a + l.k > {{4}}"
    " ORDER BY l.k, x.k",
)
_CHANGES: Final = (
    "UPDATE {0} AS x SET c = y.c + {4}, d = z.d FROM {1} AS y JOIN {2} AS z ON z.k = y.k WHERE x.k = y.k + z.k",
    "UPDATE {0} AS x SET c = y.k FROM {1} AS y WHERE x.k = y.k AND {3} (SELECT FROM {2} AS z WHERE z.k = y.k)",
    "DELETE FROM {0} AS x USING {1} AS y WHERE x.k = y.k AND {3} (SELECT FROM {2} AS z WHERE z.k = y.k AND z.a > {4})",
    "DELETE FROM {0} AS x WHERE {3} (SELECT FROM {1} AS y JOIN {2} AS z ON z.k = y.k WHERE y.k = x.k)",
    "UPDATE {0} AS x SET (c, d) = (SELECT y.c, y.d FROM {1} AS y WHERE y.k = x.k) WHERE x.a > {4}",
)


def nested(rng: random.Random, scene: Scene) -> str:
    """Return a query, in total order if it has several rows."""
    return _filled(rng, pick(rng, _QUERIES), sources(rng, scene, 3))


def nested_change(rng: random.Random, scene: Scene, target: Relation) -> str:
    """Return an UPDATE or DELETE of a relation by two others, mostly foreign tables of its server."""
    others = [each for each in scene.readable if each.name != target.name]
    same = [each for each in others if each.server == target.server]
    return _filled(rng, pick(rng, _CHANGES), (target, *some(rng, same if len(same) > 1 else others, 2)))


def _filled(rng: random.Random, form: str, relations: Sequence[Relation]) -> str:
    join = pick(rng, ("JOIN", "LEFT JOIN", "JOIN" if NEAR in form else "FULL JOIN"))
    return form.format(*(each.name for each in relations), pick(rng, _ANY), between(rng, 0, 4), join)
