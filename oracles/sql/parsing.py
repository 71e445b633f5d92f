"""Parsing of statements that others wrote, within limits: pglast ends the process if it parses very deep trees.

PostgreSQL's parser limits only levels that open before others close, such as brackets. Chains (1 + 1 + 1 ...) have any
number of levels. pglast copies trees by recursion in C, which overflows the stack at 20,000 levels.
"""

import sys
from typing import Any, Final

from pglast import parse_sql
from pglast.parser import ParseError, scan

from oracles.sql.reading import deeper_than

MOST_LEVELS: Final = 500  # of nodes in a statement's tree
_LEAST_LEVEL: Final = 2  # characters of a level, such as +1
_MOST_CHAINED: Final = 15_000  # tokens
_OPENING: Final = frozenset({"ASCII_40", "ASCII_91"})  # ( and [
_CLOSING: Final = frozenset({"ASCII_41", "ASCII_93"})
_ENDING: Final = frozenset({"ASCII_44", "ASCII_59"})  # , and ;
_SET_OPERATIONS: Final = frozenset({"UNION", "EXCEPT", "INTERSECT"})

# pglast's printer, and comparisons of trees, have up to seven calls a level. Oracles add levels.
sys.setrecursionlimit(max(20_000, sys.getrecursionlimit()))


def parse_statements(sql: str) -> tuple[Any, ...]:
    """Return new trees of the statements in a text.

    Raises ParseError, also if a tree has more than MOST_LEVELS levels, or may have many more.
    """
    if len(sql) > _MOST_CHAINED and _longest_chain(sql) > _MOST_CHAINED:
        raise ParseError(f"more than {_MOST_CHAINED} tokens without a comma")
    found: tuple[Any, ...] = tuple(parse_sql(sql))
    if len(sql) > MOST_LEVELS * _LEAST_LEVEL and deeper_than(found, MOST_LEVELS):
        raise ParseError(f"more than {MOST_LEVELS} levels")
    return found


def _longest_chain(sql: str) -> int:
    """Return an upper bound of the levels: the most tokens since a comma or semicolon, summed over open brackets.

    Raises ParseError.
    """
    counts = [0]  # of tokens in each open bracket
    total = operations = longest = 0
    for token in scan(sql):
        if token.name in _ENDING:
            total -= counts[-1]
            counts[-1] = 0
        elif token.name in _CLOSING and len(counts) > 1:
            total -= counts.pop()
        elif token.name in _SET_OPERATIONS:
            operations += 1  # commas in their operands do not end a chain of them
        elif token.name in _OPENING:
            counts.append(0)
        counts[-1] += 1
        total += 1
        longest = max(longest, total + operations)
    return longest
