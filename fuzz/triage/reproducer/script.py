"""Conversion of a case to a psql script and back. The case is read from the script's statements, so they may be edited.

Protocols that psql does not use are written as SQL: PREPARE and EXECUTE, or a cursor. That opens and ends no
transaction block. A cursor exists within one message of several statements. Outside of a block, such a message is one
implicit transaction; inside, it is part of the block. This is the same as in `fuzz.execution.session`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from fuzz import documents
from fuzz.documents import DocumentError, current
from fuzz.errors import CaseError
from fuzz.execution.session import CURSOR_FIRST_ROWS, EARLY_ROWS
from fuzz.sources.scripts.psql import one_statement, tokens
from fuzz.triage.reproducer.copy_text import copy_text, spool_text, statement_text, without_data
from fuzz.triage.reproducer.markers import END, FLAGS, Section, has_marker, marker, mode_marker, sample_marker, sections
from fuzz.triage.reproducer.messages import PsqlMessage, read_messages
from fuzz.triage.reproducer.quoting import read_sql_literal, sql_literal
from oracles.model.case import Case, Kind, Step
from oracles.model.finding import Evidence
from oracles.model.mode import Mode, Protocol, protocol_of, settings_of
from oracles.sql.determinism import is_read_only

_CURSOR = "duel_cursor"
_PREPARE = re.compile(r"\s*PREPARE \w+ AS ")
_EXECUTE = re.compile(r"\s*EXECUTE \w+\s*(?:\((.*)\))?\s*", re.DOTALL)
_DECLARE = f"DECLARE {_CURSOR} CURSOR FOR "
_QUERY_AND_FETCH = re.compile(rf"(.*)\n;\nFETCH \d+ FROM {_CURSOR};.*", re.DOTALL)

_T = TypeVar("_T")
Unwrapped = tuple[str, tuple[str | None, ...]]


@dataclass(frozen=True, slots=True)
class Wrapping:
    """A form of a query under another protocol, and the function that reads query and parameters back."""

    write: Callable[[Step, int], str]
    read: Callable[[Sequence[PsqlMessage]], Unwrapped]


def wrapping_of(step: Step, protocol: Protocol) -> str | None:
    """Return the name of the wrapping that a step needs. One with parameters takes precedence: DECLARE has none."""
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


def _read_prepared(messages: Sequence[PsqlMessage]) -> Unwrapped:
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
            parts[-1] += "'" + read_sql_literal(token.text)  # the quote distinguishes it from NULL
        elif token.kind != "space":
            parts[-1] += token.text
    values = [None if part.upper() == "NULL" else part.removeprefix("'") for part in parts]
    return [] if values == [""] and not text.strip() else values


def _write_cursor(step: Step, _number: int, fetches: Sequence[str]) -> str:
    if one_statement(step.sql) and not has_marker(step.sql):
        return "\n\\;\n".join((_DECLARE + step.sql, "\\;\n".join(fetches))) + ";"
    return statement_text(_DECLARE + step.sql + "\n;\n" + ";\n".join(fetches))


def _read_cursor(messages: Sequence[PsqlMessage]) -> Unwrapped:
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


_SET = re.compile(r"\s*SET\s+([\w.]+)\s*(?:=|\s[tT][oO]\s)\s*(.*?)\s*", re.IGNORECASE | re.DOTALL)
EXPLAIN_AS_TEXT = "EXPLAIN (ANALYZE, BUFFERS, SETTINGS, TIMING OFF) "
PLAN_AS_TEXT = "EXPLAIN (VERBOSE, SETTINGS, SUMMARY, MEMORY) "


def write_modes(case: Case) -> Iterator[str]:
    """Yield the case's samples, and the settings of its modes, as blocks of a script."""
    if case.samples:
        yield "\n".join(map(sample_marker, case.samples))
    for mode in case.modes:
        more = documents.to_changes(replace(mode, settings=()))
        yield "\n".join((mode_marker(more), *write_settings(mode.settings)))


