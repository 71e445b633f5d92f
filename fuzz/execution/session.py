"""A session's settings, and the messages of each step, by the protocol of the case's modes.

Only QUERY steps use the modes' protocol, and parameters require an extended one. No protocol opens or ends a
transaction by itself. So a query may run inside a transaction block of the case, or in an aborted one.

CURSOR sends DECLARE and FETCHes in one Query message. Outside a block, these statements are one implicit transaction.
The whole result is fetched in two portions, with a MOVE 0 between them. A real MOVE would skip rows. Without a total
order, the arms might skip different ones.

BINARY and TEXT send each row back as parameters of `SELECT $1, $2 ...`, with the types of its columns. So the server
reads what it wrote, in the same session and under the same settings.
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import Final

from fuzz.execution import costs, messages
from fuzz.execution.wire import Reply
from oracles.model.case import Case, Kind, Step
from oracles.model.mode import Protocol, protocol_of, settings_of
from oracles.model.observation import CaseObservation, Observation, Outcome, Run

SEARCH_PATH: Final = "duel,public"
CURSOR_FIRST_ROWS: Final = 3
EARLY_ROWS: Final = 5
EXPLAIN: Final = "EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF, BUFFERS, SETTINGS) "
PLAN: Final = "EXPLAIN (VERBOSE, FORMAT JSON, SUMMARY, MEMORY) "

_STATEMENT = "duel_statement"
_CURSOR = "duel_cursor"
_RUN_PORTAL = messages.DESCRIBE_PORTAL + messages.execute()


@dataclass(frozen=True, slots=True)
class Frames:
    """Messages, and the number of ReadyForQuery messages in the reply.

    With `read_back`, a second reply follows, to the rows of the first as parameters in this format.
    """

    data: bytes
    replies: int = 1
    read_back: messages.ValueFormat | None = None


def lacking(run: Run, known: AbstractSet[str]) -> tuple[str, ...]:
    """Return the settings of optional modes, and those that the run needs, which the arm lacks.

    `known` has lower-case names.
    """
    optional = settings_of(mode for mode in run.modes if mode.optional)
    return tuple(name for name in (*optional, *run.needs) if name.lower() not in known)


def is_redundant(case: Case, run: Run, known: AbstractSet[str]) -> bool:
    """Return whether the arm lacks settings that a run needs, or all settings that it adds as optional modes."""
    if any(name.lower() not in known for name in run.needs):
        return True
    added = [mode for mode in run.modes if mode not in case.modes]
    optional = all(mode.optional and mode.protocol is None for mode in added)
    unknown = all(name.lower() not in known for name in settings_of(added))
    return bool(added) and optional and unknown


def skipped_run(case: Case, run: Run, known: AbstractSet[str]) -> CaseObservation:
    """Return the observation of a run that is skipped, because the arm lacks its settings."""
    skipped = tuple(Observation(Outcome.SKIPPED) for _ in case.all_steps)
    return CaseObservation(run.arm, skipped, lacking=lacking(run, known))


def time_limit(run: Run, statement_timeout_ms: int) -> float:
    """Return the seconds that one step of a run may take: statement_timeout, or the client's multiple of it."""
    own = settings_of(run.modes).get("statement_timeout", f"{statement_timeout_ms}ms")
    return int(own.removesuffix("ms")) / 1000 * max(run.timeout_factor, 1)


def startup_parameters(
    run: Run, database: str, statement_timeout_ms: int, without: Sequence[str] = ()
) -> dict[str, str]:
    """Return the startup parameters. Any setting may be one, so none has to be reset later."""
    parameters = {
        "user": "postgres",
        "database": database,
        "client_encoding": "UTF8",
        "application_name": application_name(run),
        "search_path": SEARCH_PATH,
        "statement_timeout": str(statement_timeout_ms),
    } | {name: value for name, value in settings_of(run.modes).items() if name not in without}
    if run.timeout_factor:
        parameters["statement_timeout"] = "0"
    if run.explain:
        parameters |= {"pgduel_probe.reach": "on", **costs.OF_EXECUTION}
    if run.plannings:
        parameters |= costs.OF_PLANNING
    if run.repeats > 1:
        parameters["track_functions"] = "pl"  # for `Resources.called`
    if run.fault:
        parameters |= {
            "session_preload_libraries": "pgduel_faults",
            "pgduel_faults.action": run.fault,
        }
    return parameters


def application_name(run: Run) -> str:
    """Return the session's application name."""
    return f"pgduel {run.arm}"


def frames_of(case: Case, run: Run) -> list[Frames]:
    """Return the messages of each step of the case, or of the query that replaces it in the run."""
    protocol = protocol_of(run.modes)
    steps = list(case.all_steps)
    for position, sql in run.instead:
        steps[position] = steps[position].with_statement(sql)
    frames = [_step_frames(step, protocol, _explaining(run)) for step in steps]
    times = max(run.plannings, run.executions)
    if times < 2:
        return frames
    return [
        _repeated(each, times) if step.kind is Kind.QUERY else each for step, each in zip(steps, frames, strict=True)
    ]


def _repeated(frames: Frames, times: int) -> Frames:
    return Frames(frames.data * times, frames.replies * times)


def _step_frames(step: Step, protocol: Protocol, explain: str) -> Frames:
    if step.kind is Kind.COPY_IN:
        return Frames(messages.query(step.sql) + messages.copy_data(step.copy_data or b"") + messages.COPY_DONE)
    if step.kind is not Kind.QUERY:
        return Frames(messages.query(step.sql))
    if step.params and protocol is Protocol.SIMPLE:
        protocol = Protocol.EXTENDED
    return _EXPLAINED[protocol](step, explain) if explain else _PLAIN[protocol](step)


