"""Queries that run under another protocol than psql's, said in SQL: PREPARE and EXECUTE, or a cursor.

None of it opens or ends a transaction block: a cursor lives in one message of several statements, which is one
implicit transaction outside of a block and part of the block inside, just as in `fuzz.execution.session`.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from fuzz.errors import CaseError
from fuzz.execution.session import CURSOR_FIRST_ROWS, EARLY_ROWS
from fuzz.psql.lexer import one_statement, tokens
from fuzz.reduction.copy_text import statement_text
from fuzz.reduction.markers import has_marker
from fuzz.reduction.messages import Message
from fuzz.reduction.quoting import read_sql_literal, sql_literal
from oracles.case import Kind, Step
from oracles.mode import Protocol

_CURSOR = "duel_cursor"
_PREPARE = re.compile(r"\s*PREPARE \w+ AS ")
_EXECUTE = re.compile(r"\s*EXECUTE \w+\s*(?:\((.*)\))?\s*", re.DOTALL)
_DECLARE = f"DECLARE {_CURSOR} CURSOR FOR "
_QUERY_AND_FETCH = re.compile(rf"(.*)\n;\nFETCH \d+ FROM {_CURSOR};.*", re.DOTALL)

Unwrapped = tuple[str, tuple[str | None, ...]]


@dataclass(frozen=True, slots=True)
class Wrapping:
    """How a query is written so that psql runs it in another way, and how query and parameters are read back."""

    write: Callable[[Step, int], str]
    read: Callable[[Sequence[Message]], Unwrapped]


def wrapping_of(step: Step, protocol: Protocol) -> str | None:
    """Return the name of the wrapping that a step needs. DECLARE takes no parameters, so these win."""
    if step.kind is not Kind.QUERY:
        return None
    if protocol is Protocol.PREPARED:
        return "prepared"
    if step.params:
        return "executed"
    return {Protocol.CURSOR: "cursor", Protocol.CLOSED_EARLY: "closed_early"}.get(protocol)


def _write_prepared(step: Step, number: int, times: int) -> str:
    name = f"duel_statement_{number}"
    arguments = ", ".join("NULL" if value is None else sql_literal(value) for value in step.params)
    execute = f"EXECUTE {name}({arguments});" if step.params else f"EXECUTE {name};"
    return "\n".join((statement_text(f"PREPARE {name} AS {step.sql}"), *[execute] * times))


def _read_prepared(messages: Sequence[Message]) -> Unwrapped:
    prepare = _PREPARE.match(messages[0].sql)
    execute = _EXECUTE.fullmatch(messages[1].sql) if len(messages) > 1 else None
    if prepare is None or execute is None:
        raise CaseError(f"line {messages[0].line}: this step needs PREPARE name AS query, and EXECUTE name(...)")
    return messages[0].sql[prepare.end() :], tuple(_arguments(execute[1] or ""))


def _arguments(text: str) -> list[str | None]:
    parts = [""]
    for token in tokens(text):
        if token.text == ",":
            parts.append("")
        elif token.kind in ("escape", "string"):
            parts[-1] += "'" + read_sql_literal(token.text)  # a mark that no NULL has
        elif token.kind != "space":
            parts[-1] += token.text
    values = [None if part.upper() == "NULL" else part.removeprefix("'") for part in parts]
    return [] if values == [""] and not text.strip() else values


def _write_cursor(step: Step, _number: int, fetches: Sequence[str]) -> str:
    if one_statement(step.sql) and not has_marker(step.sql):
        return "\n\\;\n".join((_DECLARE + step.sql, "\\;\n".join(fetches))) + ";"
    return statement_text(_DECLARE + step.sql + "\n;\n" + ";\n".join(fetches))


def _read_cursor(messages: Sequence[Message]) -> Unwrapped:
    message = messages[0].sql.lstrip()
    match = _QUERY_AND_FETCH.fullmatch(message.removeprefix(_DECLARE))
    if match is None or not message.startswith(_DECLARE):
        raise CaseError(f"line {messages[0].line}: this step needs DECLARE {_CURSOR}, FETCH and CLOSE in one message")
    return match[1], ()


_CLOSE = f"CLOSE {_CURSOR}"
_IN_TWO_PORTIONS = (
    f"FETCH {CURSOR_FIRST_ROWS} FROM {_CURSOR}",
    f"MOVE 0 IN {_CURSOR}",
    f"FETCH ALL FROM {_CURSOR}",
    _CLOSE,
)
_ONLY_FIRST_ROWS = (f"FETCH {EARLY_ROWS} FROM {_CURSOR}", _CLOSE)

WRAPPINGS = {
    "prepared": Wrapping(partial(_write_prepared, times=2), _read_prepared),
    "executed": Wrapping(partial(_write_prepared, times=1), _read_prepared),
    "cursor": Wrapping(partial(_write_cursor, fetches=_IN_TWO_PORTIONS), _read_cursor),
    "closed_early": Wrapping(partial(_write_cursor, fetches=_ONLY_FIRST_ROWS), _read_cursor),
}
