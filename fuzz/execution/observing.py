"""Conversion of a server's replies to observations of steps."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from fuzz.execution import messages
from fuzz.execution.cpu_times import cpu_time
from fuzz.execution.session import Frames
from fuzz.execution.wire import Reply
from oracles.explain.nodes import EXECUTOR_CPU, planning_time
from oracles.model.case import Case, Kind, Step
from oracles.model.observation import Column, Message, Observation, Outcome, Run

FIRST_USER_OID: Final = 16384
QUERY_CANCELED: Final = "57014"


class Reader:
    """A reader of the replies to a case's steps.

    OIDs of types that the case creates differ between arms, so observations have the types' names. `unknown_types`
    returns the OIDs to look up, and `type_names` takes the names. Row descriptions repeat, so each is decoded once.

    In messages, paths of the arm's own directories are replaced according to `directories` (path -> replacement).
    """

    def __init__(self, case: Case, run: Run, frames: Sequence[Frames], directories: Mapping[str, str]) -> None:
        self._directories = directories
        self.type_names: dict[int, str] = {}
        self._steps = tuple(zip(case.all_steps, frames, strict=True))
        self._explains = run.explain or run.plannings > 0
        self._columns: dict[bytes, tuple[tuple[str, int], ...]] = {}

    def unknown_types(self, replies: Iterable[Reply]) -> list[int]:
        """Return the OIDs of user-defined types in these replies, sorted."""
        descriptions = {data for reply in replies for kind, data in reply.others if kind == messages.ROW_DESCRIPTION}
        oids = {oid for payload in descriptions for _, oid in self._raw_columns(payload)}
        return sorted(oid for oid in oids if oid >= FIRST_USER_OID)

    def _raw_columns(self, payload: bytes) -> tuple[tuple[str, int], ...]:
        found = self._columns.get(payload)
        if found is None:
            found = self._columns[payload] = tuple(messages.columns_of(payload))
        return found

    def _described(self, payload: bytes) -> tuple[Column, ...]:
        """Return the columns of a RowDescription. A type dropped before its lookup has the name `dropped`."""
        return tuple(
            Column(name, str(oid) if oid < FIRST_USER_OID else self.type_names.get(oid, "dropped"))
            for name, oid in self._raw_columns(payload)
        )

    def observations(
        self, replies: Sequence[Reply], partial: Reply | None = None, cut: Outcome = Outcome.LOST
    ) -> tuple[Observation, ...]:
        """Return an observation for each step.

        `partial` is an incomplete reply, if there is one. Its step has the outcome `cut`.
        """
        observations = []
        position = 0
        for step, frames in self._steps:
            mine = replies[position : position + frames.replies]
            position += frames.replies
            if len(mine) == frames.replies:
                observations.append(self._finished(step, mine))
            elif partial is not None:
                observations.append(replace(self._unfinished([*mine, partial]), outcome=cut))
                partial = None
            else:
                observations.append(Observation(Outcome.SKIPPED))
        return tuple(observations)

    def _finished(self, step: Step, replies: Sequence[Reply]) -> Observation:
        merged = self._merge(replies)
        if self._explains and step.kind is Kind.QUERY and merged.outcome is Outcome.OK:
            return replace(merged, tags=(), columns=(), rows=(), plan=_plan_of(replies))
        return merged

    def _unfinished(self, replies: Sequence[Reply]) -> Observation:
        """Return the observation of a step whose connection was lost, with the SQLSTATE of the last message."""
        merged = self._merge(replies)
        sqlstate = merged.messages[-1].sqlstate if merged.messages else ""
        return replace(merged, sqlstate=sqlstate)

    def _message(self, payload: bytes) -> Message:
        message = messages.message_of(payload)
        text = message.text
        for path, what in self._directories.items():
            text = text.replace(path, what)
        return message if text is message.text else replace(message, text=text)

    def _merge(self, replies: Sequence[Reply]) -> Observation:
        rows: list[bytes] = []
        tags: list[str] = []
        said = []
        columns: tuple[Column, ...] = ()
        outcome, sqlstate = Outcome.OK, ""
        for reply in replies:
            rows += reply.rows
            for kind, payload in reply.others:
                if kind == messages.COMMAND_COMPLETE:
                    tags.append(payload[:-1].decode())
                elif kind == messages.ROW_DESCRIPTION:
                    columns = self._described(payload)
                elif kind in (messages.ERROR_RESPONSE, messages.NOTICE_RESPONSE):
                    said.append(self._message(payload))
                if kind == messages.ERROR_RESPONSE and outcome is Outcome.OK:
                    sqlstate = said[-1].sqlstate
                    outcome = Outcome.TIMEOUT if _timed_out(payload) else Outcome.ERROR
        transaction = replies[-1].status
        return Observation(outcome, sqlstate, tuple(tags), columns, tuple(rows), tuple(said), transaction=transaction)


def _timed_out(payload: bytes) -> bool:
    """Return whether statement_timeout caused the error, not a statement that raises SQLSTATE 57014.

    Only statement_timeout cancels statements of a case.
    """
    fields = messages.parse_fields(payload)
    return fields.get("C") == QUERY_CANCELED and fields.get("R") == "ProcessInterrupts"


def _plan_of(replies: Iterable[Reply]) -> Mapping[str, Any] | None:
    """Return the plan of EXPLAIN (FORMAT JSON); of several, the one with the least CPU time.

    Return None if rewrite rules left nothing to plan.
    """
    return min((plan for reply in replies for plan in _explained(reply)), key=_cpu, default=None)


def _explained(reply: Reply) -> Iterator[Mapping[str, Any]]:
    """Yield the plan of each row (an array of one element), with the CPU times that the server reported last."""
    texts = (messages.message_of(payload).text for kind, payload in reply.others if kind == messages.NOTICE_RESPONSE)
    times = dict(found for text in texts if (found := cpu_time(text)))
    for row in reply.rows:
        for value in filter(None, messages.values_of(row)[:1]):
            yield json.loads(value)[0] | times


def _cpu(plan: Mapping[str, Any]) -> float:
    return float(plan.get(EXECUTOR_CPU, planning_time(plan)))
