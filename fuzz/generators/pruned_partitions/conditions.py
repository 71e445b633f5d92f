"""Conditions on partition keys: each form that pruning matches, and others close to it.

Operands are constants near bounds, parameters, stable functions, subqueries and columns of an outer query, so that
pruning happens in the planner, at the start of the executor, or at each rescan.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import isfinite

from fuzz.generators.choices import Weighted, between, chance, first_made, pick, shuffled, some
from fuzz.generators.pruned_partitions.keys import IDENTITIES, Key
from fuzz.generators.pruned_partitions.levels import Edge, Level
from fuzz.generators.pruned_partitions.scene import DRIVER, ROWS, Scene, Tree

STEADY, UNSTEADY = IDENTITIES


@dataclass
class Drawing:
    """A query while it is drawn: its parameters so far, and the outer rows that conditions may reference."""

    rng: random.Random
    scene: Scene
    most: int = 0  # upper bound of the parameters
    outers: tuple[str, ...] = ()  # aliases of rows with key columns, of one query level or of several
    tree: Tree = field(init=False)  # of a query of single rows
    by_bounds: bool = False  # whether its order is that of the tree's bounds
    kept: str = ""  # the only kind of operand; "" if all are suitable
    aimed: dict[str, int] = field(default_factory=dict)  # key or column as SQL → integer of most constants
    row: int = 0  # of the small table, whose values subqueries return; 0: any
    params: list[str | None] = field(default_factory=list)
    types: list[str] = field(default_factory=list)  # of the parameters

    def parameter(self, type_name: str, text: str | None) -> str:
        """Return a new parameter."""
        self.params.append(text)
        self.types.append(type_name)
        return f"${len(self.params)}::{type_name}"

    def near(self, key: Key) -> int:
        """Return an integer for the key: that of the row aimed at, one of many rows, or one near a bound."""
        name = key.of("")
        if name in self.aimed and chance(self.rng, 85):
            return self.aimed[name]
        common = self.scene.common.get(name)
        return pick(self.rng, common) if common and chance(self.rng, 25) else key.near(self.rng)


Operand = Callable[[Drawing, Key], "str | None"]
Maker = Callable[[Drawing, Tree, str], "str | None"]


def operand(drawing: Drawing, key: Key) -> str:
    """Return a value to compare the key with."""
    if drawing.kept:
        return OPERANDS[drawing.kept](drawing, key) or _constant(drawing, key)
    if drawing.outers and chance(drawing.rng, 30 + 20 * len(drawing.outers)):
        return (_several if chance(drawing.rng, 20) else _during_scan)(drawing, key)
    return OPERANDS[_KINDS.pick(drawing.rng)](drawing, key) or _constant(drawing, key)


def _constant(drawing: Drawing, key: Key) -> str:
    return key.kind.type.literal(drawing.near(key))


def _other_type(drawing: Drawing, key: Key) -> str | None:
    if not key.kind.others:
        return None
    return pick(drawing.rng, key.kind.others).literal(drawing.near(key))


def _parameter(drawing: Drawing, key: Key) -> str | None:
    if len(drawing.params) >= drawing.most:
        return None
    type_ = pick(drawing.rng, key.kind.others) if key.kind.others and chance(drawing.rng, 20) else key.kind.type
    return drawing.parameter(type_.name, None if chance(drawing.rng, 4) else type_.text(drawing.near(key)))


def _stable(drawing: Drawing, key: Key) -> str:
    return f"{STEADY}({_constant(drawing, key)})"


def _volatile(drawing: Drawing, key: Key) -> str:
    return f"{UNSTEADY}({_constant(drawing, key)})"


def _initplan(drawing: Drawing, key: Key) -> str:
    """Return a value of the small table, or NULL if it has no such row."""
    row = drawing.row or between(drawing.rng, 1, drawing.scene.driving + 1)
    return f"(SELECT {key.of('i.')} FROM {DRIVER} AS i WHERE i.id = {row})"


def _outer(drawing: Drawing, key: Key) -> str | None:
    return key.of(f"{pick(drawing.rng, drawing.outers)}.") if drawing.outers else None


def _during_scan(drawing: Drawing, key: Key) -> str:
    """Return a value that is constant only during a scan."""
    return _outer(drawing, key) or _initplan(drawing, key)


def _mixed(drawing: Drawing, key: Key) -> str:
    return f"{STEADY}({_during_scan(drawing, key)})"


def _several(drawing: Drawing, key: Key) -> str:
    """Return an expression over two values, of which at least one is constant only during a scan."""
    if len(drawing.outers) > 1 and chance(drawing.rng, 60):
        values = shuffled(drawing.rng, [key.of(f"{alias}.") for alias in drawing.outers])
    else:
        second = OPERANDS[pick(drawing.rng, ("initplan", "outer", "parameter"))](drawing, key)
        values = shuffled(drawing.rng, (_during_scan(drawing, key), second or _constant(drawing, key)))
    return f"{pick(drawing.rng, ('greatest', 'least', 'coalesce'))}({', '.join(values)})"


def _null(drawing: Drawing, key: Key) -> str:
    return f"NULL::{key.kind.type.name}"


OPERANDS: dict[str, Operand] = {
    "constant": _constant,
    "other_type": _other_type,
    "parameter": _parameter,
    "stable": _stable,
    "initplan": _initplan,
    "outer": _outer,
    "mixed": _mixed,
    "several": _several,
    "volatile": _volatile,
    "null": _null,
}
_KINDS = Weighted(
    (44, "constant"), (10, "other_type"), (16, "parameter"), (10, "stable"), (12, "initplan"), (4, "mixed"),
    (5, "several"), (1, "volatile"), (2, "null"),
)  # fmt: skip


def conditions(drawing: Drawing, tree: Tree, alias: str) -> str:
    """Return a condition over the tree's keys."""
    with _aiming(drawing, tree):
        joined = [condition(drawing, tree, alias) for _ in range(_COUNTS.pick(drawing.rng))]
    return " AND ".join(joined)


