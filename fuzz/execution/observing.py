"""Conversion of a server's replies to observations of steps."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from fuzz.execution import messages
from fuzz.execution.costs import cancel_in, costs_in, memory_in, widest_in
from fuzz.execution.session import Frames, application_name
from fuzz.execution.wire import Reply
from oracles.explain.nodes import EXECUTOR_CPU, planning_time
from oracles.model.case import Case, Kind, Step
from oracles.model.observation import UNKNOWN_TYPE, Message, Observation, Outcome, ResultColumn, Run
from oracles.model.sqlstate import INTERNAL_ERROR, QUERY_CANCELED

# FirstGenbkiObjectId of src/include/access/transam.h. Lower OIDs are fixed in the source, but from here on, PostgreSQL
# assigns them in order: genbki.pl, initdb, and then the server.
_FIRST_ASSIGNED_OID: Final = 10000


class Reader:
    """A reader of the replies to a case's steps.

    OIDs of types that the case creates differ between arms, and so do those of row types of system views if the arms'
    catalogs differ. So observations have the names of such types. `unknown_types` returns the OIDs to look up, and
    `type_names` takes the names. Before that, as in a session that was lost, the types are UNKNOWN_TYPE. Row
    descriptions repeat, so each is decoded once.

    In messages, paths of the arm's own directories are replaced according to `directories` (path -> replacement). The
    session's application name, which a case may restore, loses the arm's.
    """

    def __init__(self, case: Case, run: Run, frames: Sequence[Frames], directories: Mapping[str, str]) -> None:
        self._directories = directories
        self._own_status = f"ParameterStatus: application_name = {application_name(run)}"
        self.type_names: dict[int, str] | None = None
        self._steps = tuple(zip(case.all_steps, frames, strict=True))
        self._explains = run.explain or run.plannings > 0
        self._columns: dict[bytes, tuple[ResultColumn, ...]] = {}

    def unknown_types(self, replies: Iterable[Reply]) -> list[int]:
        """Return the OIDs of types in these replies that are not fixed in the source, sorted."""
        descriptions = {data for reply in replies for kind, data in reply.others if kind == messages.ROW_DESCRIPTION}
        oids = {int(column.type) for payload in descriptions for column in self._raw_columns(payload)}
        return sorted(oid for oid in oids if oid >= _FIRST_ASSIGNED_OID)

    def _raw_columns(self, payload: bytes) -> tuple[ResultColumn, ...]:
        found = self._columns.get(payload)
        if found is None:
            found = self._columns[payload] = tuple(messages.columns_of(payload))
        return found

    def _described(self, payload: bytes) -> tuple[ResultColumn, ...]:
        """Return the columns of a RowDescription. A type dropped before its lookup has the name `dropped`."""
        return tuple(map(self._named, self._raw_columns(payload)))

    def _named(self, column: ResultColumn) -> ResultColumn:
        oid = int(column.type)
        if oid < _FIRST_ASSIGNED_OID:
            return column
        return replace(column, type=UNKNOWN_TYPE if self.type_names is None else self.type_names.get(oid, "dropped"))

    def observations(
        self, replies: Sequence[Reply], partial: Reply | None = None, cut: Outcome = Outcome.LOST
    ) -> tuple[Observation, ...]:
        """Return an observation for each step.

        `partial` is an incomplete reply, if there is one. Its step has the outcome `cut`.
        """
        observations = []
        position = 0
        for step, frames in self._steps:
            count = frames.replies + (frames.read_back is not None)
            mine = replies[position : position + count]
            position += count
            if len(mine) == count:
                observations.append(self._finished(step, mine, frames))
            elif partial is not None:
                observations.append(replace(self._unfinished([*mine, partial]), outcome=cut))
                partial = None
            else:
                observations.append(Observation(Outcome.SKIPPED))
        return tuple(observations)

    def _finished(self, step: Step, replies: Sequence[Reply], frames: Frames) -> Observation:
        if frames.read_back is not None:
            first, second = (self._merge([reply]) for reply in replies)
            return replace(first, read_back=second, transaction=second.transaction)
        merged = self._merge(replies)
        if not self._explains:
            return merged
        if step.kind is not Kind.QUERY:
            return replace(merged, memory=memory_in([message.text for message in merged.messages]))
        if merged.outcome is not Outcome.OK:
            return replace(merged, plan=_canceled(merged.messages) or None)
        return _with_plan(replace(merged, tags=(), columns=(), earlier_columns=(), rows=()), replies)

    def _unfinished(self, replies: Sequence[Reply]) -> Observation:
        """Return the observation of a step whose connection was lost, with the SQLSTATE of the last message."""
        merged = self._merge(replies)
        sqlstate = merged.messages[-1].sqlstate if merged.messages else ""
        return replace(merged, sqlstate=sqlstate)

    def message(self, payload: bytes) -> Message:
        """Return an error or notice without paths of the arm's own directories."""
        message = messages.message_of(payload)
        text = self._without_directories(message.text)
        fields = tuple((name, self._without_directories(value)) for name, value in message.fields)
        return replace(message, text=text, fields=fields)

    def _without_directories(self, text: str) -> str:
        for path, what in self._directories.items():
            text = text.replace(path, what)
        return text

    def _protocol(self, reply: Reply) -> Iterator[str]:
        for text in (messages.protocol_text(kind, payload) for kind, payload in reply.others):
            if text == self._own_status:
                yield "ParameterStatus: application_name = pgduel"
            elif text:
                yield self._without_directories(text)

    def _merge(self, replies: Sequence[Reply]) -> Observation:
        rows: list[bytes] = []
        tags: list[str] = []
        received = []
        columns: list[tuple[ResultColumn, ...]] = []
        outcome, sqlstate = Outcome.OK, ""
        for reply in replies:
            rows += reply.rows
            for kind, payload in reply.others:
                if kind == messages.COMMAND_COMPLETE:
                    tags.append(payload[:-1].decode("utf-8", "replace"))
                elif kind == messages.ROW_DESCRIPTION:
                    columns.append(self._described(payload))
                elif kind in (messages.ERROR_RESPONSE, messages.NOTICE_RESPONSE):
                    received.append(self.message(payload))
                if kind == messages.ERROR_RESPONSE and outcome is Outcome.OK:
                    sqlstate = received[-1].sqlstate
                    outcome = Outcome.TIMEOUT if _timed_out(payload) and not _canceled(received) else Outcome.ERROR
        if outcome is Outcome.OK and any(reply.too_large for reply in replies):
            outcome = Outcome.TOO_LARGE
        *earlier, last = columns or [()]
        return Observation(
            outcome,
            sqlstate,
            tuple(tags),
            last,
            tuple(rows),
            tuple(received),
            earlier_columns=tuple(earlier),
            protocol=tuple(text for reply in replies for text in self._protocol(reply)),
            transaction=replies[-1].status,
        )


