"""A step as protocol messages, and its replies as an Observation, by the protocol of the case's modes.

Only QUERY steps follow the modes' protocol; parameters make it an extended one. No form opens or ends a transaction
of its own accord, so a query may stand inside a transaction block that the case opened, or one that was aborted:
CURSOR declares and fetches within one simple Query message, whose statements are one implicit transaction outside of
a block and part of the block inside. It fetches the whole result in two portions with a MOVE 0 between them, because
rows skipped by a real MOVE would differ wherever the query has no total order.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from fuzz.execution import wire
from fuzz.execution.wire import Reply
from oracles.case import Case, Kind, Step
from oracles.mode import Protocol, protocol_of, settings_of
from oracles.observation import Column, Observation, Outcome, Run

SEARCH_PATH: Final = "duel,public"
CURSOR_FIRST_ROWS: Final = 3
EARLY_ROWS: Final = 5
FIRST_USER_OID: Final = 16384
EXPLAIN: Final = "EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF, BUFFERS OFF) "
QUERY_CANCELED: Final = "57014"

_STATEMENT = "duel_statement"
_CURSOR = "duel_cursor"
_RUN_PORTAL = wire.DESCRIBE_PORTAL + wire.execute()


@dataclass(frozen=True, slots=True)
class Frames:
    """Messages, and how many ReadyForQuery answer them."""

    data: bytes
    replies: int = 1


def startup_parameters(run: Run, database: str, statement_timeout_ms: int) -> dict[str, str]:
    """Return what the session starts with: any setting may be given there, so nothing has to be reset later."""
    parameters = {
        "user": "postgres",
        "database": database,
        "client_encoding": "UTF8",
        "application_name": f"pgduel {run.arm}",
        "search_path": SEARCH_PATH,
        "statement_timeout": str(statement_timeout_ms),
    } | settings_of(run.modes)
    if run.explain:
        parameters["pgduel_witness.reach"] = "on"
    if run.sabotage:
        parameters |= {"session_preload_libraries": "pgduel_saboteur", "pgduel_saboteur.action": run.sabotage}
    return parameters


def frames_of(case: Case, run: Run) -> list[Frames]:
    """Return the messages of each step of the case."""
    protocol = protocol_of(run.modes)
    return [_step_frames(step, protocol, explain=run.explain) for step in case.all_steps]


def _step_frames(step: Step, protocol: Protocol, *, explain: bool) -> Frames:
    if step.kind is Kind.COPY_IN:
        return Frames(wire.query(step.sql) + wire.copy_data(step.copy_data or b"") + wire.COPY_DONE)
    if step.kind is not Kind.QUERY:
        return Frames(wire.query(step.sql))
    if step.params and protocol is Protocol.SIMPLE:
        protocol = Protocol.EXTENDED
    return (_EXPLAINED if explain else _PLAIN)[protocol](step)


def _simple(step: Step) -> Frames:
    return Frames(wire.query(step.sql))


def _extended(step: Step, sql: str = "", run_portal: bytes = _RUN_PORTAL) -> Frames:
    return Frames(wire.parse("", sql or step.sql) + wire.bind("", step.params) + run_portal + wire.SYNC)


def _prepared(step: Step) -> Frames:
    """Execute twice: rows of both appended. Close has a Sync of its own, or an error would have it skipped."""
    twice = 2 * (wire.bind(_STATEMENT, step.params) + _RUN_PORTAL)
    prepared = wire.parse(_STATEMENT, step.sql) + twice + wire.SYNC
    return Frames(prepared + wire.close_statement(_STATEMENT) + wire.SYNC, replies=2)


def _cursor(step: Step) -> Frames:
    if step.params:  # a portal suspended and resumed: DECLARE takes no parameters
        return _extended(step, run_portal=wire.DESCRIBE_PORTAL + wire.execute(CURSOR_FIRST_ROWS) + wire.execute())
    return Frames(
        wire.query(
            f"DECLARE {_CURSOR} CURSOR FOR {step.sql}\n;FETCH {CURSOR_FIRST_ROWS} FROM {_CURSOR};"
            f"MOVE 0 IN {_CURSOR};FETCH ALL FROM {_CURSOR};CLOSE {_CURSOR}"
        )
    )


def _closed_early(step: Step) -> Frames:
    return _extended(step, run_portal=wire.DESCRIBE_PORTAL + wire.execute(EARLY_ROWS) + wire.CLOSE_PORTAL)


def _explain(step: Step) -> Frames:
    return _extended(step, EXPLAIN + step.sql)


def _explain_prepared(step: Step) -> Frames:
    """EXPLAIN EXECUTE shows the plan that plan_cache_mode leads to; SQL knows the statements of Parse by name."""
    arguments = ", ".join(_literal(value) for value in step.params)
    explain = EXPLAIN + f"EXECUTE {_STATEMENT}" + (f" ({arguments})" if arguments else "")
    return Frames(
        wire.parse(_STATEMENT, step.sql)
        + wire.SYNC
        + wire.query(explain)
        + wire.close_statement(_STATEMENT)
        + wire.SYNC,
        replies=3,
    )


def _explain_cursor(step: Step) -> Frames:
    """Planned for the first rows, as a cursor's query is."""
    return _explain(step) if step.params else Frames(wire.query(EXPLAIN + f"DECLARE {_CURSOR} CURSOR FOR {step.sql}"))


