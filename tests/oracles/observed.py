"""Hand-made observations, and a stub of the executor that returns them."""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from fuzz.execution.judging import Assignment, judge_case
from oracles.model.case import Case, Kind, Step
from oracles.model.finding import Finding
from oracles.model.mode import Mode
from oracles.model.observation import CaseObservation, Message, Observation, Outcome, Residue, Run
from oracles.model.oracle import Agree, NotApplicable, Oracle, Sample, Verdict

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
    """Return a successful step, with a row of one column for each value."""
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


class StubExecutor:
    """A stub of the executor that returns hand-made observations, and records the requested runs."""

    def __init__(self, respond: Callable[[Run], CaseObservation]) -> None:
        self._respond = respond
        self.requested: list[Run] = []

    def observe(self, case: Case, runs: Sequence[Run]) -> Mapping[Run, CaseObservation]:
        self.requested += runs
        return {run: replace(self._respond(run), arm=run.arm) for run in runs}


def assigned(oracles: Sequence[Oracle], arms: Sequence[str]) -> tuple[Assignment, ...]:
    """Return assignments of all arms to each oracle."""
    return tuple(Assignment(oracle, tuple(arms)) for oracle in oracles)


def judged_with_runs(
    oracle: Oracle, case: Case, respond: Callable[[Run], CaseObservation], arms: Sequence[str] = ARMS
) -> tuple[tuple[Verdict, ...], list[Run]]:
    """Return the oracle's verdicts, and the runs that it requested."""
    executor = StubExecutor(respond)
    verdicts = judge_case(executor, assigned((oracle,), arms), case).verdicts
    return tuple(verdict for _, verdict in verdicts), executor.requested


def judged(
    oracle: Oracle, case: Case, respond: Callable[[Run], CaseObservation], arms: Sequence[str] = ARMS
) -> tuple[Verdict, ...]:
    """Return the oracle's verdicts."""
    return judged_with_runs(oracle, case, respond, arms)[0]


def on_second_step(first: Observation, master: Observation, patched: Observation) -> Callable[[Run], CaseObservation]:
    """Return a response with a first step that is equal on both arms, and a second step for each arm."""
    seconds = {"master": master, "patched": patched}
    return lambda run: seen(first, seconds[run.arm])


def agreed(statements: int) -> Verdict:
    """Return the verdict on this number of statements without a difference."""
    return Agree(statements) if statements else NotApplicable()


def finding(verdicts: Sequence[Verdict]) -> Finding:
    """Return the only finding."""
    (found,) = (verdict for verdict in verdicts if isinstance(verdict, Finding))
    return found


def variant(run: Run) -> str:
    """Return the name of an oracle's additional run: its repetition or last mode. It is "" for a plain run."""
    if run.repetition:
        return f"again {run.repetition}"
    return run.modes[-1].name if run.modes else ""
