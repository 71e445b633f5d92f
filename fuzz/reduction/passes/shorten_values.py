"""Leave out rows of a VALUES list with several."""

from dataclasses import replace
from functools import partial

from fuzz.psql.lexer import BLANK, Token, depth_after, tokens
from fuzz.reduction.deltas import shortest_in_parts
from fuzz.reduction.problem import Problem
from fuzz.reduction.steps import with_step


def shorten_values(problem: Problem) -> None:
    """Find the rows that matter in the first VALUES list of each statement; one row at least stays."""
    for position, step in enumerate(problem.best.all_steps):
        head, rows, tail = _rows(step.sql)
        if len(rows) > 1:
            shortest_in_parts(rows, partial(_still, problem, position, head, tail))


def _still(problem: Problem, position: int, head: str, tail: str, rows: tuple[str, ...]) -> bool:
    if not rows:
        return False
    step = replace(problem.best.all_steps[position], sql=head + ",".join(rows) + tail)
    return problem.is_interesting(with_step(problem.best, position, step))


def _rows(sql: str) -> tuple[str, list[str], str]:
    """Return what stands before the first row, the rows, and what stands after the last."""
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
    """Return start and end of each parenthesized group at the beginning of the tokens, with commas between them."""
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
