"""Have generate_series return fewer rows: it makes most of the data."""

from functools import partial

from pglast import ast

from fuzz.reduction.deltas import least
from fuzz.reduction.problem import Problem
from fuzz.reduction.statement import Statement, statements
from fuzz.reduction.trees import Path, constant
from oracles.determinism import name_of
from oracles.total_order import integer


def shorten_series(problem: Problem) -> None:
    """Find where each series may end, as far as that is written as a number; the first rows stay."""
    for statement in statements(problem):
        for path, part in statement.parts:
            if isinstance(part, ast.FuncCall) and name_of(part) == "generate_series":
                match [integer(argument) for argument in part.args or ()]:
                    case [int(first), int(last), *_]:
                        least(first - 1, last, partial(_ends, statement, (*path, "args", 1)))


def _ends(statement: Statement, path: Path, last: int) -> bool:
    return statement.is_interesting(path, constant(ast.Integer(last)))
