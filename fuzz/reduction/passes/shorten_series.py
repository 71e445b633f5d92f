"""Have generate_series return fewer rows: it makes most of the data."""

from dataclasses import replace
from functools import partial

from pglast import ast

from fuzz.reduction.deltas import least_from_below
from fuzz.reduction.problem import Problem
from fuzz.reduction.series import series_in
from fuzz.reduction.statement import Statement, statements
from fuzz.reduction.steps import with_step
from fuzz.reduction.trees import Path, changed, constant
from oracles.case import Case


def shorten_all_series(problem: Problem) -> None:
    """Find how many rows each series has to return, as if that were one number for all."""
    start = problem.best
    longest = max((last - first + 1 for step in start.all_steps for _, first, last in series_in(step.sql)), default=0)
    least_from_below(-1, longest, lambda rows: problem.is_interesting(_with_rows(start, rows)))


def shorten_series(problem: Problem) -> None:
    """Find where each series may end, and whether its last row will do by itself."""
    for statement in statements(problem):
        for path, first, last in series_in(statement.sql):
            end = least_from_below(first - 1, last, partial(_is_interesting, statement, (*path, 1)))
            if end > first:
                _is_interesting(statement, (*path, 0), end)


def _with_rows(case: Case, rows: int) -> Case:
    """Return the case with so many rows of each series, or all that it has."""
    for position, step in enumerate(case.all_steps):
        for path, first, last in series_in(step.sql):
            end = constant(ast.Integer(min(last, first - 1 + rows)))
            shorter = changed(case.all_steps[position].sql, (*path, 1), end)
            if shorter is not None:
                case = with_step(case, position, replace(step, sql=shorter))
    return case


def _is_interesting(statement: Statement, path: Path, number: int) -> bool:
    return statement.is_interesting(path, constant(ast.Integer(number)))
