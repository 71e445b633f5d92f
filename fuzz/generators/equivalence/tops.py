"""What stands above the joins: order, groups and windows by members of a class, and row locks."""

import random
from collections.abc import Callable

from fuzz.generators.choices import Weighted, between, chance, pick, shuffled
from fuzz.generators.equivalence.trees import Tree
from fuzz.generators.relational.queries import Select
from fuzz.generators.relational.scope import Column

Top = Callable[[random.Random, Tree], Select]


def _keys(rng: random.Random, tree: Tree, most: int) -> list[str]:
    """Return keys of the tree's relations, each at most once."""
    columns = [column.sql for relation in tree.relations for column in relation.columns[:2]]
    return list(shuffled(rng, columns)[: between(rng, 1, most)])


def _numbers(tree: Tree) -> list[Column]:
    return [column for relation in tree.relations for column in relation.columns if column.name in ("i2", "i3")]


def _totals(rng: random.Random, tree: Tree) -> list[str]:
    """Return aggregates that each row, and each key in it, counts for."""
    sums = [f"sum({pick(rng, _numbers(tree)).sql})" for _ in range(between(rng, 1, 3))]
    key = pick(rng, tree.relations).columns[0].sql
    return ["count(*)", *sums, pick(rng, (f"count({key})", f"count(DISTINCT {key})", f"max({key}::text)"))]


def totalled(rng: random.Random, tree: Tree) -> Select:
    """Return one row."""
    outputs = _totals(rng, tree)
    return Select(f"SELECT {', '.join(outputs)}{tree.where()}", len(outputs), 1, (*tree.kinds, "total"))


def _rows(rng: random.Random, tree: Tree) -> Select:
    distinct = "DISTINCT " if chance(rng, 25) else ""
    outputs = [*_keys(rng, tree, 4), *(column.sql for column in _numbers(tree)[:2])]
    if chance(rng, 30):  # of two relations: a class of one member, which has children where they are joined by those
        first, last = _numbers(tree)[0], _numbers(tree)[-1]
        outputs.insert(0, f"{first.sql} + {last.sql}")
    return Select(
        f"SELECT {distinct}{', '.join(outputs)}{tree.where()}", len(outputs), tree.rows, (*tree.kinds, "rows")
    )


def _grouped(rng: random.Random, tree: Tree) -> Select:
    keys = _keys(rng, tree, 3)
    outputs = keys + _totals(rng, tree)
    having = f" HAVING count(*) < {between(rng, 2, 9)}" if chance(rng, 15) else ""
    sql = f"SELECT {', '.join(outputs)}{tree.where()} GROUP BY {', '.join(keys)}{having}"
    return Select(sql, len(outputs), tree.rows, (*tree.kinds, "grouped"))


def _windowed(rng: random.Random, tree: Tree) -> Select:
    """Return rows with a window function that does not depend on the order of peers."""
    keys = _keys(rng, tree, 3)
    function = pick(rng, ("rank()", "count(*)", f"sum({pick(rng, _numbers(tree)).sql})"))
    window = f"PARTITION BY {pick(rng, keys)} ORDER BY {', '.join(shuffled(rng, keys))}"
    sql = f"SELECT {', '.join(keys)}, {function} OVER ({window}){tree.where()}"
    return Select(sql, len(keys) + 1, tree.rows, (*tree.kinds, "window"))


def _locked(rng: random.Random, tree: Tree) -> Select:
    """Return rows that are locked, if any may be."""
    select = _rows(rng, tree)
    if not tree.lockable or "DISTINCT" in select.sql:
        return select
    strength = pick(rng, ("UPDATE", "SHARE", "NO KEY UPDATE", "KEY SHARE"))
    sql = f"{select.sql} FOR {strength} OF {pick(rng, tree.lockable)}"
    return Select(f"SELECT * FROM ({sql}) AS l", select.width, select.rows, (*tree.kinds, "locked"))


TOPS: Weighted[Top] = Weighted((30, totalled), (34, _rows), (18, _grouped), (10, _windowed), (8, _locked))