def _simple(step: Step) -> Frames:
    return Frames(messages.query(step.sql))


def _extended(step: Step, sql: str = "", run_portal: bytes = _RUN_PORTAL) -> Frames:
    return Frames(messages.parse("", sql or step.sql) + messages.bind("", step.params) + run_portal + messages.SYNC)


def _returning(step: Step, results: messages.ValueFormat) -> Frames:
    """Return the messages of a query whose rows are to be read back."""
    bound = messages.parse("", step.sql) + messages.bind("", step.params, results)
    return Frames(bound + _RUN_PORTAL + messages.SYNC, read_back=results)


def reading_back(reply: Reply, sent: messages.ValueFormat) -> bytes:
    """Return messages that send the rows of a reply back; only Sync if the query failed."""
    payloads = dict(reply.others)
    if messages.ERROR_RESPONSE in payloads or messages.ROW_DESCRIPTION not in payloads:
        return messages.SYNC
    types = [int(column.type) for column in messages.columns_of(payloads[messages.ROW_DESCRIPTION])]
    select = "SELECT " + ", ".join(f"${number}" for number in range(1, len(types) + 1))
    bound = b"".join(messages.bind_row(row, sent) + messages.execute() for row in reply.rows)
    return messages.parse("", select, types) + bound + messages.SYNC


def _prepared(step: Step) -> Frames:
    """Return messages that execute a prepared statement twice; the rows of both are concatenated.

    Close has its own Sync, because an error skips all messages before the next Sync.
    """
    twice = 2 * (messages.bind(_STATEMENT, step.params) + _RUN_PORTAL)
    prepared = messages.parse(_STATEMENT, step.sql) + twice + messages.SYNC
    return Frames(prepared + messages.close_statement(_STATEMENT) + messages.SYNC, replies=2)


def _cursor(step: Step) -> Frames:
    if step.params:  # a portal suspended and resumed, because DECLARE takes no parameters
        return _extended(
            step, run_portal=messages.DESCRIBE_PORTAL + messages.execute(CURSOR_FIRST_ROWS) + messages.execute()
        )
    return Frames(
        messages.query(
            f"DECLARE {_CURSOR} CURSOR FOR {step.sql}\n;FETCH {CURSOR_FIRST_ROWS} FROM {_CURSOR};"
            f"MOVE 0 IN {_CURSOR};FETCH ALL FROM {_CURSOR};CLOSE {_CURSOR}"
        )
    )


def _closed_early(step: Step) -> Frames:
    return _extended(step, run_portal=messages.DESCRIBE_PORTAL + messages.execute(EARLY_ROWS) + messages.CLOSE_PORTAL)


def _explain(step: Step, explain: str) -> Frames:
    return _extended(step, explain + step.sql)


def _explain_prepared(step: Step, explain: str) -> Frames:
    """Return EXPLAIN EXECUTE, whose plan depends on plan_cache_mode. SQL can execute statements of Parse by name."""
    return Frames(
        messages.parse(_STATEMENT, step.sql)
        + messages.SYNC
        + messages.query(explain + _execute(step))
        + messages.close_statement(_STATEMENT)
        + messages.SYNC,
        replies=3,
    )


def _execute(step: Step) -> str:
    arguments = ", ".join(_literal(value) for value in step.params)
    return f"EXECUTE {_STATEMENT}" + (f" ({arguments})" if arguments else "")


def _explain_cursor(step: Step, explain: str) -> Frames:
    """Return EXPLAIN DECLARE, because the planner optimizes a cursor's query for its first rows."""
    if step.params:
        return _explain(step, explain)
    return Frames(messages.query(explain + _declare(step)))


def _declare(step: Step) -> str:
    return f"DECLARE {_CURSOR} CURSOR FOR {step.sql}"


def explaining_steps(step: Step, run: Run) -> tuple[Step, ...]:
    """Return the commands that explain a step as an explained or planned run does, if it is a query, else the step."""
    explain = _explaining(run)
    if not explain or step.kind is not Kind.QUERY:
        return (step,)
    protocol = protocol_of(run.modes)
    if step.params or protocol is Protocol.PREPARED:
        texts: tuple[str, ...] = (
            f"PREPARE {_STATEMENT} AS {step.sql}",
            explain + _execute(step),
            f"DEALLOCATE {_STATEMENT}",
        )
    else:
        texts = (explain + (_declare(step) if protocol is Protocol.CURSOR else step.sql),)
    return tuple(Step(text, may_fail=step.may_fail, tags=step.tags) for text in texts)


def _explaining(run: Run) -> str:
    """Return the words before each query of a run, or ""."""
    return EXPLAIN if run.explain else PLAN if run.plannings else ""


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
    Protocol.BINARY: partial(_returning, results=messages.ValueFormat.BINARY),
    Protocol.TEXT: partial(_returning, results=messages.ValueFormat.TEXT),
}
_EXPLAINED: Mapping[Protocol, Callable[[Step, str], Frames]] = {
    Protocol.SIMPLE: _explain,
    Protocol.EXTENDED: _explain,
    Protocol.PREPARED: _explain_prepared,
    Protocol.CURSOR: _explain_cursor,
    Protocol.CLOSED_EARLY: _explain,
    Protocol.BINARY: _explain,
    Protocol.TEXT: _explain,
}
