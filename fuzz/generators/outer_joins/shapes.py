"""Shapes of queries: rescans of the join under test, and the clauses above it.

A shape has the name of the construct that makes the executor rescan a plan. It returns None if it does not permit the
kind of join.
"""

import random
from collections.abc import Callable
from dataclasses import replace

from fuzz.generators.choices import Weighted, between, chance, pick
from fuzz.generators.outer_joins.levels import level
from fuzz.generators.outer_joins.scene import Scene, key_of
from fuzz.generators.sql.items import derived, listed, ordered
from fuzz.generators.sql.joins import Joined
from fuzz.generators.sql.queries import LEVEL_TOPS, Level, Select, aggregate
from fuzz.generators.sql.scope import Column, Relation, RowSource, Scope
from fuzz.generators.sql.sqltypes import INT4, INT8

# Arguments: randomness, scene, kind of join, upper bound of relations.
Shape = Callable[[random.Random, Scene, str, int], Select | None]

_SHOWN = 6  # upper bound of the columns of keyed rows
_UNREACHED = 10_000_000  # more rows than any join has


def keyed(rng: random.Random, level: Level) -> Select:
    """Return a query for keys, row numbers and ends of wide columns, so that mixed-up rows are detected."""
    outputs = [column.sql for relation in level.joined.relations for column in _key_columns(relation)][:_SHOWN]
    outputs += [f"right({column.sql}, 8)" for column in _wide(level)]
    return Select(tuple(outputs), level.sql, level.joined.rows, level.joined.kinds)


def _key_columns(relation: Relation) -> list[Column]:
    narrow = [column for column in relation.columns if not column.wide]
    return [column for column in narrow if column.name in ("k1", "i1")] or narrow


def _wide(level: Level) -> list[Column]:
    return [column for relation in level.joined.relations for column in relation.columns if column.wide]


def totalled(rng: random.Random, level: Level) -> Select:
    """Return a query with one row of aggregates over all rows."""
    columns = [column for relation in level.joined.relations for column in relation.columns]
    numbers = [column for column in columns if column.family == "int" and column.name not in ("k1", "k2", "i3")]
    outputs = ["count(*)", *(f"sum({column.sql})" for column in numbers[: 2 * _SHOWN])]
    outputs += [f"sum(length({column.sql}))" for column in _wide(level)]
    return Select(tuple(outputs), level.sql, 1, level.joined.kinds)


def _limited(rng: random.Random, level: Level) -> Select:
    """Return a query that counts rows up to a LIMIT.

    The count does not depend on which rows they are, so no sort has to read all rows. Below a LIMIT that is never
    reached, processes send all rows, with a wide column, to the leader.
    """
    if chance(rng, 30):
        return Select((f"EXISTS (SELECT{level.sql})",), "", 1, level.joined.kinds)
    wide = _wide(level)
    text, always = (wide[0].sql, "length(w) >= 0 OR w IS NULL") if wide else ("1", "true")
    limit = f"LIMIT {_UNREACHED if chance(rng, 30) else between(rng, 1, 40)}"
    offset = f" OFFSET {between(rng, 1, 99)}" if chance(rng, 30) else ""
    body = f"SELECT {text} AS w{level.sql} {limit}{offset}"
    return Select((f"count({always})",), f" FROM ({body}) AS q", 1, level.joined.kinds)


def _other(rng: random.Random, level: Level) -> Select:
    return LEVEL_TOPS.pick(rng)(rng, level)


_TOPS = Weighted((44, keyed), (22, totalled), (20, _other), (14, _limited))


def _once(rng: random.Random, scene: Scene, kind: str, most: int) -> Select:
    return _TOPS.pick(rng)(rng, level(rng, scene, Scope(()), kind, most))


def _rescanned(driver: Relation, relation: Relation, kind: str, condition: str = "") -> Level:
    """Return a FROM list that rescans the relation for each row of the driver."""
    words = f"LEFT JOIN {relation.sql} ON {condition}" if condition else f"CROSS JOIN {relation.sql}"
    rows = driver.rows * (relation.rows + 1)
    sql = f"{driver.sql} {words}"
    joined = Joined(sql, (driver, relation), rows, (kind, "lateral"))
    return Level(Scope(()).over(joined.relations, rows), joined, f" FROM {sql}")


