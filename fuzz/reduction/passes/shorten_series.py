"""Have generate_series return fewer rows: it makes most of the data."""

from functools import partial
from typing import Any

from pglast import ast

from fuzz.reduction.deltas import least
from fuzz.reduction.problem import Problem
from fuzz.reduction.statement import Statement, statements
from fuzz.reduction.trees import Path
from oracles.determinism import name_of


def shorten_series(problem: Problem) -> None:
    """Find where each series may end, as far as that is written as a number; the first rows stay."""
    for statement in statements(problem):
        for path, part in statement.parts:
            if isinstance(part, ast.FuncCall) and name_of(part) == "generate_series" and len(part.args or ()) > 1:
                first, last = (_integer(argument) for argument in part.args[:2])
                if first is not None and last is not None:
                    least(first - 1, last, partial(_ends, statement, (*path, "args", 1)))


def _integer(argument: Any) -> int | None:
    return getattr(argument.val, "ival", None) if isinstance(argument, ast.A_Const) else None


def _ends(statement: Statement, path: Path, last: int) -> bool:
    return statement.is_interesting(path, ast.A_Const(isnull=False, val=ast.Integer(last)))
