"""Series: where statements make rows by the number, with generate_series between two written integers."""

from collections.abc import Iterator
from functools import lru_cache

from pglast import ast

from fuzz.reduction.trees import Path, parts_of
from oracles.determinism import name_of
from oracles.total_order import integer


def series_in(sql: str) -> Iterator[tuple[Path, int, int]]:
    """Yield where the arguments of each series stand whose ends are written in numbers, and both its ends."""
    for path, part in parts_of(sql):
        if isinstance(part, ast.FuncCall) and name_of(part) == "generate_series":
            match [integer(argument) for argument in part.args or ()]:
                case [int(first), int(last), *_]:
                    yield (*path, "args"), first, last


@lru_cache(maxsize=4096)
def rows_in(sql: str) -> int:
    """Return how many rows all these series have, as if in steps of one."""
    return sum(max(0, last - first + 1) for _, first, last in series_in(sql))
