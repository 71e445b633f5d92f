"""Cancellation: a query can be canceled as soon as on the reference.

PostgreSQL obeys a cancel at the next CHECK_FOR_INTERRUPTS. Where a loop over many rows lacks one, neither a cancel, nor
a timeout, nor the end of the client stops it. In each explained execution, the probe requests an interrupt each
millisecond, and measures how long a request was pending (fuzz/servers/modules). So each moment of the query is tested,
and its result stays as it is. The measure is CPU time, because elapsed time depends on other processes of the machine.

The margin is a factor of 1.5 and ten milliseconds. Tables of a case have some megabytes, and those of servers thousands
of times as many, so ten milliseconds here are seconds there. Queries with other plans are not compared, because some
functions and nodes of PostgreSQL check rarely.

The longest query of a case is also canceled, if it takes 20 ms or more, at a moment that depends on its text. It must
then raise the error of a cancel. Faults that only such a run shows are findings of oracles that judge all runs, such as
`crash`.
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import ClassVar, Final

from oracles.explain.nodes import (
    CANCEL_DELAY,
    EXECUTOR_CPU,
    EXPLAINED,
    UNINTERRUPTED,
    Node,
    canceling,
    places,
    plan_kinds,
    plan_shape,
)
from oracles.framework.canaries import canary_case, query
from oracles.framework.cost import Cost, ExplainedCostOracle, ExplainedCostPair
from oracles.framework.difference_text import ended
from oracles.framework.verdicts import lost_session
from oracles.model.finding import UNDER_PLAN, Finding
from oracles.model.observation import Observation, Outcome, Run
from oracles.model.oracle import Canary, More, Unstable, Verdict
from oracles.model.sqlstate import QUERY_CANCELED

_MARGIN: Final = 10.0  # ms
_LONG: Final = 20.0  # ms of CPU time of a query that is canceled
_SHARES: Final = (10, 80)  # percentage of that time after which it is canceled: later, it might end before
_CANCELS: Final = 3
_SYMPTOM: Final = "a cancel is not obeyed"

_LONG_QUERY: Final = query("SELECT count(*) FROM canary, generate_series(1, 300000) AS g")


def _uninterrupted(plan: Node) -> float:
    return float(plan.get(UNINTERRUPTED, 0))


def _moment(sql: str, milliseconds: float) -> int:
    """Return the time after which a query of so much CPU time is canceled, in ms."""
    low, high = _SHARES
    share = low + int.from_bytes(sha256(sql.encode()).digest()[:4], "big") % (high - low + 1)
    return round(milliseconds * share / 100)


def _time(plan: Node) -> float:
    """Return the CPU time of each process of a plan in ms, if all take part in it alike."""
    return float(plan.get(EXECUTOR_CPU, 0)) / max(place.participants for place in places(plan))


def _obeyed(seen: Observation) -> bool:
    return CANCEL_DELAY in (seen.plan or {}) and seen.sqlstate == QUERY_CANCELED


def _disobeyed(seen: Observation) -> bool:
    """Return whether a query raised another error after a cancel, or continued to its end for a long time."""
    delay = (seen.plan or {}).get(CANCEL_DELAY)
    if delay is None or seen.sqlstate == QUERY_CANCELED:
        return False
    return seen.outcome is Outcome.ERROR or (seen.outcome is Outcome.OK and delay > _MARGIN)


COSTS: Final = (Cost("CPU time without a check for interrupts", "ms", 1.5, _MARGIN, 20, _uninterrupted),)


class _CancellationPair(ExplainedCostPair):
    oracle = "cancellation"
    costs = COSTS

    def form(self, plan: Node) -> str:
        return plan_shape(plan)

    def judge(self) -> tuple[Verdict, ...] | More:
        """Return the verdicts on the longest time without a check, and on the longest query, canceled."""
        judged = super().judge()
        if isinstance(judged, More):
            return judged
        canceled = self._judge_canceled()
        return canceled if isinstance(canceled, More) else (*canceled, *judged)

    def _judge_canceled(self) -> tuple[Verdict, ...] | More:
        """Return the verdicts on the longest query, canceled at one moment on both arms; none if it obeys."""
        step, milliseconds = self._longest()
        if milliseconds < _LONG:
            return ()
        for number in range(_CANCELS):
            runs = tuple(self._canceled_runs(step, milliseconds, number))
            if missing := self.missing(runs):
                return More(missing, frozenset({_SYMPTOM}) if number else frozenset())
            seen = [self.observations[run] for run in runs]
            if any(each.residue is None for each in seen):
                return (lost_session(*seen),)
            ours, theirs = (each.steps[step] for each in seen)
            if not (_obeyed(ours) and _disobeyed(theirs)):
                return (Unstable(f"{_SYMPTOM}: not each time", step, (ended(ours), ended(theirs))),) if number else ()
        return (self._disobeying(step, ours, theirs),)

    def _longest(self) -> tuple[int, float]:
        """Return the step that takes the most CPU time on both arms, and that time in ms; 0 if there is no step."""
        steps, _ = self.compared()
        ours, theirs = (self.first_plans(arm) for arm in (self.reference, self.suspect))
        times = ((step, min(_time(ours[step]), _time(theirs[step]))) for step in steps)
        return max(times, key=lambda each: each[1], default=(0, 0.0))

    def _canceled_runs(self, step: int, milliseconds: float, number: int) -> Iterator[Run]:
        modes = (*self.case.modes, canceling(_moment(self.case.all_steps[step].sql, milliseconds)))
        for arm in (self.reference, self.suspect):
            yield Run(arm, modes, explain=True, instead=self.others(step), repetition=number)

    def _disobeying(self, step: int, ours: Observation, theirs: Observation) -> Finding:
        return Finding(
            oracle=self.oracle,
            arms=(self.reference, self.suspect),
            origin=f"{_SYMPTOM}{UNDER_PLAN}{plan_kinds(self.first_plans(self.reference)[step])}",
            step=step,
            summary=f"step {step}: {_SYMPTOM}, {_CANCELS} times",
            expected=ended(ours),
            actual=ended(theirs),
            evidence=self.evidence(self.case.all_steps[step].sql),
        )


class Cancellation(ExplainedCostOracle):
    """Queries that run much longer after a cancel than on the reference, or do not obey it."""

    name: ClassVar[str] = _CancellationPair.oracle
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary("ignore_interrupts", canary_case(query("SELECT n, name FROM canary"), samples=(EXPLAINED,))),
        Canary("ignore_cancel", canary_case(_LONG_QUERY, samples=(EXPLAINED,))),
    )
    pair = _CancellationPair