@contextmanager
def _aiming(drawing: Drawing, tree: Tree) -> Iterator[None]:
    """Let most constants be the values of one row, unless they are already, and subqueries return those of another."""
    before, rng = (drawing.aimed, drawing.row), drawing.rng
    if not drawing.aimed and chance(rng, 60):
        drawing.row = between(rng, 0, drawing.scene.driving)
        level = pick(rng, list(tree.level.levels))
        drawing.aimed = {name: pick(rng, values) for name, values in drawing.scene.common.items()}
        if level.edges and chance(rng, 60):
            drawing.aimed |= dict(_finite(level, pick(rng, level.edges)))
    yield
    drawing.aimed, drawing.row = before


_COUNTS = Weighted((60, 1), (30, 2), (10, 3))


def _finite(level: Level, edge: Edge) -> Iterator[tuple[str, int]]:
    """Yield the keys of an edge as SQL, and their values, up to MINVALUE or MAXVALUE."""
    return ((key.of(""), int(value)) for key, value in zip(level.keys, edge, strict=True) if isfinite(value))


def condition(drawing: Drawing, tree: Tree, alias: str) -> str:
    """Return a condition, usable as an operand of AND and NOT."""
    with _aiming(drawing, tree):
        return first_made(drawing.rng, CONDITIONS, drawing, tree, alias) or _compared(drawing, tree, alias)


def _of(drawing: Drawing, key: Key, alias: str) -> str:
    """Return the key as an operand, mostly with the collation of the partition key."""
    sql = key.of(f"{alias}.")
    return f"{sql} COLLATE {key.collation}" if key.collation and chance(drawing.rng, 70) else sql


def comparison(drawing: Drawing, key: Key, alias: str, operator: str) -> str:
    """Return a comparison of the key, with the key on either side."""
    left, right = _of(drawing, key, alias), operand(drawing, key)
    if chance(drawing.rng, 25):
        return f"{right} {_COMMUTED.get(operator, operator)} {left}"
    return f"{left} {operator} {right}"


_COMMUTED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_OPERATORS = Weighted((34, "="), (14, "<"), (14, "<="), (14, ">"), (14, ">="), (10, "<>"))


def _compared(drawing: Drawing, tree: Tree, alias: str) -> str:
    return comparison(drawing, pick(drawing.rng, tree.keys), alias, _OPERATORS.pick(drawing.rng))


def _within(drawing: Drawing, tree: Tree, alias: str) -> str:
    key = pick(drawing.rng, tree.keys)
    values = sorted(key.near(drawing.rng) for _ in range(2))
    low, high = (key.kind.type.literal(value) for value in values)
    if chance(drawing.rng, 40):
        low = operand(drawing, key)
    return f"{_of(drawing, key, alias)} {pick(drawing.rng, ('', '', 'NOT '))}BETWEEN {low} AND {high}"


