"""Queries of partition trees: scans, joins, subqueries that are rescanned, and their orders."""

import random
from collections.abc import Callable

from fuzz.generators.choices import Weighted, between, chance, pick, shuffled, some
from fuzz.generators.pruned_partitions.conditions import Drawing, comparison, condition, conditions, listed, staged
from fuzz.generators.pruned_partitions.scene import DRIVER, ROWS, Scene, Tree
from fuzz.generators.sql.queries import Select, ended
from oracles.model.case import Kind, Step

Shape = Callable[[Drawing], Select]
_PARAMS = 4


def query(rng: random.Random, scene: Scene) -> Step:
    """Return a query step."""
    drawing = Drawing(rng, scene, most=_PARAMS if chance(rng, 55) else 0)
    name, shape = SHAPES.pick(rng)
    select = shape(drawing)
    sql, ordered = in_order(drawing, select) if "id" in select.columns else ended(rng, select)
    return Step(sql, Kind.QUERY, params=tuple(drawing.params), ordered=ordered, tags=(name,))


def in_order(drawing: Drawing, select: Select) -> tuple[str, bool]:
    """Return the query of single rows, often in a total order, which an index or the bounds may supply."""
    rng = drawing.rng
    if not drawing.by_bounds and not chance(rng, 60):
        return ended(rng, select)
    if not drawing.by_bounds and chance(rng, 20):  # without LIMIT, the order of equal keys does not matter
        keys = drawing.tree.level.keys
        return f"{select.sql} ORDER BY {', '.join(key.of('a.') for key in keys)}", False
    return total(drawing, select), True


def total(drawing: Drawing, select: Select) -> str:
    """Return the query of single rows of a tree in a total order."""
    rng, tree = drawing.rng, drawing.tree
    any_names = some(rng, [column.name for column in drawing.scene.columns], between(rng, 0, 3))
    of_bounds = tuple(key.column.name for key in tree.level.keys if key.form == "{}")
    names = of_bounds if drawing.by_bounds else pick(rng, (any_names, of_bounds, of_bounds, *tree.orders))
    direction = pick(rng, ("", "", " DESC"))
    order = ", ".join(f"{name}{direction}" for name in dict.fromkeys((*names, "id")))
    limit = f" LIMIT {between(rng, 1, 25)}" if chance(rng, 50) else ""
    offset = f" OFFSET {between(rng, 1, 9)}" if limit and chance(rng, 20) else ""
    return f"{select.sql} ORDER BY {order}{limit}{offset}"


def tree_of(drawing: Drawing) -> Tree:
    """Return a tree, mostly the first one."""
    return drawing.scene.trees[1 if chance(drawing.rng, 35) else 0]


def _deepest(drawing: Drawing) -> Tree:
    """Return a tree, mostly the one with more levels, each of which may depend on another outer row."""
    first, second = sorted(drawing.scene.trees, key=lambda tree: len(list(tree.level.levels)))
    return second if chance(drawing.rng, 85) else first


def _outputs(drawing: Drawing, alias: str) -> tuple[str, ...]:
    names = [column.name for column in drawing.scene.columns]
    shown = shuffled(drawing.rng, [*names, "v"])[: between(drawing.rng, 1, len(names) + 1)]
    return ("id", *(f"{alias}.{name}" for name in shown), *_partition(drawing, alias))


def _partition(drawing: Drawing, alias: str) -> tuple[str, ...]:
    return (f"{alias}.tableoid::regclass::text",) if chance(drawing.rng, 40) else ()


def rows(drawing: Drawing) -> Select:
    """Return a query of single rows with their column id."""
    tree = drawing.tree = tree_of(drawing)
    rest = f" FROM {tree.name} AS a WHERE {conditions(drawing, tree, 'a')}"
    return Select(_outputs(drawing, "a"), rest)


def _sorted(drawing: Drawing) -> Select:
    """Return a query of rows of some partitions in the order of their bounds, mostly without the default partition."""
    tree = drawing.tree = tree_of(drawing)
    drawing.by_bounds = True
    where = listed(drawing, pick(drawing.rng, tree.level.keys), "a")
    return Select(_outputs(drawing, "a"), f" FROM {tree.name} AS a WHERE {where}")


def _total(drawing: Drawing) -> Select:
    tree = tree_of(drawing)
    rest = f" FROM {tree.name} AS a WHERE {conditions(drawing, tree, 'a')}"
    return Select(("count(*)", "sum(a.id)", "min(a.v)"), rest, 1)


def _grouped(drawing: Drawing) -> Select:
    tree = tree_of(drawing)
    rest = f" FROM {tree.name} AS a WHERE {conditions(drawing, tree, 'a')} GROUP BY 1"
    return Select(("a.tableoid::regclass::text", "count(*)", "sum(a.id)", "max(a.v)"), rest, 60)