def write_settings(settings: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a statement for each setting, of a name and a value."""
    for name, value in settings:
        yield f"SET {name} = {sql_literal(value)};"


def write_steps(case: Case) -> Iterator[str]:
    """Yield scene and steps as blocks of a script, and the marker of the end."""
    protocol = protocol_of(case.modes)
    for position, step in enumerate(case.all_steps):
        yield _write_step(step, "scene" if position < len(case.scene) else "step", position, protocol)
    yield END


def write_evidence(case: Case, position: int, evidence: Sequence[Evidence]) -> str:
    """Return the evidence after the step at this position, as blocks of a script, which are no part of the case."""
    modes = settings_of(case.modes)
    blocks = []
    for number, each in enumerate(evidence, start=len(case.all_steps)):  # unique numbers
        there = list(write_settings(each.settings))
        back = [
            f"SET {name} = {sql_literal(modes[name])};" if name in modes else f"RESET {name};"
            for name, _ in each.settings
        ]
        query = replace(case.all_steps[position], sql=each.sql, tags=(), same_rows=None)
        protocol = Protocol.SIMPLE if each.simple_protocol else protocol_of(case.modes)
        head, _, body = _write_step(query, "evidence", number, protocol).partition("\n")
        explain = EXPLAIN_AS_TEXT if each.explained else PLAN_AS_TEXT if each.planned else ""
        blocks.append(
            "\n".join([head, *there, _explained(query, number, explain, protocol) if explain else body, *back])
        )
    return "\n\n".join(blocks)


def _explained(step: Step, number: int, explain: str, protocol: Protocol) -> str:
    """Return an EXPLAIN of the step with the same kind of planning as in pgduel's run."""
    if not step.params:
        declare = f"DECLARE duel_{number} CURSOR FOR " if protocol is Protocol.CURSOR else ""
        return statement_text(f"{explain}{declare}{step.sql}")
    prepare, _, execute = WRAPPINGS["executed"].write(step, number).rpartition("\nEXECUTE ")
    return f"{prepare}\n{explain}EXECUTE {execute}"


def _write_step(step: Step, part: str, number: int, protocol: Protocol) -> str:
    if "\0" in step.sql or any("\0" in (value or "") for value in step.params):
        raise CaseError(f"{part} {number} has a zero character, which neither a script nor any client can send")
    wrapping = wrapping_of(step, protocol)
    words = (step.kind.value, *(flag for flag in FLAGS if getattr(step, flag)), *([wrapping] if wrapping else []))
    more: dict[str, Any] = {"tags": step.tags} if step.tags else {}
    if step.same_rows:
        more["same_rows"] = step.same_rows
    if step.params and wrapping not in ("prepared", "executed"):
        more["params"] = step.params
    return f"{marker(part, number, words, more)}\n{_write_statement(step, number, wrapping)}"


def _write_statement(step: Step, number: int, wrapping: str | None) -> str:
    if wrapping is None:
        return without_data(step.sql) if step.copy_data is None else copy_text(step)
    written = WRAPPINGS[wrapping].write(step, number)
    return written if step.copy_data is None else f"{spool_text(step.sql, step.copy_data)}\n{written}"


def read_case(script: str, generator: str) -> Case:
    """Return the case of a script; without markers, each statement is a step. Raises CaseError."""
    found = list(sections(script))
    if not found:
        return Case(generator, (), tuple(_guessed(message) for message in read_messages(script)))
    scene = [step for section in found if section.part == "scene" for step in _read_steps(script, section)]
    steps = [step for section in found if section.part == "step" for step in _read_steps(script, section)]
    modes = [_read_mode(script, section) for section in found if section.part == "mode"]
    samples = tuple(str(section.more.get("name", "")) for section in found if section.part == "sample")
    return current(Case(generator, tuple(scene), tuple(steps), tuple(modes), samples=samples))


def _guessed(message: PsqlMessage) -> Step:
    sql = message.sql.strip()
    if message.data is not None:
        return Step(sql, Kind.COPY_IN, message.data)
    words = [token.text.lower() for token in tokens(sql) if token.kind == "name"]
    if words[:1] == ["copy"] and "stdout" in words:
        return Step(sql, Kind.COPY_OUT)
    return Step(sql, Kind.QUERY if is_read_only(sql) else Kind.COMMAND)


def _read_mode(script: str, section: Section) -> Mode:
    settings = []
    for message in read_messages(script, section.start, section.stop):
        match = _SET.fullmatch(message.sql)
        if match is None:
            raise CaseError(f"line {message.line}: below a mode, only SET name = value; is allowed")
        settings.append((match[1], read_sql_literal(match[2])))
    return _document(section, {"name": "", **section.more, "settings": settings}, Mode)


def _document(section: Section, data: Mapping[str, Any], kind: type[_T]) -> _T:
    try:
        return documents.from_data(data, kind)
    except DocumentError as error:
        raise CaseError(f"line {section.line}: the text in braces is {error}") from error


def _read_steps(script: str, section: Section) -> Iterator[Step]:
    kind = Kind(section.words[0])
    messages = read_messages(script, section.start, section.stop, inline_data=kind is Kind.COPY_IN)
    flags = {flag: flag in section.words for flag in FLAGS}
    plain = _document(section, {**section.more, **flags, "sql": "", "kind": kind, "copy_data": None}, Step)
    wrapping = next((word for word in section.words if word in WRAPPINGS), None)
    if wrapping and messages:
        sql, params = WRAPPINGS[wrapping].read(messages)
        yield replace(plain, sql=sql, params=params or plain.params, copy_data=messages[0].data)
    else:
        yield from (replace(plain, sql=message.sql, copy_data=message.data) for message in messages)
