"""Have generate_series return fewer rows: it makes most of the data."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from pglast import ast

from fuzz.reduction.deltas import least_from_below
from fuzz.reduction.problem import Problem
from fuzz.reduction.statement import Statement, statements
from fuzz.reduction.steps import with_step
from fuzz.reduction.trees import Path, changed, constant, parts_of
from oracles.case import Case
from oracles.determinism import name_of
from oracles.total_order import integer


def shorten_all_series(problem: Problem) -> None:
    """Find how many rows each series has to return, as if that were one number for all."""
    start = problem.best
    longest = max((last - first + 1 for step in start.all_steps for _, first, last in _series(step.sql)), default=0)
    least_from_below(-1, longest, lambda rows: problem.is_interesting(_with_rows(start, rows)))


def shorten_series(problem: Problem) -> None:
    """Find where each series may end; the first rows stay."""
    for statement in statements(problem):
        for path, first, last in _series(statement.sql):
            least_from_below(first - 1, last, partial(_ends, statement, path))


def _series(sql: str) -> Iterator[tuple[Path, int, int]]:
    """Yield where the end of each series stands that is written in numbers, and both its ends."""
    for path, part in parts_of(sql):
        if isinstance(part, ast.FuncCall) and name_of(part) == "generate_series":
            match [integer(argument) for argument in part.args or ()]:
                case [int(first), int(last), *_]:
                    yield (*path, "args", 1), first, last


def _with_rows(case: Case, rows: int) -> Case:
    """Return the case with so many rows of each series, or all that it has."""
    for position, step in enumerate(case.all_steps):
        for path, first, last in _series(step.sql):
            shorter = changed(case.all_steps[position].sql, path, constant(ast.Integer(min(last, first - 1 + rows))))
            if shorter is not None:
                case = with_step(case, position, replace(step, sql=shorter))
    return case


def _ends(statement: Statement, path: Path, last: int) -> bool:
    return statement.is_interesting(path, constant(ast.Integer(last)))
