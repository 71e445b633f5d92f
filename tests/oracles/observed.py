"""Observations made by hand, and the loop that shows them to an oracle."""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from fuzz.execution.judging import Assignment, judge_case
from oracles.model.case import Case, Kind, Step
from oracles.model.finding import Finding
from oracles.model.mode import Mode
from oracles.model.observation import CaseObservation, Message, Observation, Outcome, Residue, Run
from oracles.model.oracle import Agree, NotApplicable, Oracle, Verdict
from oracles.model.sampling import Sample

ARMS = ("master", "patched")
LOST = Observation(Outcome.LOST)
SKIPPED = Observation(Outcome.SKIPPED)


def timeout(transaction: str = "I") -> Observation:
    return Observation(Outcome.TIMEOUT, "57014", transaction=transaction)


def row(*values: str | None) -> bytes:
    """Return a DataRow."""
    encoded = [struct.pack("!i", -1) if value is None else _sized(value.encode()) for value in values]
    return struct.pack("!H", len(values)) + b"".join(encoded)


def _sized(value: bytes) -> bytes:
    return struct.pack("!i", len(value)) + value


def ok(*values: str | None, tag: str = "", messages: Sequence[Message] = (), transaction: str = "I") -> Observation:
    """Return a step that ended well, with a row of one column for each value."""
    rows = tuple(row(value) for value in values)
    return Observation(
        Outcome.OK, "", (tag or f"SELECT {len(rows)}",), (), rows, tuple(messages), transaction=transaction
    )


def error(sqlstate: str, text: str = "it failed", transaction: str = "I") -> Observation:
    return Observation(Outcome.ERROR, sqlstate, messages=(Message("ERROR", sqlstate, text),), transaction=transaction)


def warning(text: str, sqlstate: str = "01000") -> Message:
    return Message("WARNING", sqlstate, text)


def query(sql: str = "SELECT", *, ordered: bool = False, may_fail: bool = False) -> Step:
    return Step(sql, Kind.QUERY, ordered=ordered, may_fail=may_fail)


def case(*steps: Step, modes: tuple[Mode, ...] = (), samples: Iterable[Sample] = ()) -> Case:
    return Case("by_hand", (), steps, modes, samples=tuple(sample.name for sample in samples))


def seen(*steps: Observation, digests: Mapping[str, str] | None = None) -> CaseObservation:
    return CaseObservation("", steps, tuple((digests or {}).items()), Residue())


class ByHand:
    """Shows observations made by hand instead of executing anything, and remembers what it was asked."""

    def __init__(self, respond: Callable[[Run], CaseObservation]) -> None:
        self._respond = respond
        self.asked: list[Run] = []

    def observe(self, case: Case, runs: Sequence[Run]) -> Mapping[Run, CaseObservation]:
        self.asked += runs
        return {run: replace(self._respond(run), arm=run.arm) for run in runs}


def seated(oracles: Sequence[Oracle], arms: Sequence[str]) -> tuple[Assignment, ...]:
    """Return seats in which each oracle judges all arms."""
    return tuple(Assignment(oracle, tuple(arms)) for oracle in oracles)


def judged(
    oracle: Oracle, case: Case, respond: Callable[[Run], CaseObservation], arms: Sequence[str] = ARMS
) -> tuple[Verdict, ...]:
    """Return the oracle's verdicts."""
    return tuple(verdict for _, verdict in judge_case(ByHand(respond), seated((oracle,), arms), case).verdicts)


def agreed(statements: int) -> Verdict:
    """Return the verdict on so many statements without a difference."""
    return Agree(statements) if statements else NotApplicable()


def finding(verdicts: Sequence[Verdict]) -> Finding:
    """Return the only finding there is."""
    (found,) = (verdict for verdict in verdicts if isinstance(verdict, Finding))
    return found


def way(run: Run) -> str:
    """Return what an oracle added to a run: the number of a repetition, or the last mode; "" where it added none."""
    if run.repetition:
        return f"again {run.repetition}"
    return run.modes[-1].name if run.modes else ""