def _listed(drawing: Drawing, tree: Tree, alias: str) -> str:
    rng = drawing.rng
    key = pick(rng, tree.keys)
    if chance(rng, 45):
        return listed(drawing, key, alias)
    others = [key.kind.type.literal(key.near(rng)) for _ in range(between(rng, 0, 3))]
    values = [_constant(drawing, key), *others]
    if chance(rng, 35):
        values.append(operand(drawing, key))
    if chance(rng, 8):
        values.append("NULL")
    return f"{_of(drawing, key, alias)} {pick(rng, ('IN', 'IN', 'NOT IN'))} ({', '.join(values)})"


def listed(drawing: Drawing, key: Key, alias: str) -> str:
    """Return a condition that selects values of bounds, without others, which the default partition may have."""
    rng = drawing.rng
    if not key.hints:
        return comparison(drawing, key, alias, _INCLUSIVE.pick(rng))
    sql, values = _of(drawing, key, alias), [key.kind.type.literal(n) for n in key.hints]
    if chance(rng, 15):
        low, high = sorted(rng.randrange(len(values)) for _ in range(2))
        return f"{sql} BETWEEN {values[low]} AND {values[high]}"
    chosen = some(rng, values, pick(rng, (between(rng, 2, 6), len(values), len(values))))
    if chance(rng, 20):
        return f"({' OR '.join(f'{sql} = {value}' for value in chosen)})"
    return f"{sql} IN ({', '.join(chosen)})"


def _array(drawing: Drawing, tree: Tree, alias: str) -> str | None:
    rng = drawing.rng
    key = pick(rng, tree.keys)
    if not key.kind.arrays:
        return None
    type_ = key.kind.type
    integers = [drawing.near(key), *(key.near(rng) for _ in range(3))][: between(rng, 0, 4)]
    texts = ['"' + type_.text(n).replace("\\", "\\\\") + '"' for n in integers]
    if chance(rng, 10):
        texts.append("NULL")
    text = f"{{{','.join(texts)}}}" if not texts or chance(rng, 85) else f"{{{{{','.join(texts)}}}}}"
    if len(drawing.params) < drawing.most and chance(rng, 40):
        made = drawing.parameter(f"{type_.name}[]", text)
    elif chance(rng, 50):
        made = f"ARRAY[{', '.join([*map(type_.literal, integers), operand(drawing, key)])}]"
        made = f"ARRAY[{made}, {made}]" if chance(rng, 10) else made
    elif chance(rng, 5):
        made = f"NULL::{type_.name}[]"
    else:
        inner = f"ARRAY(SELECT {key.of('i.')} FROM {DRIVER} AS i WHERE i.id < {between(rng, 1, 5)})"
        made = pick(rng, (f"'{text}'::{type_.name}[]", f"'{text}'::{type_.name}[]", inner))
    operator = pick(rng, ("= ANY", "= ANY", "= ANY", "<> ALL", "< ANY", ">= ALL", "= ALL", "> ALL"))
    return f"{_of(drawing, key, alias)} {operator} ({made})"


def _nullness(drawing: Drawing, tree: Tree, alias: str) -> str:
    key = pick(drawing.rng, tree.keys)
    return f"{key.of(f'{alias}.')} IS {pick(drawing.rng, ('NULL', 'NOT NULL'))}"


def _boolean(drawing: Drawing, tree: Tree, alias: str) -> str | None:
    keys = [key for key in tree.keys if key.kind.type.family == "bool"]
    if not keys:
        return None
    sql = pick(drawing.rng, keys).of(f"{alias}.")
    return pick(drawing.rng, _BOOLEAN).format(sql)


_TESTS = [f"{{}} IS {negation}{value}" for value in ("TRUE", "FALSE", "UNKNOWN") for negation in ("", "NOT ")]
_BOOLEAN = ("{}", "NOT {}", *_TESTS, "(NOT {}) IS NOT TRUE", "{} = true", "{} <> true", "{} IS NOT DISTINCT FROM true")


def _rows(drawing: Drawing, tree: Tree, alias: str) -> str | None:
    """Return a comparison of rows, over the keys of one level or over columns in another order."""
    rng = drawing.rng
    levels = [level for level in tree.level.levels if len(level.keys) > 1]
    if not levels:
        return None
    keys = pick(rng, levels).keys
    keys = keys[: between(rng, 2, len(keys))]
    if chance(rng, 15):
        keys = keys[::-1]
    left = ", ".join(_of(drawing, key, alias) for key in keys)
    right = ", ".join(operand(drawing, key) for key in keys)
    return f"({left}) {pick(rng, ('<', '<=', '>', '>=', '=', '<>'))} ({right})"