def _joined(drawing: Drawing) -> Select:
    """Return a join of the small table with a tree, which a nested loop rescans for each row."""
    rng, tree = drawing.rng, tree_of(drawing)
    on = _matched(drawing, tree)
    kind = pick(rng, ("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN"))
    where = f" WHERE {condition(drawing, tree, 'a')}" if chance(rng, 50) else ""
    rest = f" FROM {DRIVER} AS o {kind} {tree.name} AS a ON {on}{where}"
    return Select(("o.id AS o", "a.id", "a.v", *_partition(drawing, "a")), rest)


def _matched(drawing: Drawing, tree: Tree) -> str:
    """Return a join condition of the small table's row `o` with the tree's row `a`."""
    rng = drawing.rng
    level = pick(rng, list(tree.level.levels))
    count = len(level.keys) if level.method == "HASH" or chance(rng, 50) else between(rng, 1, len(level.keys))
    drawing.outers, drawing.kept = ("o",), "outer"
    equal = [comparison(drawing, key, "a", "=") for key in level.keys[:count]]
    if chance(rng, 30):
        equal[-1] = comparison(drawing, level.keys[count - 1], "a", pick(rng, ("<", ">=", "<=", ">")))
    drawing.outers, drawing.kept = (), ""
    return " AND ".join(equal)


def _inner(drawing: Drawing, outers: tuple[str, ...], alias: str, *, first: bool = False) -> str:
    """Return FROM and WHERE of a subquery over a tree, whose condition references outer rows; of its `first` rows."""
    tree = tree_of(drawing) if len(outers) < 2 else _deepest(drawing)
    drawing.outers = outers
    where = (staged if chance(drawing.rng, (35, 80)[len(outers) > 1]) else conditions)(drawing, tree, alias)
    drawing.outers = ()
    return f"FROM {tree.name} AS {alias} WHERE {where}{_first(drawing, tree, alias) if first else ''}"


def _first(drawing: Drawing, tree: Tree, alias: str) -> str:
    """Return the end of a query of the first rows in a total order, which an index may supply."""
    rng = drawing.rng
    names = dict.fromkeys((*pick(rng, ((), *tree.orders)), "id"))
    direction = pick(rng, ("", "", " DESC"))
    order = ", ".join(f"{alias}.{name}{direction}" for name in names)
    return f" ORDER BY {order} LIMIT {between(rng, 1, 9)}"


def _lateral(drawing: Drawing) -> Select:
    """Return LATERAL subqueries that are not pulled up; a second one depends on either row before."""
    rng = drawing.rng
    if chance(rng, 50):
        counted = f"SELECT count(*) AS id, sum(a.id) AS v {_inner(drawing, ('o',), 'a')}"
        return Select(("o.id AS o", "l.id", "l.v"), f" FROM {DRIVER} AS o, LATERAL ({counted}) AS l")
    limited = f"SELECT a.id, a.v, {_columns(drawing)} {_inner(drawing, ('o',), 'a', first=True)}"
    join = pick(rng, ("CROSS JOIN LATERAL ({}) AS l", "LEFT JOIN LATERAL ({}) AS l ON true")).format(limited)
    outputs = ["o.id AS o", "l.id", "l.v"]
    if chance(rng, 40):
        second = f"SELECT count(*) AS n {_inner(drawing, pick(rng, (('l',), ('o',), ('o', 'l'))), 'b')}"
        join += f" CROSS JOIN LATERAL ({second}) AS m"
        outputs.append("m.n")
    return Select(tuple(outputs), f" FROM {DRIVER} AS o {join}")


def _columns(drawing: Drawing) -> str:
    return ", ".join(f"a.{column.name}" for column in drawing.scene.columns)


def _correlated(drawing: Drawing) -> Select:
    """Return subqueries with parameters of one or two outer rows."""
    rng = drawing.rng
    if chance(rng, 50):
        return Select(("o.id", _value(drawing, ("o",))), f" FROM {DRIVER} AS o")
    tree, inside = tree_of(drawing), tree_of(drawing)
    compared = []
    for drawing.outers in (("a",), ("o",)):
        compared.append(condition(drawing, inside, "b"))
    drawing.outers = ()
    nested = f"(SELECT count(*) FROM {inside.name} AS b WHERE {' AND '.join(compared)})"
    rest = f" FROM {DRIVER} AS o JOIN {tree.name} AS a ON {_matched(drawing, tree)} WHERE a.id <= {between(rng, 5, 20)}"
    return Select(("o.id AS o", "a.id", nested), rest)


def _value(drawing: Drawing, outers: tuple[str, ...]) -> str:
    """Return an aggregate over rows of a tree, or over the first ones in an order, as a scalar subquery."""
    if chance(drawing.rng, 45):
        return f"(SELECT sum(s.id) FROM (SELECT b.id {_inner(drawing, outers, 'b', first=True)}) AS s)"
    return f"(SELECT {pick(drawing.rng, ('count(*)', 'sum(b.id)', 'max(b.v)'))} {_inner(drawing, outers, 'b')})"