def _literal(value: str | None) -> str:
    if value is None:
        return "NULL"
    return "E'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


_PLAIN: Mapping[Protocol, Callable[[Step], Frames]] = {
    Protocol.SIMPLE: _simple,
    Protocol.EXTENDED: _extended,
    Protocol.PREPARED: _prepared,
    Protocol.CURSOR: _cursor,
    Protocol.CLOSED_EARLY: _closed_early,
}
_EXPLAINED: Mapping[Protocol, Callable[[Step], Frames]] = {
    Protocol.SIMPLE: _explain,
    Protocol.EXTENDED: _explain,
    Protocol.PREPARED: _explain_prepared,
    Protocol.CURSOR: _explain_cursor,
    Protocol.CLOSED_EARLY: _explain,
}


class TypeNames:
    """Names of result types: OIDs of built-in types are stable, those of a case's own types differ between arms.

    Row descriptions repeat, so they are decoded once for each distinct payload.
    """

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self._columns: dict[bytes, tuple[tuple[str, int], ...]] = {}

    def raw_columns(self, payload: bytes) -> tuple[tuple[str, int], ...]:
        """Return names and type OIDs of a RowDescription."""
        found = self._columns.get(payload)
        if found is None:
            found = self._columns[payload] = tuple(wire.columns_of(payload))
        return found

    def unknown(self, replies: Iterable[Reply]) -> list[int]:
        """Return the OIDs of user-made types in these replies, sorted."""
        descriptions = {data for reply in replies for kind, data in reply.others if kind == wire.ROW_DESCRIPTION}
        oids = {oid for payload in descriptions for _, oid in self.raw_columns(payload)}
        return sorted(oid for oid in oids if oid >= FIRST_USER_OID)

    def columns(self, payload: bytes) -> tuple[Column, ...]:
        """Return the columns of a RowDescription; a type gone before it could be looked up is called `dropped`."""
        return tuple(
            Column(name, str(oid) if oid < FIRST_USER_OID else self.names.get(oid, "dropped"))
            for name, oid in self.raw_columns(payload)
        )


def observe_steps(
    case: Case,
    run: Run,
    replies: Sequence[Reply],
    types: TypeNames,
    partial: Reply | None = None,
    cut: Outcome = Outcome.LOST,
) -> tuple[Observation, ...]:
    """Return an Observation for each step.

    `partial` is what came of a reply that was never finished, if one was not; its step gets the outcome `cut`.
    """
    frames = frames_of(case, run)
    observations = []
    position = 0
    for step, part in zip(case.all_steps, frames, strict=True):
        mine = replies[position : position + part.replies]
        position += part.replies
        if len(mine) == part.replies:
            observations.append(_observe(step, mine, types, explain=run.explain))
        elif partial is not None:
            observations.append(replace(_unfinished([*mine, partial], types), outcome=cut))
            partial = None
        else:
            observations.append(Observation(Outcome.SKIPPED))
    return tuple(observations)


def _observe(step: Step, replies: Sequence[Reply], types: TypeNames, *, explain: bool) -> Observation:
    merged = _merge(replies, types)
    if explain and step.kind is Kind.QUERY and merged.outcome is Outcome.OK:
        return replace(merged, tags=(), columns=(), rows=(), plan=_plan_of(merged.rows))
    return merged


def _unfinished(replies: Sequence[Reply], types: TypeNames) -> Observation:
    """A step whose connection was lost; the SQLSTATE is that of the server's last words, if any."""
    merged = _merge(replies, types)
    sqlstate = merged.messages[-1].sqlstate if merged.messages else ""
    return replace(merged, sqlstate=sqlstate)


def _merge(replies: Sequence[Reply], types: TypeNames) -> Observation:
    rows: list[bytes] = []
    tags: list[str] = []
    messages = []
    columns: tuple[Column, ...] = ()
    outcome, sqlstate = Outcome.OK, ""
    for reply in replies:
        rows += reply.rows
        for kind, payload in reply.others:
            if kind == wire.COMMAND_COMPLETE:
                tags.append(payload[:-1].decode())
            elif kind == wire.ROW_DESCRIPTION:
                columns = types.columns(payload)
            elif kind in (wire.ERROR_RESPONSE, wire.NOTICE_RESPONSE):
                messages.append(wire.message_of(payload))
            if kind == wire.ERROR_RESPONSE and outcome is Outcome.OK:
                sqlstate = messages[-1].sqlstate
                outcome = Outcome.TIMEOUT if _timed_out(payload) else Outcome.ERROR
    transaction = replies[-1].status
    return Observation(outcome, sqlstate, tuple(tags), columns, tuple(rows), tuple(messages), transaction=transaction)


def _timed_out(payload: bytes) -> bool:
    """Tell a timeout from SQLSTATE 57014 raised by a statement: nobody but statement_timeout cancels a case."""
    fields = wire.parse_fields(payload)
    return fields.get("C") == QUERY_CANCELED and fields.get("R") == "ProcessInterrupts"


def _plan_of(rows: Sequence[bytes]) -> Mapping[str, Any] | None:
    """Return the plan of an EXPLAIN (FORMAT JSON), whose only row holds an array of one; None where rules gave none."""
    plans = [json.loads(value) for row in rows for value in wire.values_of(row)[:1] if value]
    return plans[0][0] if plans else None
