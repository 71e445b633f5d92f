"""Internal error: no statement may end in an error of SQLSTATE class XX.

PostgreSQL raises these if its own state is inconsistent ("could not find pathkey item to sort", "cache lookup
failed"): elog(ERROR) has SQLSTATE XX000 (src/backend/utils/errcodes.txt, class XX). Errors of all runs on all arms
count, also in steps that may fail, and in the statements with which pgduel ends a case. DROP SCHEMA fails, for example,
where a patch left a dependency on an object that is gone. Places that raise one legally are listed in LEGAL, with the
reason.
"""

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Final

from oracles.framework.canaries import canary_case, query
from oracles.framework.difference_text import message_text
from oracles.framework.shared_runs import REPEATED, repeated_runs
from oracles.framework.verdicts import findings_of_runs
from oracles.model.case import Case
from oracles.model.finding import Finding, as_all_do
from oracles.model.observation import CaseObservation, Message, Run
from oracles.model.oracle import (
    Agree,
    Canary,
    Inconclusive,
    More,
    Observations,
    Oracle,
    Sample,
    Verdict,
    duel,
    judged_arms,
)

CLASS: Final = "XX"


@dataclass(frozen=True, slots=True)
class Legal:
    """A place in PostgreSQL that raises an internal error without a fault."""

    routine: str  # the C function
    message: str  # the beginning of the message
    reason: str

    def covers(self, message: Message) -> bool:
        """Return whether a message comes from this place."""
        return message.routine == self.routine and message.text.startswith(self.message)


LEGAL: Final = (
    Legal("coerce_type", "failed to find conversion function from unknown", "expressions of type unknown"),
    Legal("intervaltypmodout", "invalid INTERVAL typmod", "a type modifier that no type has, passed from SQL"),
    # PostgreSQL's documentation demands one (Operator Optimization Information); CREATE OPERATOR does not check it.
    Legal("CommuteOpExpr", "could not find commutator", "an operator for merge joins that has no commutator"),
    Legal("SetNextObjectId", "cannot advance OID counter", "pg_stop_making_pinned_objects() is for initdb only"),
)


@dataclass(frozen=True, slots=True)
class RaisedError:
    """An internal error: the position of its step (None: after the case), and the message."""

    step: int | None
    message: Message


def origin_of(message: Message) -> str:
    """Return the SQLSTATE, the message without names and numbers, and the C function."""
    template = template_of(message.text.partition("\n")[0])
    return f"{message.sqlstate} {template} in {message.routine or 'an unnamed function'}"


def template_of(message: str) -> str:
    """Return a message without names and numbers."""
    return re.sub(r"0x[0-9a-f]+|\d+", "N", re.sub(r'"[^"]*"', '"…"', message))


_EXPECTED: Final = "no error of SQLSTATE class XX"


class InternalError(Oracle):
    """Errors of SQLSTATE class XX."""

    name: ClassVar[str] = "internal_error"
    needs_another_arm: ClassVar[bool] = False
    origin_is_cause: ClassVar[bool] = True
    samples: ClassVar[tuple[Sample, ...]] = (REPEATED,)
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary("change_sqlstate", canary_case(query("SELECT 1 / (n - 1) FROM canary", may_fail=True))),
    )

    def runs(self, case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
        """Return the plain runs, and repeated runs of a sample of cases, because an error may need a repetition."""
        return duel(case, arms) + repeated_runs(case, arms)

    def judge(self, case: Case, arms: Sequence[str], observations: Observations) -> tuple[Verdict, ...] | More:
        """Return a finding for each origin; if all arms raise it, it is a fault of the base (the first arm twice).

        Some of PostgreSQL's own tests raise internal errors on purpose. So in a replayed test, errors do not count that
        it raises without modes, too, on the first arm.
        """
        intended: frozenset[str] = frozenset()
        if case.part and (origins := _origins(observations.values())):
            without_modes = self.runs(replace(case, modes=()), arms[:1])
            if missing := tuple(run for run in without_modes if run not in observations):
                return More(missing, origins)
            intended = _origins(observations[run] for run in without_modes)
        findings = findings_of_runs(arms, observations, partial(_faults, intended=intended), _finding)
        if isinstance(findings, More):
            return findings
        suspects = {finding.arms[1] for finding in findings}
        others = [
            _without(arm, self.runs(case, arms), observations) for arm in judged_arms(arms) if arm not in suspects
        ]
        doubtful = {run: doubts for run, observed in observations.items() if (doubts := tuple(_legal(observed)))}
        runs = sorted(doubtful, key=lambda run: (run.repetition, repr(run)))
        legal = {doubt.reason: doubt for run in reversed(runs) for doubt in doubtful[run]}
        return (*findings, *others, *(doubt for _, doubt in sorted(legal.items())))

    def origins(self, seen: CaseObservation) -> Iterator[str]:
        """Yield the origins of the run's internal errors."""
        return (origin_of(error.message) for error in internal_errors(seen))


def _faults(
    observed: CaseObservation, intended: Set[str] = frozenset()
) -> Iterator[tuple[str, int | None, RaisedError]]:
    """Yield the internal errors of a run with their origins and steps, without those of intended origins."""
    for error in internal_errors(observed):
        if (origin := origin_of(error.message)) not in intended:
            yield origin, error.step, error


def _origins(seen: Iterable[CaseObservation]) -> frozenset[str]:
    return frozenset(origin for observed in seen for origin, *_ in _faults(observed))


def _finding(pair: tuple[str, str], origin: str, error: RaisedError) -> Finding:
    where = "after the case" if error.step is None else f"step {error.step}"
    return Finding(
        oracle=InternalError.name,
        arms=pair,
        origin=origin,
        step=error.step,
        summary=f"{where}: {pair[1]} raises an internal error: {origin}{as_all_do(pair)}",
        expected=_EXPECTED,
        actual=f"{error.message.severity}: {error.message.sqlstate}: {error.message.text}",
    )


def _all_errors(observed: CaseObservation) -> Iterator[RaisedError]:
    steps = (
        (position, message)
        for repetition in (*observed.earlier, observed.steps)
        for position, step in enumerate(repetition)
        for message in (*step.messages, *(step.read_back.messages if step.read_back else ()))
    )
    closing = ((None, message) for message in observed.closing)
    return (RaisedError(position, message) for position, message in (*steps, *closing) if _is_internal(message))


def _is_internal(message: Message) -> bool:
    return message.sqlstate.startswith(CLASS) and message.severity in ("ERROR", "FATAL", "PANIC")


def is_fault(message: Message) -> bool:
    """Return whether a message is an internal error that is not legal."""
    return _is_internal(message) and not any(legal.covers(message) for legal in LEGAL)


def internal_errors(observed: CaseObservation) -> Iterator[RaisedError]:
    """Yield the internal errors of a run that are not legal, in order."""
    return (error for error in _all_errors(observed) if is_fault(error.message))


def _legal(observed: CaseObservation) -> Iterator[Inconclusive]:
    """Yield a doubt for each legal internal error."""
    for error in _all_errors(observed):
        for legal in LEGAL:
            if legal.covers(error.message):
                reason = f"legal internal error in {legal.routine}: {legal.reason}"
                yield Inconclusive(reason, error.step, (_EXPECTED, message_text(error.message)))


def _without(arm: str, runs: Sequence[Run], observations: Observations) -> Verdict:
    seen = [observations[run] for run in runs if run.arm == arm]
    return Agree(sum(step.has_ended for step in seen[0].steps))
