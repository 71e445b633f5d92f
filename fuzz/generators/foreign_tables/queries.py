"""Queries: joins, groups, unions and correlated subqueries of foreign tables, trees and the local table.

Conditions, targets and aggregates are of both kinds: those that postgres_fdw sends, and those that it executes locally.
"""

import random
from collections.abc import Sequence

from fuzz.generators.choices import Weighted, between, chance, pick, shuffled, some
from fuzz.generators.foreign_tables.conditions import condition, conditions_sent
from fuzz.generators.foreign_tables.nested import nested
from fuzz.generators.foreign_tables.own_objects import OWN_AGGREGATES, OWN_ORDERED
from fuzz.generators.foreign_tables.scene import COLUMNS, COSTLY, LOG, NEAR, VOLATILE, Relation, Scene, sources
from fuzz.generators.sql.digest import digest
from fuzz.generators.sql.predicates import where
from fuzz.generators.sql.queries import SORT_DIRECTIONS
from oracles.model.case import Kind, Step

_CONDITIONS = Weighted((40, 1), (35, 0), (25, 2))
_JOINS = Weighted((35, "JOIN"), (25, "LEFT JOIN"), (10, "RIGHT JOIN"), (20, "FULL JOIN"), (10, "SEMI"))
_RELATIONS = Weighted((20, 1), (50, 2), (30, 3))
_ON = Weighted(
    (45, "{0}.k = {1}.k"),
    (15, "{0}.k = {1}.a"),
    (15, "{0}.a = {1}.a AND {0}.k = {1}.k"),
    (10, "{0}.b = {1}.b AND {0}.k = {1}.k"),
    (8, "{0}.k = {1}.k + 1"),
    (7, "{0}.k + {0}.a = {1}.k"),
)
_TARGETS = (
    "{0}.k", "{0}.a", "{0}.b", "{0}.c", "{0}.d", "{0}.e", "{0}.e[2]", "{0}.e[:1]", "{0}.k + {0}.a", "upper({0}.b)",
    "CASE WHEN {0}.a > 3 THEN {0}.b END", "ARRAY[{0}.a, {0}.k]", "{0}.k::text", "{0}", "{0}.tableoid::regclass",
    "{0}.a IS NULL", "{0}.b COLLATE \"C\"",
)  # fmt: skip
_AGGREGATES = (
    "count(*)",
    "sum({0}.c)",
    "max({0}.b)",
    "avg({0}.a)",
    "count(DISTINCT {0}.a)",
    "sum({0}.k) FILTER (WHERE {0}.a > 2)",
    "string_agg({0}.b, ',' ORDER BY {0}.k)",
    "array_agg({0}.k ORDER BY {0}.k DESC NULLS LAST)",
    "string_agg({0}.b, '-' ORDER BY {0}.b USING OPERATOR(pg_catalog.~>~), {0}.k)",
    "array_agg(DISTINCT {0}.a ORDER BY {0}.a NULLS FIRST)",
    "percentile_disc(0.5) WITHIN GROUP (ORDER BY {0}.k)",
    "rank({3}) WITHIN GROUP (ORDER BY {0}.a)",
    "bool_and({0}.k > {3})",
    "string_agg({0}.k::text, ',' ORDER BY {0}.k)",
    "array_agg({0}.k ORDER BY {0}.k % 3, {0}.k)",
    "string_agg({0}.b, ',' ORDER BY 'x'::text, {0}.k)",
    "count(*) FILTER (WHERE {0}.k::text > '{3}')",
    "rank({3}, 'v1') WITHIN GROUP (ORDER BY {0}.a, {0}.b)",
)
_KEYS = ("{0}.a", "{0}.b", "{0}.d", "{0}.k % 5", "{0}.a IS NULL", "{0}.e[1]")
_HAVING = (
    "count(*) > {1}",
    "sum({0}.k) > {1} AND count(*) < 100",
    "max({0}.k)::text LIKE '%2%'",
    "min({0}.a) = {1}",
    "max({0}.k::text) > '{1}'",
)
_LOCKS = ("UPDATE", "SHARE", "NO KEY UPDATE", "KEY SHARE")
_ALIASES = ("x", "y", "z")


def query(rng: random.Random, scene: Scene) -> Step:
    """Return a query."""
    tag, make = _QUERIES.pick(rng)
    sql, ordered, params = make(rng, scene)
    return Step(sql, Kind.QUERY, ordered=ordered, params=params, tags=(tag,))


