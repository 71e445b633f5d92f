"""One statement of what is being reduced, whose syntax tree passes change part by part.

Cases with a step changed, for passes that work inside a step, or with some of their steps only.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pglast import ast

from fuzz.triage.reduction.problem import Problem, sort_key
from fuzz.triage.reduction.trees import Path, changed, nodes, part_at, parts_of, tree_of
from oracles.model.case import Case, Kind, Step
from oracles.sql.total_order import is_cut, is_total


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


class Statement:
    """The statement at a position of the best case so far."""

    def __init__(self, problem: Problem, position: int) -> None:
        self._problem = problem
        self._position = position

    @property
    def sql(self) -> str:
        """Return it as it is now."""
        return self._problem.best.all_steps[self._position].sql

    @property
    def parts(self) -> tuple[tuple[Path, Any], ...]:
        """Return what there is in its tree, level by level; nothing if it has none."""
        return parts_of(self.sql)

    def above(self, path: Path) -> Any:
        """Return the node that a part is in; None for the statement as a whole."""
        tree = tree_of(self.sql)
        whole = (part_at(tree, path[:length]) for length in reversed(range(len(path))))
        return next((part for part in whole if isinstance(part, ast.Node)), None)

    def is_better(self, path: Path, part: Any) -> bool:
        """Tell whether the case is smaller, and interesting, with this part in the place of the one that is there."""
        case = self._with(path, part)
        if case is None or sort_key(case) >= sort_key(self._problem.best):
            return False
        return self._problem.is_interesting(case)

    def is_interesting(self, path: Path, part: Any) -> bool:
        """Tell whether the case is with this part in that place."""
        case = self._with(path, part)
        return case is not None and self._problem.is_interesting(case)

    def _with(self, path: Path, part: Any) -> Case | None:
        sql = changed(self.sql, path, part)
        step = None if sql is None else restated(self._problem.best.all_steps[self._position], sql)
        return None if step is None else with_step(self._problem.best, self._position, step)


def statements(problem: Problem, *kinds: Kind) -> Iterator[Statement]:
    """Yield the statements of these kinds, the last one first: it uses what others make."""
    for position in reversed(range(len(problem.best.all_steps))):
        if problem.best.all_steps[position].kind in (kinds or Kind):
            yield Statement(problem, position)
