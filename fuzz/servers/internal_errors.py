"""Internal errors: the lines of PostgreSQL's C that run only after a mistake in PostgreSQL itself.

elog() with level ERROR or above reports what cannot happen; ereport() is for all other errors (PostgreSQL's
documentation, Reporting Errors Within the Server). No statement reaches such a line, so coverage leaves it out. The
lines are found by the layout that pgindent gives to all of PostgreSQL.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

_STARTS: Final = re.compile(r"\t+elog\((?:ERROR|FATAL|PANIC),")
_DEFAULT: Final = re.compile(r"\t+default:")
_SILENCED: Final = re.compile(r"\t+(?:break;|return\b.*;\s+/\*.*\*/)")
_CONDITION: Final = re.compile(r"\t+(?:else )?if \(")


@dataclass(frozen=True, slots=True)
class InternalErrors:
    """Numbers of lines, from 1: of the errors themselves, and of the conditions that lead to nothing else."""

    errors: frozenset[int]
    conditions: frozenset[int]


def internal_errors(source: str) -> InternalErrors:
    """Return the lines of the internal errors of a file.

    An error's lines are those of its statement, a `default:` label right before it, and a `break` or a commented
    `return` for the compiler right after it.
    """
    lines = source.splitlines()
    errors: set[int] = set()
    conditions: set[int] = set()
    for start, line in enumerate(lines):
        if _STARTS.match(line):
            errors.update(_error(lines, start))
            conditions.update(_condition(lines, start))
    return InternalErrors(_numbers(errors), _numbers(conditions))


def _numbers(indexes: set[int]) -> frozenset[int]:
    return frozenset(index + 1 for index in indexes)


def _error(lines: Sequence[str], start: int) -> Iterator[int]:
    if _DEFAULT.match(lines[start - 1]):
        yield start - 1
    end = start
    while not lines[end].endswith(");") and end + 1 < len(lines):
        end += 1
    yield from range(start, end + 1)
    if end + 1 < len(lines) and _SILENCED.match(lines[end + 1]):
        yield end + 1


def _condition(lines: Sequence[str], start: int) -> Iterator[int]:
    """Yield the lines of an `if` without braces right before the error."""
    first = start - 1
    while first and _indentation(lines[first]) >= _indentation(lines[start]):
        first -= 1  # further lines of the condition
    if _CONDITION.match(lines[first]) and _indentation(lines[first]) == _indentation(lines[start]) - 1:
        yield from range(first, start)


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip("\t"))