_Query = tuple[str, bool, tuple[str, ...]]  # statement, whether its order is total, parameters


def _conditions(rng: random.Random, scene: Scene, aliases: Sequence[str]) -> list[str]:
    return [condition(rng, scene, pick(rng, aliases)) for _ in range(_CONDITIONS.pick(rng))]


def _joined(rng: random.Random, scene: Scene) -> tuple[str, tuple[str, ...], list[str]]:
    """Return a FROM clause, its aliases, and conditions for WHERE."""
    first, *others = sources(rng, scene, _RELATIONS.pick(rng))
    aliases, conditions = [_ALIASES[0]], []
    sql = _side(rng, scene, first, aliases[0])
    for alias, relation in zip(_ALIASES[1:], others, strict=False):
        kind, on = _JOINS.pick(rng), _ON.pick(rng).format(pick(rng, aliases), alias)
        if kind == "SEMI":
            # postgres_fdw cannot send a clause of two collations, but sends the semi join (corpus/README.md).
            on = f"{aliases[-1]}.k = {alias}.k" if ".b" in on else on
            own = where([on, *_conditions(rng, scene, [alias])])
            head = pick(rng, ("EXISTS", "NOT EXISTS"))
            conditions.append(f"{head} (SELECT FROM {relation.name} AS {alias}{own})")
            continue
        if kind not in ("FULL JOIN", "RIGHT JOIN") and chance(rng, 25):
            by_rows = f"({aliases[-1]}.k, {alias}.a) < ({alias}.k, 5)"
            on += f" AND {by_rows if chance(rng, 15) else condition(rng, scene, alias)}"
        limited = 60 if kind == "FULL JOIN" else 20
        sql = f"{sql} {kind} {_side(rng, scene, relation, alias, limited)} ON {on}"
        aliases.append(alias)
    if chance(rng, 10):
        inner = pick(rng, scene.foreign).name
        conditions.append(f"{aliases[0]}.k {pick(rng, ('IN', 'NOT IN'))} (SELECT k FROM {inner} WHERE a > 2)")
    return sql, tuple(aliases), conditions + _conditions(rng, scene, aliases)


def _side(rng: random.Random, scene: Scene, relation: Relation, alias: str, limited: int = 20) -> str:
    """Return a relation, or with a chance of `limited` percent a subquery with a condition on it."""
    if not chance(rng, limited):
        return f"{relation.name} AS {alias}"
    return f"(SELECT {COLUMNS} FROM {relation.name} AS i WHERE {condition(rng, scene, 'i')}) AS {alias}"


def _targets(rng: random.Random, sql: str, aliases: Sequence[str]) -> list[str]:
    """Return one to three expressions on relations of a FROM clause. Subqueries have no system columns."""
    stored = [alias for alias in aliases if f") AS {alias}" not in sql]
    forms = [(pick(rng, _TARGETS), pick(rng, aliases)) for _ in range(between(rng, 1, 3))]
    return [form.format(alias) for form, alias in forms if alias in stored or "tableoid" not in form] or ["1"]


def _order(rng: random.Random, aliases: Sequence[str], first: Sequence[str] = ()) -> str:
    keys = (*first, *(f"{alias}.k" for alias in shuffled(rng, aliases)))
    return f" ORDER BY {', '.join(f'{key}{SORT_DIRECTIONS.pick(rng)}' for key in keys)}"


def _limit(rng: random.Random) -> str:
    offset = f" OFFSET {between(rng, 1, 20)}" if chance(rng, 30) else ""
    return f" LIMIT {between(rng, 1, 20)}{offset}"


def ordered(rng: random.Random, scene: Scene) -> str:
    """Return a join in total order, mostly with LIMIT."""
    sql, aliases, conditions = _joined(rng, scene)
    keys = [f"{alias}.k" for alias in aliases]
    targets = _targets(rng, sql, aliases)
    first = [pick(rng, ("{0}.a", "{0}.b", "{0}.d")).format(pick(rng, aliases))] if chance(rng, 40) else []
    rows = f"SELECT {', '.join((*keys, *targets))} FROM {sql}{where(conditions)}{_order(rng, aliases, first)}"
    return rows + (_limit(rng) if chance(rng, 70) else "")


