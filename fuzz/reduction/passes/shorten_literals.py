"""Make literals in statements smaller: numbers towards zero, strings shorter."""

from pglast import ast

from fuzz.reduction.deltas import least
from fuzz.reduction.problem import Problem
from fuzz.reduction.statement import Statement, statements
from fuzz.reduction.trees import Path, constant


def shorten_literals(problem: Problem) -> None:
    """Find a smaller value for each literal."""
    for statement in statements(problem):
        for path, part in statement.parts:
            match part:
                case ast.A_Const(val=ast.Integer(ival=int(number))):
                    _shorten_number(statement, path, number)
                case ast.A_Const(val=ast.String(sval=str(text))):
                    _shorten_string(statement, path, text)


def _shorten_number(statement: Statement, path: Path, number: int) -> None:
    """Try zero, one, and powers of ten with fewer digits."""
    smaller = (0, *(10**digits for digits in range(len(str(number)))))
    any(statement.is_better(path, constant(ast.Integer(each))) for each in smaller if number > 1 and each < number)


def _shorten_string(statement: Statement, path: Path, text: str) -> None:
    """Try the empty string, and find where it may end."""
    if text and not statement.is_better(path, constant(ast.String(""))):
        least(0, len(text), lambda end: statement.is_interesting(path, constant(ast.String(text[:end]))))