def _series(rng: random.Random, scope: Scope) -> Relation:
    first, alias = rng.randrange(10), scope.alias(0)
    count = between(rng, 2, 5)
    column = Column(f"{alias}.i2", "i2", INT4, 1, 20)
    return Relation(f"generate_series({first}, {first + count - 1}) AS {alias} (i2)", alias, (column,), count)


def _result(rng: random.Random, inner: Level, alias: str, prefix: str) -> Relation:
    """Return a query as a FROM item: one row of totals, or its first few rows."""
    numbers = [column for relation in inner.joined.relations for column in relation.columns if column.name == "i1"][:2]
    if chance(rng, 60):
        columns = (
            Column("count(*)", "i8", INT8, 1, inner.joined.rows),
            *(replace(column, sql=f"sum({column.sql})", name=f"i{n}") for n, column in enumerate(numbers, 4)),
            *(
                Column(f"sum(length({column.sql}))", f"i{n}", INT8, 1, 1000)
                for n, column in enumerate(_wide(inner)[:2], 6)
            ),
        )
        return derived(alias, f"SELECT {listed(columns)}{inner.sql}", columns, 1, prefix=prefix)
    columns = tuple(replace(column, name=f"i{n}") for n, column in enumerate(numbers, 4))
    limit = between(rng, 1, 40)
    body = f"SELECT {listed(columns)}{inner.sql} {ordered(columns)} LIMIT {limit}"
    return derived(alias, body, columns, limit, prefix=prefix)


def _lateral(rng: random.Random, scene: Scene, kind: str, most: int) -> Select:
    driver = _series(rng, Scope(()))
    return _per_row(rng, scene, kind, most, driver, driver.columns[0])


def _memoize(rng: random.Random, scene: Scene, kind: str, most: int) -> Select:
    """Return a join executed for each row of a driver with few distinct values, so that Memoize may keep results."""
    table = pick(rng, [source for source in scene.sources if source.stored]).relation("a1")
    columns = tuple(column for column in table.columns if column.name in ("i1", "i3"))
    body = f"SELECT {listed(columns)} FROM {table.sql} WHERE a1.i1 <= {between(rng, 6, 16)}"
    driver = derived("a1", body, columns, 16)
    return _per_row(rng, scene, kind, most, driver, driver.columns[-1])


def _per_row(rng: random.Random, scene: Scene, kind: str, most: int, driver: Relation, given: Column) -> Select:
    inner = level(rng, scene, Scope(()).inner(), kind, min(most, 3), given.sql)
    relation = _result(rng, inner, "a2", "LATERAL ")
    # Other queries might not use all columns, so the planner could remove a left join.
    top = pick(rng, (keyed, totalled))
    return top(rng, _rescanned(driver, relation, kind, pick(rng, ("", "true", f"{given.sql} > 2"))))


def _subplan(rng: random.Random, scene: Scene, kind: str, most: int) -> Select:
    driver = _series(rng, Scope(()))
    inner = level(rng, scene, Scope(()).inner(), kind, min(most, 3), driver.columns[0].sql)
    values = [aggregate(rng, inner.scope), *(f"sum(length({column.sql}))" for column in _wide(inner))]
    value = f"(SELECT ({', '.join(values)})::text{inner.sql})"
    if chance(rng, 30):
        value = f"EXISTS (SELECT{inner.sql})"
    return Select((driver.columns[0].sql, value), f" FROM {driver.sql}", driver.rows, (kind,))