def _ordered(rng: random.Random, scene: Scene) -> _Query:
    return ordered(rng, scene), True, ()


def _projected(rng: random.Random, scene: Scene) -> _Query:
    """Return a query of one relation in an order or of a form that postgres_fdw sends in part."""
    relation, other = (pick(rng, scene.foreign).name for _ in range(2))
    if scene.own and chance(rng, 50):
        return pick(rng, OWN_ORDERED).format(relation), True, ()
    few = between(rng, 1, 9)
    form = pick(
        rng,
        (
            f"SELECT x.k, generate_series(1, 2) AS n FROM {relation} AS x ORDER BY x.k, 2 LIMIT {few}",
            f"SELECT x.a FROM {relation} AS x ORDER BY x.a FETCH FIRST {few} ROWS WITH TIES",
            f"SELECT x.a, count(*) FROM {relation} AS x GROUP BY x.a ORDER BY count(*)::text, x.a",
            f"SELECT x.b::varchar FROM {relation} AS x GROUP BY x.b::varchar ORDER BY x.b::varchar",
            f"SELECT 1 AS n, x.k FROM {relation} AS x UNION ALL SELECT 2, y.k FROM {other} AS y ORDER BY n, k",
            f"SELECT l.k, (SELECT sum(x.k) FROM {relation} AS x GROUP BY l.k) FROM {NEAR} AS l"
            f" ORDER BY l.k LIMIT {few}",
            f"SELECT l.k, s.b FROM {NEAR} AS l LEFT JOIN (SELECT x.k, x.b FROM {relation} AS x"
            f" WHERE EXISTS (SELECT FROM {other} AS y WHERE y.k = x.k)) AS s ON s.k = l.k ORDER BY l.k",
            f"SELECT f.k, s.b FROM {other} AS f LEFT JOIN (SELECT x.k, x.b FROM {relation} AS x"
            f" WHERE EXISTS (SELECT FROM {other} AS y WHERE y.k = x.k)) AS s ON s.k = f.k ORDER BY f.k",
            f"SELECT s.k, f.b FROM (SELECT x.k, x.b FROM {relation} AS x WHERE EXISTS"
            f" (SELECT FROM {other} AS y WHERE y.k = x.k)) AS s LEFT JOIN {other} AS f ON f.k = s.k ORDER BY s.k",
            f"SELECT x.k, {COSTLY}(x.k) FROM {relation} AS x ORDER BY x.k LIMIT {few}",
            f"SELECT x.a, {COSTLY}(x.a) FROM {relation} AS x GROUP BY x.a ORDER BY x.a LIMIT {few}",
            f"SELECT x.a, count(*) FROM {relation} AS x GROUP BY x.a ORDER BY {VOLATILE}(x.a), x.a",
            f"SELECT x.k, x.b FROM {relation} AS x ORDER BY x.k LIMIT {VOLATILE}({few})",
        ),
    )
    return form, True, ()


def _digested(rng: random.Random, scene: Scene) -> _Query:
    sql, aliases, conditions = _joined(rng, scene)
    targets = _targets(rng, sql, aliases)
    head = "SELECT DISTINCT" if chance(rng, 20) else "SELECT"
    named = ", ".join(f"{target} AS c{number}" for number, target in enumerate(targets))
    return digest(f"{head} {named} FROM {sql}{where(conditions)}"), False, ()


def _filtered(rng: random.Random, scene: Scene) -> _Query:
    """Return the number of rows for each of several conditions, which are sent together or not at all."""
    relation = pick(rng, scene.foreign)
    counts = [f"count(*) FILTER (WHERE {each})" for each in conditions_sent(rng, scene, "x", between(rng, 3, 6))]
    group = " GROUP BY x.a" if chance(rng, 50) else ""
    return f"SELECT {', '.join(counts)} FROM {relation.name} AS x{group}", False, ()


def _nested(rng: random.Random, scene: Scene) -> _Query:
    sql = nested(rng, scene)
    return sql, "ORDER BY" in sql, ()


def _aggregates(scene: Scene) -> Sequence[str]:
    return (*_AGGREGATES, *OWN_AGGREGATES) if scene.own else _AGGREGATES