def _prefixes(drawing: Drawing, tree: Tree, alias: str) -> str:
    """Return conditions on a level's keys in turn, with one or two for each, and on a prefix or without the first."""
    rng = drawing.rng
    keys = pick(rng, list(tree.level.levels)).keys
    keys = keys[1:] if len(keys) > 1 and chance(rng, 15) else keys[: between(rng, 1, len(keys))]
    drawn = []
    for number, key in enumerate(keys, 1):
        last = number == len(keys)
        drawn.append(comparison(drawing, key, alias, (_ANY if last else _INCLUSIVE).pick(rng)))
        if chance(rng, 20):
            drawn.append(comparison(drawing, key, alias, _INCLUSIVE.pick(rng)))
        elif chance(rng, 8):
            drawn.append(f"{key.of(f'{alias}.')} IS NULL")
    return f"({' AND '.join(drawn)})"


_INCLUSIVE = Weighted((44, "="), (28, ">="), (28, "<="))
_ANY = Weighted((40, "="), (15, ">="), (15, "<="), (15, ">"), (15, "<"))


def _at_edge(drawing: Drawing, tree: Tree, alias: str) -> str | None:
    """Return equalities with an edge, which is a prefix if it ends with MINVALUE or MAXVALUE; the last may differ."""
    rng = drawing.rng
    edges = [(level, edge) for level in tree.level.levels for edge in level.edges if isfinite(edge[0])]
    if not edges:
        return None
    level, edge = pick(rng, edges)
    before, drawing.aimed = drawing.aimed, dict(_finite(level, edge))
    keys = level.keys[: len(drawing.aimed)]
    operators = [*("=" for _ in keys[1:]), pick(rng, ("=", "=", "=", "<=", ">=", "<", ">"))]
    drawn = [comparison(drawing, key, alias, operator) for key, operator in zip(keys, operators, strict=True)]
    drawing.aimed = before
    return f"({' AND '.join(drawn)})"


def _all_equal(drawing: Drawing, tree: Tree, alias: str) -> str:
    """Return equalities on all keys of a level, which hash partitions need; some are IS NULL."""
    rng = drawing.rng
    level = pick(rng, list(tree.level.levels))
    equal = [
        f"{key.of(f'{alias}.')} IS NULL" if chance(rng, 15) else comparison(drawing, key, alias, "=")
        for key in level.keys
    ]
    return f"({' AND '.join(equal)})"


def staged(drawing: Drawing, tree: Tree, alias: str) -> str:
    """Return conditions for the levels above a partition, each with another kind of operand, or of another outer row.

    Some levels have two, for different stages of pruning, and some have none. With several outer rows, most levels have
    the next one in turn. So a rescan changes the choice of one level and keeps that of another. Otherwise, all levels
    may have one for the start of the executor, and some another one for the scan.
    """
    rng, given = drawing.rng, drawing.outers
    outers = given if chance(rng, 75) else given[::-1]
    from_start = len(outers) < 2 and chance(rng, 40)
    drawn = []
    for number, level in enumerate(_path(rng, tree.level)):
        for later in range(1 if len(outers) > 1 else (_FROM_START if from_start else _STAGES).pick(rng)):
            drawing.kept, drawing.outers = _kinds(rng, outers, later) if from_start else _stage(rng, outers, number)
            if level.method == "HASH":
                drawn += [comparison(drawing, key, alias, "=") for key in level.keys]
            else:
                count = between(rng, 1, len(level.keys))
                drawn += [comparison(drawing, key, alias, _ANY.pick(rng)) for key in level.keys[:count]]
    drawing.kept, drawing.outers = "", given
    joined = pick(rng, (" AND ", " AND ", " AND " if len(given) > 1 else " OR "))
    return f"({joined.join(drawn)})" if drawn else _compared(drawing, tree, alias)


def _stage(rng: random.Random, outers: tuple[str, ...], number: int) -> tuple[str, tuple[str, ...]]:
    """Return the kind of operand for the level of a number, and the outer rows that it references."""
    if len(outers) > 1 and chance(rng, 75):
        return ("several", outers) if chance(rng, 30) else ("outer", (outers[number % len(outers)],))
    kinds = ("constant", "stable", "initplan", "parameter", *(("outer", "outer", "mixed", "several") if outers else ()))
    kept = pick(rng, kinds)
    return kept, outers if kept == "several" else outers and (pick(rng, outers),)


def _kinds(rng: random.Random, outers: tuple[str, ...], later: int) -> tuple[str, tuple[str, ...]]:
    """Return a kind of operand whose value is known at the start of the executor or, if `later`, during a scan."""
    return pick(rng, ("initplan", *(("outer",) if outers else ())) if later else ("parameter", "stable")), outers


_STAGES = Weighted((48, 1), (40, 2), (12, 0))
_FROM_START = Weighted((60, 1), (40, 2))