def _loop(rng: random.Random, scene: Scene, kind: str, most: int) -> Select:
    """Return a join rescanned without a changed parameter, so that the executor may reuse its hash table."""
    driver = _series(rng, Scope(()))
    inner = level(rng, scene, Scope(()).inner(), kind, min(most, 3))
    numbers = [column for relation in inner.joined.relations for column in relation.columns if column.name == "i2"]
    columns = (
        *(replace(column, name=f"i{n}") for n, column in enumerate(numbers[:2], 4)),
        *(replace(column, sql=f"right({column.sql}, 9)", name=f"w{n}") for n, column in enumerate(_wide(inner), 4)),
    )
    body = f"SELECT {listed(columns)}{inner.sql} OFFSET 0"
    relation = derived("a2", body, columns, inner.joined.rows)
    return totalled(rng, _rescanned(driver, relation, kind, f"{driver.columns[0].sql} {pick(rng, ('<', '<>'))} a2.i4"))


def _recursive(rng: random.Random, scene: Scene, kind: str, most: int) -> Select | None:
    """Return a join executed once per level of a recursion, over the rows of the previous level."""
    if kind not in _RECURSIVE:
        return None
    first, second = pick(rng, scene.sources).relation("a1"), pick(rng, scene.light).relation("a2")
    start = f"SELECT a1.k1, a1.i1, 0 AS i2 FROM {first.sql} WHERE a1.i1 <= {between(rng, 10, 200)}"
    step = _RECURSIVE[kind].format(second.sql, "c.k1 = a2.k1")
    number = "a2.i1 + length(a2.w1) % 3" if kind in ("inner", "left", "right") else "c.i1"
    body = f"{start} UNION ALL SELECT c.k1, {number}, c.i2 + 1 {step} c.i2 < {between(rng, 1, 3)}"
    rows = 200 * key_of(second.columns).fan ** 3
    select: Select = Select(("k1", "i1", "i2"), " FROM c", rows, (kind, "recursive"))
    return select.within(f"WITH RECURSIVE c (k1, i1, i2) AS ({body}) ")


_RECURSIVE = {
    "left": "FROM c LEFT JOIN {} ON {} WHERE",
    "right": "FROM {} RIGHT JOIN c ON {} WHERE",
    "inner": "FROM c JOIN {} ON {} WHERE",
    "semi": "FROM c WHERE EXISTS (SELECT FROM {} WHERE {}) AND",
    "anti": "FROM c WHERE NOT EXISTS (SELECT FROM {} WHERE {}) AND",
}


def _cte(rng: random.Random, scene: Scene, kind: str, most: int) -> Select:
    """Return a join over a materialized CTE that is a join itself. Each reference reads the CTE from its beginning."""
    inner = level(rng, scene, Scope(()).inner(), kind, 2)
    chosen = [
        column for column in inner.joined.relations[0].columns if column.name in ("k1", "i1", "i2", "i3", "w1", "w2")
    ]
    named = tuple(replace(column, sql=f"@{column.name}") for column in chosen)
    rows, fan = inner.joined.rows, inner.joined.rows
    stored = RowSource("c", tuple(replace(column, fan=fan) for column in named), rows, stored=False)
    above = level(rng, replace(scene, sources=(stored, *scene.light)), Scope(()), kind, 2)
    prefix = f"WITH c AS MATERIALIZED (SELECT {listed(chosen)}{inner.sql}) "
    return _TOPS.pick(rng)(rng, above).within(prefix)


# By kind of rescan.
SHAPES: dict[str, Shape] = {
    "none": _once,
    "lateral": _lateral,
    "subplan": _subplan,
    "loop": _loop,
    "memoize": _memoize,
    "recursive": _recursive,
    "cte": _cte,
}
RESCANS = Weighted(
    (58, "none"), (9, "lateral"), (6, "subplan"), (7, "loop"), (7, "memoize"), (5, "recursive"), (8, "cte")
)
_RESCANS_POOLED = Weighted((82, "none"), (4, "lateral"), (6, "loop"), (8, "cte"))


def draw_rescan(rng: random.Random, scene: Scene) -> str:
    """Return the name of a shape. In a pooled scene, mostly one that parallel processes can execute together."""
    return (_RESCANS_POOLED if scene.axes.pooled else RESCANS).pick(rng)
