"""Cases with a step changed, for passes that work inside a step, or with some of their steps only."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pglast import ast

from fuzz.reduction.trees import nodes, tree_of
from oracles.case import Case, Step
from oracles.total_order import is_cut, is_total


def with_step(case: Case, position: int, step: Step) -> Case:
    """Return the case with the step at `position` of `case.all_steps` exchanged."""
    steps = (*case.all_steps[:position], step, *case.all_steps[position + 1 :])
    border = len(case.scene)
    return replace(case, scene=steps[:border], steps=steps[border:])


def with_only(case: Case, kept: Sequence[int]) -> Case:
    """Return the case with the steps at these positions of `case.all_steps` only, which ascend."""
    border = len(case.scene)
    scene = tuple(case.all_steps[position] for position in kept if position < border)
    steps = tuple(case.all_steps[position] for position in kept if position >= border)
    return replace(case, scene=scene, steps=steps)


def restated(step: Step, sql: str) -> Step | None:
    """Return the step with another statement; None if more than before its rows are what happens to come first.

    Rows are no longer compared in order where the statement does not tell the order of all.
    """
    before, after = tree_of(step.sql), tree_of(sql)
    if _chances(after) > _chances(before):
        return None
    return replace(step, sql=sql, ordered=step.ordered and isinstance(after, ast.SelectStmt) and is_total(after))


def _chances(tree: Any) -> int:
    """Return how many queries in a statement show the rows that come first, in an order that is not total."""
    selects: Any = (node for node in nodes(tree) if isinstance(node, ast.SelectStmt))
    return sum(any(each.distinctClause or ()) or (is_cut(each) and not is_total(each)) for each in selects)