def _grouped(rng: random.Random, scene: Scene) -> _Query:
    sql, aliases, conditions = _joined(rng, scene)
    alias = pick(rng, aliases)
    keys = [pick(rng, _KEYS).format(pick(rng, aliases)) for _ in range(between(rng, 0, 2))]
    number = rng.randrange(8)
    aggregates = [form.format(alias, "", "", number) for form in some(rng, _aggregates(scene), between(rng, 1, 3))]
    grouping = "ROLLUP ({})" if chance(rng, 8) else "{}"
    group = f" GROUP BY {grouping.format(', '.join(keys))}" if keys else ""
    having = f" HAVING {pick(rng, _HAVING).format(alias, between(rng, 0, 3))}" if chance(rng, 40) else ""
    rows = f"SELECT {', '.join((*keys, *aggregates))} FROM {sql}{where(conditions)}{group}{having}"
    if keys and grouping == "{}" and chance(rng, 40):
        by_aggregate = [len(keys) + 1] if chance(rng, 40) else []
        outputs = (*by_aggregate, *range(1, len(keys) + 1))
        order = ", ".join(f"{n}{SORT_DIRECTIONS.pick(rng)}" for n in outputs)
        return f"{rows} ORDER BY {order}{_limit(rng) if chance(rng, 50) else ''}", True, ()
    return rows, False, ()


def _united(rng: random.Random, scene: Scene) -> _Query:
    """Return a UNION ALL of two to four relations, read or grouped. Its scans may be asynchronous."""
    branches = [
        f"SELECT {n} AS n, x.k, x.a, x.b FROM {pick(rng, scene.readable).name} AS x"
        f"{where(_conditions(rng, scene, ['x']))}"
        for n in range(between(rng, 2, 4))
    ]
    union = " UNION ALL ".join(branches)
    form = pick(
        rng,
        (
            f"SELECT q.a, count(*), sum(q.k) FROM ({union}) AS q GROUP BY q.a",
            digest(union),
            f"SELECT q.n, q.k, l.b FROM ({union}) AS q JOIN {NEAR} AS l ON l.k = q.k",
            f"SELECT l.k, (SELECT count(*) FROM ({union}) AS q WHERE q.k <= l.k AND q.a = l.a) FROM {NEAR} AS l"
            f" WHERE l.k <= {between(rng, 1, 20)}",
        ),
    )
    return form, False, ()


def _of_a_tree(rng: random.Random, scene: Scene) -> _Query:
    """Return a query of a tree or its join with another relation, in no order, so that its scans are asynchronous."""
    tree, other = pick(rng, scene.trees or scene.foreign), pick(rng, scene.readable)
    conditions = where(_conditions(rng, scene, ["x"]))
    form = pick(
        rng,
        (
            digest(f"SELECT x.k, x.a, x.b, x.e FROM {tree.name} AS x{conditions}"),
            f"SELECT x.a, x.tableoid::regclass, count(*), max(x.b) FROM {tree.name} AS x{conditions} GROUP BY 1, 2",
            digest(f"SELECT x.k, y.b FROM {tree.name} AS x JOIN {other.name} AS y USING (a, k){conditions}"),
            f"SELECT l.k, (SELECT sum(x.k) FROM {tree.name} AS x WHERE x.a = l.a) FROM {NEAR} AS l WHERE l.k < 12",
            f"SELECT l.k, x.b FROM {NEAR} AS l LEFT JOIN {tree.name} AS x ON x.a = l.a AND x.k = l.k WHERE l.k < 30",
        ),
    )
    return form, False, ()


def _sorted_tree(rng: random.Random, scene: Scene) -> _Query:
    """Return a query of a tree or of its join in total order, for which each partition may be sorted where it is."""
    tree, other = pick(rng, scene.trees or scene.foreign), pick(rng, scene.readable)
    conditions = where(_conditions(rng, scene, ["x"]))
    first = pick(rng, ((), (), ("x.a",), ("x.b", "x.a")))
    form, aliases = pick(
        rng,
        (
            (f"SELECT x.k, x.a, x.b FROM {tree.name} AS x{conditions}", ("x",)),
            (f"SELECT x.k, x.c FROM {tree.name} AS x{conditions}", ("x",)),
            (f"SELECT x.k, y.k, y.b FROM {tree.name} AS x JOIN {other.name} AS y ON y.k = x.k{conditions}", ("x", "y")),
        ),
    )
    return f"{form}{_order(rng, aliases, first)}{_limit(rng) if chance(rng, 40) else ''}", True, ()


