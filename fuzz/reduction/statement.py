"""One statement of what is being reduced, whose syntax tree passes change part by part."""

from collections.abc import Iterator
from typing import Any

from pglast import ast

from fuzz.reduction.problem import Problem, sort_key
from fuzz.reduction.steps import restated, with_step
from fuzz.reduction.trees import Path, changed, part_at, parts_of, tree_of
from oracles.case import Case, Kind


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
