"""Reduction problem: a case, a total order of cases, and a test whether a smaller case still shows the finding.

Passes only test cases. They change the case's statements, and the syntax trees of these part by part. The problem
stores the smallest interesting case of all tests. So a pass may be interrupted at any time, and passes are independent
of each other. The total order defines "smaller" for all of them.

A positive test takes many times as long as a negative one. So candidates are accepted provisionally after a fast test,
and the best of every eight is confirmed. If that fails, they are discarded, and the pass is repeated with full tests.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pglast import ast

from fuzz.sources.scripts.psql import tokens
from fuzz.triage.reduction.trees import Path, changed, nodes, part_at, parts_of, tree_of
from oracles.model.case import Case, Kind, Step
from oracles.sql.determinism import name_of
from oracles.sql.total_order import integer, is_cut, is_total


def series_in(sql: str) -> Iterator[tuple[Path, int, int]]:
    """Yield path of the arguments, first and last number of each generate_series() between two integer literals."""
    for path, part in parts_of(sql):
        if isinstance(part, ast.FuncCall) and name_of(part) == "generate_series":
            match [integer(argument) for argument in part.args or ()]:
                case [int(first), int(last), *_]:
                    yield (*path, "args"), first, last


@lru_cache(maxsize=4096)
def rows_in(sql: str) -> int:
    """Return the total number of rows of these series, with steps of one."""
    return sum(max(0, last - first + 1) for _, first, last in series_in(sql))


SECONDS = 60.0  # time limit of a reduction in a campaign
RepeatedTest = Callable[[Case, Callable[[], None]], bool]
SortKey = tuple[int, int, int, int, int, int, str]


PROVISIONAL = 8  # provisionally accepted cases, before the best of them is confirmed


class TimeUp(Exception):  # a signal, no error
    """Signal that the time limit has passed; the best case so far is the result."""


class NotConfirmed(Exception):  # a signal, no error
    """Signal that the best case was not confirmed; the last confirmed case is the best again."""


class Problem:
    """The state of a reduction. Results of tests are stored, so that a repeated test is free and has the same result.

    `start` is interesting. A test may take several tries, and calls its second argument before each of them. While the
    problem is `provisional`, `fast_test` is used instead; its negative results are correct. `best` is the smallest case
    that passed a test, and `confirmed` the smallest confirmed one. `on_better` is called with each confirmed case.
    """

    def __init__(
        self,
        start: Case,
        is_interesting: RepeatedTest,
        seconds: float = float("inf"),
        on_better: Callable[[Case], Any] = lambda case: None,
        fast_test: RepeatedTest | None = None,
    ) -> None:
        self.best = self.confirmed = start
        self.provisional = fast_test is not None
        self._test = is_interesting
        self._fast_test = fast_test or is_interesting
        self._unconfirmed = 0
        self._deadline = time.monotonic() + seconds
        self._on_better = on_better
        self._results = {start: True}

    def is_interesting(self, case: Case) -> bool:
        """Return the result of the test of a case, and store the case if it is the best so far.

        Raises TimeUp after the time limit, and NotConfirmed if the best case so far is not confirmed.
        """
        if case not in self._results:
            self._results[case] = (self._fast_test if self.provisional else self._test)(case, self._require_time)
        if self._results[case] and sort_key(case) < sort_key(self.best):
            self.best = case
            self._unconfirmed += 1
            if not self.provisional:
                self._keep()
            elif self._unconfirmed >= PROVISIONAL:
                self.confirm()
        return self._results[case]

    def confirm(self) -> None:
        """Confirm the best case so far. Raises TimeUp, and NotConfirmed if it is not interesting."""
        if self.best == self.confirmed:
            return
        if not self._test(self.best, self._require_time):
            self.discard_unconfirmed()
            raise NotConfirmed
        self._keep()

    def _keep(self) -> None:
        self.confirmed = self.best
        self._unconfirmed = 0
        self._on_better(self.best)

    def discard_unconfirmed(self) -> None:
        """Discard all unconfirmed cases. Negative results stay."""
        self.best = self.confirmed
        self._unconfirmed = 0
        self._results = {case: False for case, interesting in self._results.items() if not interesting}
        self._results[self.confirmed] = True

    def _require_time(self) -> None:
        if time.monotonic() > self._deadline:
            raise TimeUp

    def retry_rejected(self) -> None:
        """Discard negative results, so that these cases are tested again."""
        self._results = {case: True for case, interesting in self._results.items() if interesting}

    def return_to(self, case: Case) -> None:
        """Make an earlier case the best again, and discard all results except its own."""
        self._results = {case: True}
        self.best = case
        self._keep()


def sort_key(case: Case) -> SortKey:
    """Return the key of a case in the total order.

    It consists of the numbers of steps, settings, steps of the scene, parts of syntax trees, rows of series, and bytes.
    The parts of a tree do not depend on the formatting of a statement.
    """
    settings = sum(1 + len(mode.settings) + (mode.protocol is not None) for mode in case.modes) + len(case.samples)
    steps = case.all_steps
    trees = sum(_count(step.sql) for step in steps)
    rows = sum(rows_in(step.sql) for step in steps)
    return len(steps), settings, len(case.scene), trees, rows, sum(map(_size, steps)), repr(case)


@lru_cache(maxsize=4096)
def _count(sql: str) -> int:
    """Return the number of parts of a statement's tree, or of its tokens if it has no tree."""
    return len(parts_of(sql)) or sum(1 for _ in tokens(sql))


def _size(step: Step) -> int:
    texts = (step.sql, *step.tags, *(value or "" for value in step.params))
    return step.ordered + bool(step.same_rows) + len(step.copy_data or b"") + sum(map(len, texts))


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
    """Return the step with another statement, whose rows are no longer compared in order without a total order.

    None if more of its queries than before have an undetermined result, or if a foreign table has another remote table:
    without the option it could be the table itself, and each session would open another one until there are too many.
    """
    before, after = tree_of(step.sql), tree_of(sql)
    if _chances(after) > _chances(before) or _remote_table(after) != _remote_table(before):
        return None
    ordered = step.ordered and isinstance(after, ast.SelectStmt) and is_total(after)
    return replace(step.with_statement(sql), ordered=ordered)


def _chances(tree: Any) -> int:
    """Return the number of queries in a statement that have LIMIT without a total order, or DISTINCT ON."""
    selects: Any = (node for node in nodes(tree) if isinstance(node, ast.SelectStmt))
    return sum(any(each.distinctClause or ()) or (is_cut(each) and not is_total(each)) for each in selects)


def _remote_table(tree: Any) -> dict[str, Any]:
    """Return the options that name the remote table of a created foreign table."""
    options = tree.options if isinstance(tree, ast.CreateForeignTableStmt) else ()
    return {each.defname: each.arg for each in options or () if each.defname in ("schema_name", "table_name")}


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