def _correlated(rng: random.Random, scene: Scene) -> _Query:
    """Return a query whose foreign scan has parameters from a local table."""
    first = sources(rng, scene, 2)
    inner, other = first[0], first[-1]
    own = condition(rng, scene, "x", keys="l.k")
    form = pick(
        rng,
        (
            f"SELECT l.k, (SELECT max(x.b) FROM {inner.name} AS x WHERE x.a = l.a AND {own}) FROM {NEAR} AS l",
            f"SELECT l.k, s.n, s.t FROM {NEAR} AS l, LATERAL (SELECT count(*) AS n, sum(y.k + l.k) AS t"
            f" FROM {inner.name} AS x JOIN {other.name} AS y ON y.k = x.k AND y.a < l.k) AS s",
            f"SELECT l.k, q.s FROM {NEAR} AS l LEFT JOIN LATERAL (SELECT x.k + l.k AS s FROM {inner.name} AS x"
            f" JOIN {other.name} AS y ON y.k = x.k WHERE x.k < 9) AS q ON true",
            f"SELECT l.k, x.b, x.c FROM {NEAR} AS l JOIN {inner.name} AS x ON x.k = l.k + l.a",
            f"SELECT l.k, s.k AS x FROM {NEAR} AS l LEFT JOIN LATERAL (SELECT x.k FROM {inner.name} AS x"
            f" WHERE {own} ORDER BY x.k LIMIT 2) AS s ON true",
            f"SELECT l.k FROM {NEAR} AS l WHERE EXISTS (SELECT FROM {inner.name} AS x WHERE x.a = l.a AND {own})",
            f"SELECT l.k, ARRAY(SELECT x.k FROM {inner.name} AS x WHERE x.b = l.b ORDER BY x.k LIMIT 3)"
            f" FROM {NEAR} AS l",
        ),
    )
    few = f" {'AND' if 'AS l WHERE' in form else 'WHERE'} l.k <= {between(rng, 1, 30)}"
    return f"{form}{few}", False, ()


def _locked(rng: random.Random, scene: Scene) -> _Query:
    first, *others = sources(rng, scene, between(rng, 1, 2))
    sql, aliases = f"{first.name} AS x", ["x"]
    for other in others:
        sql, aliases = f"{sql} JOIN {other.name} AS y ON {_ON.pick(rng).format('x', 'y')}", ["x", "y"]
    keys = ", ".join(f"{alias}.k" for alias in aliases)
    lock = f"FOR {pick(rng, _LOCKS)} OF {pick(rng, aliases)}"
    local = ["(x.k, y.a) < (y.k, 5)"] if others and chance(rng, 30) else []  # a condition of both that is not sent
    conditions = where([*local, *_conditions(rng, scene, aliases)])
    return f"SELECT {keys}, x.b FROM {sql}{conditions}{_order(rng, aliases)} {lock}", True, ()


def _with_parameters(rng: random.Random, scene: Scene) -> _Query:
    sql, aliases, conditions = _joined(rng, scene)
    alias = pick(rng, aliases)
    conditions.append(
        pick(rng, ("{0}.k < $1::int", "{0}.a + $1::int > 3", "{0}.k = ANY (ARRAY[$1::int, 3, {0}.a])")).format(alias)
    )
    group = f"SELECT {alias}.a, count(*), sum({alias}.k + $2::int) FROM {sql}{where(conditions)} GROUP BY 1"
    return group, False, (str(between(rng, 1, scene.keys)), str(rng.randrange(8)))


def _log(rng: random.Random, scene: Scene) -> _Query:
    return f"SELECT op, count(*), sum(k), sum(c) FROM {LOG} GROUP BY op", False, ()


_QUERIES = Weighted(
    (22, ("ordered", _ordered)),
    (14, ("digested", _digested)),
    (13, ("projected", _projected)),
    (18, ("grouped", _grouped)),
    (8, ("filtered", _filtered)),
    (8, ("nested", _nested)),
    (10, ("united", _united)),
    (10, ("tree", _of_a_tree)),
    (8, ("sorted tree", _sorted_tree)),
    (12, ("correlated", _correlated)),
    (5, ("locked", _locked)),
    (5, ("parameters", _with_parameters)),
    (2, ("log", _log)),
)