def _path(rng: random.Random, level: Level) -> list[Level]:
    """Return the levels from this one down to one above leaves only."""
    path = [level]
    while below := [part.level for part in path[-1].parts if part.level]:
        path.append(pick(rng, below))
    return path


def _contradicting(drawing: Drawing, tree: Tree, alias: str) -> str:
    """Return conditions on one key that contradict or imply each other."""
    rng = drawing.rng
    key = pick(rng, tree.keys)
    sql = key.of(f"{alias}.")
    first, second = (key.kind.type.literal(near) for near in (drawing.near(key), key.near(rng)))
    return pick(rng, _PAIRS).format(sql, first, second)


_PAIRS = (
    "({0} = {1} AND {0} = {2})", "({0} < {1} AND {0} > {2})", "({0} <= {1} AND {0} >= {1})",
    "({0} <> {1} AND {0} <> {2})", "({0} = {1} AND {0} IS NULL)", "({0} IS NULL AND {0} IS NOT NULL)",
    "({0} IS NULL OR {0} = {1})", "({0} = {1} AND {0} >= {2})", "({0} = {1} OR ({0} IS NULL AND {0} > {2}))",
    "({0} <= {1} OR {0} > {1})", "({0} IS NULL AND {0} < {1})", "({0} = {1} AND false)", "({0} = {1} OR NULL::bool)",
)  # fmt: skip


def _either(drawing: Drawing, tree: Tree, alias: str) -> str:
    arms = [condition(drawing, tree, alias) for _ in range(between(drawing.rng, 2, 3))]
    if chance(drawing.rng, 15):
        arms.append(_unrelated(drawing, tree, alias))
    return f"({' OR '.join(arms)})"


def _both(drawing: Drawing, tree: Tree, alias: str) -> str:
    return f"({condition(drawing, tree, alias)} AND {condition(drawing, tree, alias)})"


def _negated(drawing: Drawing, tree: Tree, alias: str) -> str:
    return f"NOT ({condition(drawing, tree, alias)})"


def _prefix(drawing: Drawing, tree: Tree, alias: str) -> str | None:
    keys = [key for key in tree.keys if key.kind.prefixes]
    if not keys:
        return None
    key = pick(drawing.rng, keys)
    text = key.kind.type.text(drawing.near(key))
    cut = text[: between(drawing.rng, 2, len(text))]
    form = pick(
        drawing.rng, ("{} LIKE '{}%'", "{} LIKE '{}%'", "{} ^@ '{}'", "{} ~<~ '{}'", "{} ~>=~ '{}'", "'{1}' ^@ {0}")
    )
    return form.format(key.of(f"{alias}."), cut)


def _unrelated(drawing: Drawing, tree: Tree, alias: str) -> str:
    """Return a condition that matches no key."""
    key = pick(drawing.rng, tree.keys)
    sql = key.of(f"{alias}.")
    number = between(drawing.rng, 0, 9)
    forms = (
        f"{alias}.v < {number}", f"{alias}.id > {number}", f"{sql}::text > '1'", f"{sql} = {sql}",
        f"{sql} IS NOT DISTINCT FROM {_constant(drawing, key)}", f"{sql} IS DISTINCT FROM {_constant(drawing, key)}",
        f"coalesce({sql} = {_constant(drawing, key)}, false)",
    )  # fmt: skip
    return pick(drawing.rng, forms)


def _subquery(drawing: Drawing, tree: Tree, alias: str) -> str | None:
    """Return a condition on rows of the plain or the small table."""
    if drawing.outers:  # two levels suffice
        return None
    key = pick(drawing.rng, tree.keys)
    other, number = pick(drawing.rng, (DRIVER, DRIVER, ROWS)), between(drawing.rng, 0, 12)
    inner = f"(SELECT {key.of('s.')} FROM {other} AS s WHERE s.id <= {number})"
    equal = f"EXISTS (SELECT FROM {other} AS s WHERE {key.of('s.')} = {key.of(f'{alias}.')} AND s.id <= {number})"
    return pick(drawing.rng, (f"{key.of(f'{alias}.')} IN {inner}", equal, f"NOT {equal}"))


CONDITIONS: Weighted[Maker] = Weighted(
    (22, _compared), (7, _within), (13, _listed), (7, _array), (5, _nullness), (6, _boolean), (9, _rows),
    (22, _prefixes), (12, _at_edge), (8, _all_equal), (15, staged), (5, _contradicting), (6, _either), (3, _both),
    (4, _negated), (3, _prefix), (2, _unrelated), (2, _subquery),
)  # fmt: skip
