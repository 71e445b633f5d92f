"""Passes that shorten parts of a case: rows of VALUES and COPY, fields of COPY, literals, loops, and series."""

import re
import struct
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from pglast import ast

from fuzz.sources.scripts.psql import BLANK, Token, depth_after, tokens
from fuzz.triage.reduction.columns import Fields
from fuzz.triage.reduction.deltas import least, least_from_below, shortest_in_parts
from fuzz.triage.reduction.problem import Problem, Statement, series_in, statements, with_step
from fuzz.triage.reduction.trees import Path, changed, constant, tree_of
from fuzz.triage.reproducer.copy_text import LINES
from oracles.model.case import Case

SIGNATURE = b"PGCOPY\n\xff\r\n\0"  # start of binary COPY data; flags and the length of an extension follow


def shorten_copy_data(problem: Problem) -> None:
    """Remove rows of COPY data: lines of text and CSV, tuples of the binary format."""
    for position, step in enumerate(problem.best.all_steps):
        if step.copy_data:
            head, rows, tail = _lines(step.copy_data)
            shortest_in_parts(rows, partial(_still_with_lines, problem, position, head, tail))


def _still_with_lines(problem: Problem, position: int, head: bytes, tail: bytes, rows: tuple[bytes, ...]) -> bool:
    step = replace(problem.best.all_steps[position], copy_data=head + b"".join(rows) + tail)
    return problem.is_interesting(with_step(problem.best, position, step))


def _lines(data: bytes) -> tuple[bytes, Sequence[bytes], bytes]:
    """Return the data before the rows, the rows, and the data after them."""
    if not data.startswith(SIGNATURE):
        return b"", LINES.findall(data), b""
    try:
        return _binary_rows(data)
    except struct.error:  # intentionally damaged data stay unchanged
        return data, [], b""


def _binary_rows(data: bytes) -> tuple[bytes, list[bytes], bytes]:
    """Return the same for binary data. Raises struct.error if they are incomplete."""
    (extension,) = struct.unpack_from("!i", data, len(SIGNATURE) + 4)
    first = start = len(SIGNATURE) + 8 + max(extension, 0)
    rows = []
    while (fields := struct.unpack_from("!h", data, start)[0]) >= 0:
        end = start + 2
        for _ in range(fields):
            (length,) = struct.unpack_from("!i", data, end)
            end += 4 + max(length, 0)  # -1 means NULL
        rows.append(data[start:end])
        start = end
    return data[:first], rows, data[start:]


def shorten_fields(problem: Problem) -> None:
    """Shorten the fields of COPY data, one column at a time."""
    for position, step in enumerate(problem.best.all_steps):
        copy = tree_of(step.sql)
        if step.copy_data and isinstance(copy, ast.CopyStmt):
            fields = Fields(copy)
            for column, longest in enumerate(fields.widths(step.copy_data)):
                least(-1, longest, partial(_still_with_fields, problem, position, fields, column))


def _still_with_fields(problem: Problem, position: int, fields: Fields, column: int, length: int) -> bool:
    def cut(line: list[bytes]) -> list[bytes]:
        return [field[:length] if at == column else field for at, field in enumerate(line)]

    step = problem.best.all_steps[position]
    data = fields.changed(step.copy_data or b"", cut)
    return problem.is_interesting(with_step(problem.best, position, replace(step, copy_data=data)))


def shorten_literals(problem: Problem) -> None:
    """Make literals smaller: numbers closer to zero, strings shorter."""
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
    """Try the empty string, then prefixes."""
    if text and not statement.is_better(path, constant(ast.String(""))):
        least(0, len(text), lambda end: statement.is_interesting(path, constant(ast.String(text[:end]))))


_LOOP = re.compile(r"\bIN (\d+)\.\.(\d+) LOOP\b", re.IGNORECASE)


def shorten_loops(problem: Problem) -> None:
    """Reduce the iterations of PL/pgSQL loops between integer literals: of all loops at once, then of each step.

    DO creates most partitions, which take most of a scene's time.
    """
    _shorten(problem, range(len(problem.best.all_steps)))
    for position in range(len(problem.best.all_steps)):
        _shorten(problem, [position])


