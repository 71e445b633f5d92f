"""FROM lists with one join of a given kind over the case's key, and other joins nested in one of its sides.

Sides of a join are tables, and subqueries over them whose rows or width the planner misestimates.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from fuzz.generators.choices import Weighted, between, chance, pick, some
from fuzz.generators.outer_joins.axes import Axes
from fuzz.generators.outer_joins.scene import Scene, key_of
from fuzz.generators.sql.expressions import constant
from fuzz.generators.sql.items import derived, listed
from fuzz.generators.sql.joins import Joined
from fuzz.generators.sql.predicates import predicate, where
from fuzz.generators.sql.queries import Level
from fuzz.generators.sql.scope import Column, Relation, Scope
from fuzz.generators.sql.sqltypes import TEXT

_TABLES_FILL = 256  # kB of memory that plain tables can fill
# upper bound in bytes of the rows of a hash table that outgrows its estimate
_MOST_FILLED = 1_000_000
# upper bound of a row's width, in units of 32 bytes, because wider rows take too much time
_LONGEST = 400


@dataclass(frozen=True, slots=True)
class Side(Joined):
    """One side of a join. `fan` is an upper bound of rows per key."""

    fan: int = 1


def side_of(rng: random.Random, axes: Axes, relation: Relation) -> Side:
    """Return a side of one relation, plain or in a subquery."""
    made = _makers(axes).pick(rng)(rng, axes, relation)
    return Side(made.sql, (made,), made.rows, fan=key_of(made.columns).fan)


def _table(rng: random.Random, axes: Axes, relation: Relation) -> Relation:
    return relation


def _subquery(relation: Relation, columns: tuple[Column, ...], conditions: list[str]) -> Relation:
    """Return a subquery that is not pulled up, so joins above it carry its computed columns."""
    body = f"SELECT {listed(columns)} FROM {relation.sql}{where(conditions)} OFFSET 0"
    return derived(relation.alias, body, columns, relation.rows)


def _misjudged(rng: random.Random, axes: Axes, relation: Relation) -> Relation:
    """Return a relation with more rows than estimated.

    Its conditions are correlated, or have no statistics.
    """
    numbers = {name: column.sql for name in ("i1", "i2", "i3") if (column := relation.named(name))}
    condition = pick(
        rng,
        (
            "{i2} * 2 % 2 = 0",
            "{i1} / 1 <= {i1} % 10000",
            "{i2} < 8 AND {i3} < 2 AND {i2} / 4 < 2",
            "{i3} = {i2} / 4",
            "coalesce({i1}, 1) + {i2} = coalesce({i1}, 1) + {i2}",
        ),
    )
    return _subquery(relation, relation.columns, [condition.format(**numbers)])


def _widened(rng: random.Random, axes: Axes, relation: Relation) -> Relation:
    """Return a relation with a text column of unknown width, which fills memory once or twice if possible."""
    if relation.named("w2"):
        return relation
    filled = min(axes.memory.bytes, _MOST_FILLED) if axes.sized else axes.memory.bytes
    times = filled * between(rng, 3, 6) // 3 // (32 * max(1, relation.rows)) + 1
    times = times if times <= _LONGEST else 9
    wide = Column(f"repeat(md5({relation.alias}.i1::text), {times})", "w2", TEXT, relation.rows, 0, wide=True)
    return _subquery(relation, (*relation.columns[:5], wide), [])


def _pulled_up(relation: Relation, condition: str) -> Relation:
    """Return some of the rows, by a subquery that the planner pulls up."""
    body = f"SELECT {listed(relation.columns)} FROM {relation.sql} WHERE {condition}"
    return derived(relation.alias, body, relation.columns, relation.rows)


def _restricted(rng: random.Random, axes: Axes, relation: Relation) -> Relation:
    return _pulled_up(relation, predicate(rng, Scope(()).over((relation,), relation.rows)))


def _slow_scan(rng: random.Random, axes: Axes, relation: Relation) -> Relation:
    """Return a relation with slow rows, so that processes of a parallel scan take turns."""
    if axes.sized and relation.rows > _MOST_HALTED:
        return _late_process(rng, axes, relation)
    return _slow(relation, "i2", between(rng, 0, 19), "0.0005")


_MOST_HALTED = 5000  # rows, of which a 20th is slow


def _late_process(rng: random.Random, axes: Axes, relation: Relation) -> Relation:
    """Return a relation with one very slow row, so that one process is late with the rest of the first page.

    Meanwhile the others read all other rows, even processes that start late. The first page has rows with small keys,
    which have matches if any row has.
    """
    return _slow(relation, "i1", between(rng, 1, 9), "0.03")


def _slow(relation: Relation, name: str, value: int, seconds: str) -> Relation:
    number = relation.named(name)
    assert number is not None
    halt = f"CASE WHEN {number.sql} = {value} THEN pg_sleep({seconds})::text ELSE '' END IS NOT NULL"
    return _pulled_up(relation, halt)


_Maker = Callable[[random.Random, Axes, Relation], Relation]
_ANY: Weighted[_Maker] = Weighted((42, _table), (34, _widened), (18, _misjudged), (6, _restricted))
_FILLING: Weighted[_Maker] = Weighted((24, _table), (60, _widened), (10, _misjudged), (6, _restricted))
_SHARED_SCANS: Weighted[_Maker] = Weighted((22, _table), (18, _slow_scan), (52, _late_process), (8, _restricted))
_MOSTLY_PLAIN: Weighted[_Maker] = Weighted((70, _table), (12, _widened), (8, _misjudged), (10, _restricted))


def _makers(axes: Axes) -> Weighted[_Maker]:
    """Return weighted constructors of sides for the axes.

    Subqueries hide partitions and frequent keys, but plain tables do not fill much memory. With Parallel Hash, several
    processes must be able to scan most sides together.
    """
    if axes.pooled:
        return _SHARED_SCANS
    if axes.memory.kilobytes > _TABLES_FILL and not (axes.partitioned or axes.sized):
        return _FILLING
    return _MOSTLY_PLAIN if axes.bare else _ANY


KINDS = Weighted(
    (18, "left"), (12, "inner"), (16, "full"), (14, "right"), (10, "semi"), (16, "anti"), (4, "not_in")
)  # fmt: skip
_KINDS_POOLED = Weighted((22, "left"), (22, "inner"), (12, "full"), (18, "right"), (12, "semi"), (14, "anti"))
_NESTED = Weighted((60, 2), (30, 3), (10, 4))
_MOST = 20_000  # upper bound of the rows of a FROM list
# upper bound of the pairs of rows that NOT IN compares, because with little memory its subplan is not hashed
_COMPARED = 200_000
_SQL = {"inner": "JOIN", "left": "LEFT JOIN", "right": "RIGHT JOIN", "full": "FULL JOIN"}


def draw_kind(rng: random.Random, axes: Axes) -> str:
    """Return a kind of join. In a pooled scene, it is one that processes can execute together."""
    return (_KINDS_POOLED if axes.pooled else KINDS).pick(rng)


def level(rng: random.Random, scene: Scene, scope: Scope, kind: str, most: int, parameter: str = "") -> Level:
    """Return a FROM list of two to `most` relations whose last join has this kind, with its WHERE.

    `parameter` is SQL of an integer of an outer level. Some condition uses it, so that each value needs a rescan.
    """
    inside = kind in ("semi", "anti", "not_in") and not (kind == "anti" and chance(rng, 25))
    left, right = _sides(rng, scene, scope, min(most, _NESTED.pick(rng)), inside=inside)
    if inside:
        return _filtered(rng, scene.axes, scope, kind, (left, right), parameter)
    side, missing = _attached(rng, scene.axes, left, right, kind, parameter)
    above = scope.over(side.relations, side.rows)
    conditions = _conditions(rng, above, parameter)
    if missing:
        conditions.append(f"{missing} IS NULL")
    return Level(above, side, f" FROM {side.sql}{where(conditions)}")


def _conditions(rng: random.Random, scope: Scope, parameter: str) -> list[str]:
    conditions = [predicate(rng, scope)] if chance(rng, 20) else []
    if parameter and chance(rng, 50):
        conditions.append(f"{pick(rng, _integers(scope.relations)).sql} {pick(rng, ('>=', '<>', '<'))} {parameter}")
    return conditions


def _sides(rng: random.Random, scene: Scene, scope: Scope, count: int, *, inside: bool) -> tuple[Side, Side]:
    """Return the two sides of a join. With more than two relations, one side is a join.

    At most one relation is heavy, that is, has many rows per key. Relations inside EXISTS or IN have aliases of the
    level below.
    """
    heavy = [source for source in scene.sources if source not in scene.light]
    first = pick(rng, heavy) if heavy and chance(rng, 60) else pick(rng, scene.sources)
    others = [source for source in scene.light if source.name != first.name]
    drawn = [first, *some(rng, others, count - 1)]
    alone = drawn.pop(rng.randrange(len(drawn)))
    tree: Side | None = None
    for n, source in enumerate(drawn):
        side = side_of(rng, scene.axes, source.relation(scope.alias(n)))
        tree = side if tree is None else _nested(rng, scene.axes, tree, side)
    assert tree is not None
    below = scope.inner() if inside else scope
    single = side_of(rng, scene.axes, alone.relation(below.alias(0 if inside else len(drawn))))
    return (tree, single) if inside or chance(rng, 50) else (single, tree)


def _nested(rng: random.Random, axes: Axes, left: Side, right: Side) -> Side:
    side, _ = _attached(rng, axes, left, right, pick(rng, ("inner", "left", "right", "full")), "")
    return replace(side, sql=f"({side.sql})") if side.rows <= _MOST else left


def _attached(rng: random.Random, axes: Axes, left: Side, right: Side, kind: str, parameter: str) -> tuple[Side, str]:
    """Return the joined sides, and the column whose IS NULL makes an anti join ("" for other kinds)."""
    condition, column = _condition(rng, axes, left.relations, right.relations, parameter)
    words = _SQL["left" if kind == "anti" else kind]
    matched = min(left.rows * right.fan, right.rows * left.fan)
    alone = (left.rows if kind in ("left", "full", "anti") else 0) + (right.rows if kind in ("right", "full") else 0)
    side = Side(
        f"{left.sql} {words} {right.sql} ON {condition}",
        left.relations + right.relations,
        matched + alone,
        (*left.kinds, *right.kinds, kind),
        fan=left.fan * right.fan,
    )
    return side, column if kind == "anti" else ""


def _filtered(
    rng: random.Random, axes: Axes, scope: Scope, kind: str, sides: tuple[Side, Side], parameter: str
) -> Level:
    """Return the rows of the left side with a match in the right side (semi join), or without one (anti join)."""
    left, right = sides
    above = scope.over(left.relations, left.rows)
    if kind == "not_in":
        within, match = _listed(rng, left, right)
        matching = f"{match} NOT IN {within}"
    elif chance(rng, 35):
        matching = _in(rng, axes, above, left, right, negated=kind == "anti")
    else:
        condition, _ = _condition(rng, axes, left.relations, right.relations, parameter)
        wide = [column.sql for relation in right.relations for column in relation.columns if column.wide]
        if wide and chance(rng, 45):  # makes hashed rows wide although none is output
            condition += f" AND length({wide[0]}) > {pick(rng, _integers(left.relations)).sql}"
        matching = f"{'NOT ' if kind == 'anti' else ''}EXISTS (SELECT 1 FROM {right.sql} WHERE {condition})"
    conditions = [*_conditions(rng, above, parameter), matching]
    return Level(above, replace(left, kinds=(*left.kinds, kind)), f" FROM {left.sql}{where(conditions)}")


def _in(rng: random.Random, axes: Axes, scope: Scope, left: Side, right: Side, *, negated: bool) -> str:
    """Return IN or = ANY. Negated, return NOT EXISTS, because only that is planned as an anti join."""
    outer, inner = (key_of(pick(rng, side.relations).columns) for side in (left, right))
    extra = [predicate(rng, scope.over(right.relations, right.rows))] if chance(rng, 40) else []
    if negated:
        return f"NOT EXISTS (SELECT FROM {right.sql}{where([f'{inner.sql} = {outer.sql}', *extra])})"
    return f"{outer.sql} {pick(rng, ('IN', '= ANY'))} (SELECT {inner.sql} FROM {right.sql}{where(extra)})"


def _listed(rng: random.Random, left: Side, right: Side) -> tuple[str, str]:
    """Return a short list of keys, perhaps with a NULL, and the key compared with it."""
    relation = right.relations[0]
    inner = key_of(relation.columns)
    numbers = relation.named("i1")
    assert numbers is not None
    conditions = [f"{numbers.sql} <= {max(1, min(relation.rows, _COMPARED // max(1, left.rows)))}"]
    if chance(rng, 70):
        conditions.append(f"{inner.sql} IS NOT NULL")
    return f"(SELECT {inner.sql} FROM {right.sql}{where(conditions)})", key_of(pick(rng, left.relations).columns).sql


def _integers(relations: tuple[Relation, ...]) -> list[Column]:
    return [column for relation in relations for column in relation.columns if column.name in ("i2", "i3")]


def _condition(
    rng: random.Random, axes: Axes, left: tuple[Relation, ...], right: tuple[Relation, ...], parameter: str
) -> tuple[str, str]:
    """Return a join condition, and its right-hand column, which is the operand of a strict operator."""
    ours, theirs = pick(rng, left), pick(rng, right)
    a, b = key_of(ours.columns).sql, key_of(theirs.columns).sql
    form = pick(rng, axes.key.forms) if chance(rng, 8 if axes.bare else 20) else "{}"
    sql = f"{form.format(a)} = {form.format(b)}"
    seconds = [relation.named("k2") for relation in (ours, theirs)]
    if all(seconds) and chance(rng, 22):
        sql += " AND " + " = ".join(column.sql for column in seconds if column)
    if chance(rng, 25):
        sql += f" AND {_beyond(rng, left, right)}"
    if parameter and chance(rng, 60):
        column = pick(rng, _integers(pick(rng, (left, right, right))))
        sql += f" AND {column.sql} {pick(rng, ('<>', '>='))} {parameter}"
    return sql, b


def _beyond(rng: random.Random, left: tuple[Relation, ...], right: tuple[Relation, ...]) -> str:
    """Return a condition over one or both sides that is no hash clause."""
    if chance(rng, 40):
        return predicate(rng, Scope(()).over(pick(rng, (left, right)), 1))
    a, b = pick(rng, _integers(left)), pick(rng, _integers(right))
    limit = constant(rng, Scope(()), "int", a)
    return pick(
        rng, (f"{a.sql} <> {b.sql}", f"{a.sql} + {b.sql} > {limit}", f"({a.sql} < {b.sql} OR {b.sql} = {limit})")
    )