def _nested(drawing: Drawing) -> Select:
    """Return a subquery in a subquery. It has parameters of two query levels, so a rescan changes some or all."""
    rng = drawing.rng
    rows = f"i.id <= {between(rng, 2, 8)}"
    if chance(rng, 30):
        tree = _deepest(drawing)
        drawing.outers = ("o", "i")
        on = staged(drawing, tree, "b")
        drawing.outers = ()
        joined = f"{DRIVER} AS i {pick(rng, ('JOIN', 'LEFT JOIN'))} {tree.name} AS b ON {on}"
        total = f"(SELECT sum(b.id * i.id) FROM {joined} WHERE {rows})"
    else:
        each = f"SELECT {_value(drawing, ('o', 'i'))} AS n FROM {DRIVER} AS i WHERE {rows}"
        total = f"(SELECT sum(s.n) FROM ({each}) AS s)"
    if chance(rng, 50):
        return Select(("o.id", total), f" FROM {DRIVER} AS o")
    return Select(("o.id AS o", "l.n"), f" FROM {DRIVER} AS o CROSS JOIN LATERAL {total} AS l (n)")


def _exists(drawing: Drawing) -> Select:
    """Return a query with EXISTS over a tree, as a join or below OR."""
    rng = drawing.rng
    exists = f"{pick(rng, ('', 'NOT '))}EXISTS (SELECT {_inner(drawing, ('o',), 'b')})"
    if chance(rng, 35):
        return Select(("o.id", "o.v"), f" FROM {DRIVER} AS o WHERE {exists} OR o.v = 3")
    return Select(("o.id", "o.v"), f" FROM {ROWS} AS o WHERE o.id <= {between(rng, 10, 40)} AND {exists}")


def _united(drawing: Drawing) -> Select:
    """Return UNION ALL of both trees, and sometimes of the plain table, below a condition on all."""
    rng = drawing.rng
    shown = ", ".join(("id", *(column.name for column in drawing.scene.columns), "v"))
    arms = [f"SELECT {shown} FROM {tree.name}" for tree in drawing.scene.trees]
    if chance(rng, 40):
        arms.append(f"SELECT {shown} FROM {DRIVER}")
    united = f"({' UNION ALL '.join(shuffled(rng, arms))}) AS a"
    if chance(rng, 40):
        rest = f" FROM {DRIVER} AS o JOIN {united} ON {_matched(drawing, pick(rng, drawing.scene.trees))}"
        return Select(("o.id AS o", "a.id", "a.v"), rest)
    tree = tree_of(drawing)
    return Select(("a.id", "a.v"), f" FROM {united} WHERE {conditions(drawing, tree, 'a')}")


def _trees(drawing: Drawing) -> Select:
    """Return a join of both trees, or of one with itself, on all keys of the first level, whose bounds are merged."""
    rng = drawing.rng
    left, right = pick(rng, ((0, 1), (1, 0), (0, 1), (0, 0)))
    first, second = drawing.scene.trees[left], drawing.scene.trees[right]
    on = " AND ".join(f"{key.of('a.')} = {key.of('b.')}" for key in first.level.keys)
    if chance(rng, 25):
        where = f" WHERE {condition(drawing, first, 'a')} AND {pick(rng, ('', 'NOT '))}EXISTS"
        return Select(("a.id", "a.v"), f" FROM {first.name} AS a{where} (SELECT FROM {second.name} AS b WHERE {on})")
    where = f" WHERE {condition(drawing, first, 'a')}" if chance(rng, 60) else ""
    kind = pick(rng, ("JOIN", "LEFT JOIN", "FULL JOIN", "RIGHT JOIN"))
    rest = f" FROM {first.name} AS a {kind} {second.name} AS b ON {on}{where}"
    return Select(("count(*)", "sum(a.id)", "sum(b.id)", "count(b.id)"), rest, 1)


def _locked(drawing: Drawing) -> Select:
    select = rows(drawing)
    strength = pick(drawing.rng, ("UPDATE", "SHARE"))
    outputs = tuple(f"{name} AS c{number}" if "." in name else name for number, name in enumerate(select.columns))
    return Select(("l.*",), f" FROM (SELECT {', '.join(outputs)}{select.rest} FOR {strength}) AS l")


SHAPES: Weighted[tuple[str, Shape]] = Weighted(
    (34, ("rows", rows)), (20, ("sorted", _sorted)), (10, ("total", _total)), (8, ("grouped", _grouped)),
    (14, ("joined", _joined)), (12, ("lateral", _lateral)), (10, ("correlated", _correlated)),
    (24, ("nested", _nested)), (5, ("exists", _exists)), (7, ("united", _united)), (9, ("trees", _trees)),
    (2, ("locked", _locked)),
)  # fmt: skip