def _timed_out(payload: bytes) -> bool:
    """Return whether the server canceled the statement. A statement may raise SQLSTATE 57014 itself.

    Only statement_timeout and the probe cancel statements of a case.
    """
    fields = messages.parse_fields(payload)
    return fields.get("C") == QUERY_CANCELED and fields.get("R") == "ProcessInterrupts"


def _canceled(received: Iterable[Message]) -> Mapping[str, float]:
    """Return the delay of the cancel in the messages of a statement, if the probe canceled it."""
    return cancel_in(message.text for message in received)


def _with_plan(seen: Observation, replies: Iterable[Reply]) -> Observation:
    """Return the observation of an explained step with its plan; of several, the one with the least CPU time.

    There is none if rewrite rules left nothing to plan. Output that cannot be read is an internal error of the server,
    although the server has not raised it.
    """
    try:
        plan = min((plan for reply in replies for plan in _explained(reply)), key=_cpu, default=None)
    except (ValueError, RecursionError) as error:
        text = f"the output of EXPLAIN (FORMAT JSON) cannot be read\nDETAIL: {error}"
        message = Message("ERROR", INTERNAL_ERROR, text)
        return replace(seen, outcome=Outcome.ERROR, sqlstate=INTERNAL_ERROR, messages=(*seen.messages, message))
    return replace(seen, plan=plan)


def _explained(reply: Reply) -> Iterator[Mapping[str, Any]]:
    """Yield the plan of each row, with the costs that the server reported last. Raises ValueError, RecursionError."""
    texts = [messages.message_of(payload).text for kind, payload in reply.others if kind == messages.NOTICE_RESPONSE]
    costs = {name: cost for text in texts for name, cost in costs_in(text).items()}
    for row in reply.rows:
        for value in filter(None, messages.values_of(row)[:1]):
            for plan in _array(value)[:1]:
                yield {**plan, **costs, **widest_in(texts), **cancel_in(texts)}


def _array(text: str) -> list[dict[str, Any]]:
    """Return an array of objects. Raises ValueError, RecursionError."""
    array = json.loads(text)
    if isinstance(array, list) and all(isinstance(each, dict) for each in array):
        return array
    raise ValueError("it is no array of objects")


def _cpu(plan: Mapping[str, Any]) -> float:
    return float(plan.get(EXECUTOR_CPU, planning_time(plan)))
