"""Make the fields of what COPY FROM STDIN is sent shorter, a column at a time."""

from dataclasses import replace
from functools import partial

from pglast import ast

from fuzz.reduction.copy_fields import Fields
from fuzz.reduction.deltas import least
from fuzz.reduction.problem import Problem
from fuzz.reduction.steps import with_step
from fuzz.reduction.trees import tree_of


def shorten_fields(problem: Problem) -> None:
    """Find to which length the fields of each column can be cut."""
    for position, step in enumerate(problem.best.all_steps):
        copy = tree_of(step.sql)
        if step.copy_data and isinstance(copy, ast.CopyStmt):
            fields = Fields(copy)
            for column, longest in enumerate(fields.widths(step.copy_data)):
                least(-1, longest, partial(_still, problem, position, fields, column))


def _still(problem: Problem, position: int, fields: Fields, column: int, length: int) -> bool:
    def cut(line: list[bytes]) -> list[bytes]:
        return [field[:length] if at == column else field for at, field in enumerate(line)]

    step = problem.best.all_steps[position]
    data = fields.changed(step.copy_data or b"", cut)
    return problem.is_interesting(with_step(problem.best, position, replace(step, copy_data=data)))
