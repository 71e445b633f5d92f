"""Statements of a reduction problem, whose syntax trees passes change part by part, and cases with changed steps."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pglast import ast

from fuzz.triage.reduction.problem import Problem, sort_key
from fuzz.triage.reduction.trees import Path, changed, nodes, part_at, parts_of, tree_of
from oracles.model.case import Case, Kind, Step
from oracles.sql.total_order import is_cut, is_total


def with_step(case: Case, position: int, step: Step) -> Case:
    """Return the case with another step at `position` of `case.all_steps`."""
    steps = (*case.all_steps[:position], step, *case.all_steps[position + 1 :])
    border = len(case.scene)
    return replace(case, scene=steps[:border], steps=steps[border:])


def with_only(case: Case, kept: Sequence[int]) -> Case:
    """Return the case with the steps at these positions of `case.all_steps` only, in ascending order."""
    border = len(case.scene)
    scene = tuple(case.all_steps[position] for position in kept if position < border)
    steps = tuple(case.all_steps[position] for position in kept if position >= border)
    return replace(case, scene=scene, steps=steps)


def restated(step: Step, sql: str) -> Step | None:
    """Return the step with another statement; None if more of its queries than before have an undetermined result.

    The rows are no longer compared in order if the statement has no total order.
    """
    before, after = tree_of(step.sql), tree_of(sql)
    if _chances(after) > _chances(before):
        return None
    return replace(step, sql=sql, ordered=step.ordered and isinstance(after, ast.SelectStmt) and is_total(after))


def _chances(tree: Any) -> int:
    """Return the number of queries in a statement that have LIMIT without a total order, or DISTINCT ON."""
    selects: Any = (node for node in nodes(tree) if isinstance(node, ast.SelectStmt))
    return sum(any(each.distinctClause or ()) or (is_cut(each) and not is_total(each)) for each in selects)


class Statement:
    """The statement at a position of the best case so far."""

    def __init__(self, problem: Problem, position: int) -> None:
        self._problem = problem
        self._position = position

    @property
    def sql(self) -> str:
        """Return the statement's current text."""
        return self._problem.best.all_steps[self._position].sql

    @property
    def parts(self) -> tuple[tuple[Path, Any], ...]:
        """Return the parts of its tree with their paths, level by level; empty if it has no tree."""
        return parts_of(self.sql)

    def above(self, path: Path) -> Any:
        """Return the node around a part; None for the whole statement."""
        tree = tree_of(self.sql)
        whole = (part_at(tree, path[:length]) for length in reversed(range(len(path))))
        return next((part for part in whole if isinstance(part, ast.Node)), None)

    def is_better(self, path: Path, part: Any) -> bool:
        """Return whether the case with this part at the path is smaller and interesting."""
        case = self._with(path, part)
        if case is None or sort_key(case) >= sort_key(self._problem.best):
            return False
        return self._problem.is_interesting(case)

    def is_interesting(self, path: Path, part: Any) -> bool:
        """Return whether the case with this part at the path is interesting."""
        case = self._with(path, part)
        return case is not None and self._problem.is_interesting(case)

    def _with(self, path: Path, part: Any) -> Case | None:
        sql = changed(self.sql, path, part)
        step = None if sql is None else restated(self._problem.best.all_steps[self._position], sql)
        return None if step is None else with_step(self._problem.best, self._position, step)


def statements(problem: Problem, *kinds: Kind) -> Iterator[Statement]:
    """Yield the statements of these kinds from the last to the first, because later ones use the results of others."""
    for position in reversed(range(len(problem.best.all_steps))):
        if problem.best.all_steps[position].kind in (kinds or Kind):
            yield Statement(problem, position)