def _shorten(problem: Problem, positions: Iterable[int]) -> None:
    start = problem.best
    longest = max((_times(loop) for at in positions for loop in _LOOP.finditer(start.all_steps[at].sql)), default=0)
    least_from_below(-1, longest, lambda times: problem.is_interesting(_with_at_most(start, positions, times)))


def _times(loop: re.Match[str]) -> int:
    return int(loop[2]) - int(loop[1]) + 1


def _with_at_most(case: Case, positions: Iterable[int], times: int) -> Case:
    for position in positions:
        step = case.all_steps[position]
        case = with_step(case, position, replace(step, sql=_LOOP.sub(partial(_shortened, times), step.sql)))
    return case


def _shortened(times: int, loop: re.Match[str]) -> str:
    return f"IN {loop[1]}..{int(loop[1]) - 1 + min(times, _times(loop))} LOOP"


def shorten_all_series(problem: Problem) -> None:
    """Reduce the rows of all generate_series() calls at once; they create most of the data."""
    start = problem.best
    longest = max((last - first + 1 for step in start.all_steps for _, first, last in series_in(step.sql)), default=0)
    least_from_below(-1, longest, lambda rows: problem.is_interesting(_with_rows(start, rows)))


def shorten_series(problem: Problem) -> None:
    """Reduce the last number of each generate_series() call, then try its last row alone."""
    for statement in statements(problem):
        for path, first, last in series_in(statement.sql):
            end = least_from_below(first - 1, last, partial(_is_interesting, statement, (*path, 1)))
            if end > first:
                _is_interesting(statement, (*path, 0), end)


def _with_rows(case: Case, rows: int) -> Case:
    """Return the case with at most this number of rows in each series."""
    for position, step in enumerate(case.all_steps):
        for path, first, last in series_in(step.sql):
            end = constant(ast.Integer(min(last, first - 1 + rows)))
            shorter = changed(case.all_steps[position].sql, (*path, 1), end)
            if shorter is not None:
                case = with_step(case, position, replace(step, sql=shorter))
    return case


def _is_interesting(statement: Statement, path: Path, number: int) -> bool:
    return statement.is_interesting(path, constant(ast.Integer(number)))


def shorten_values(problem: Problem) -> None:
    """Remove rows of the first VALUES list of each statement; at least one stays."""
    for position, step in enumerate(problem.best.all_steps):
        head, rows, tail = _rows(step.sql)
        if len(rows) > 1:
            shortest_in_parts(rows, partial(_still_with_rows, problem, position, head, tail))


def _still_with_rows(problem: Problem, position: int, head: str, tail: str, rows: tuple[str, ...]) -> bool:
    if not rows:
        return False
    step = replace(problem.best.all_steps[position], sql=head + ",".join(rows) + tail)
    return problem.is_interesting(with_step(problem.best, position, step))


def _rows(sql: str) -> tuple[str, list[str], str]:
    """Return the text before the first row, the rows, and the text after the last."""
    solid = [token for token in tokens(sql) if token.kind not in BLANK]
    words = [token.text.lower() for token in solid]
    after = solid[words.index("values") + 1 :] if "values" in words else []
    spans = list(_groups(after))
    if not spans:
        return sql, [], ""
    starts = [spans[0][0], *(end + 1 for _, end in spans[:-1])]  # white space after a comma goes with its row
    rows = [sql[start:end] for start, (_, end) in zip(starts, spans, strict=True)]
    head, tail = sql[: spans[0][0]], sql[spans[-1][1] :]
    return (head, rows, tail) if head + ",".join(rows) + tail == sql else (sql, [], "")


def _groups(solid: list[Token]) -> list[tuple[int, int]]:
    """Return start and end of each parenthesized group in the comma-separated list at the beginning of the tokens."""
    spans = []
    depth = start = 0
    for position, token in enumerate(solid):
        if depth == 0 and token.text != ("," if position and solid[position - 1].text == ")" else "("):
            break
        if depth == 0 and token.text == "(":
            start = token.start
        depth = depth_after(depth, token)
        if depth == 0 and token.text == ")":
            spans.append((start, token.start + 1))
    return spans
