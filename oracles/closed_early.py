"""Closed early: the first rows of a query, from a cursor that is then closed, are rows of the whole query.

`result` compares only the number of such rows, because which rows come first is up to the arm. This oracle executes the
whole query once on the reference. The rows of each suspect must be among its rows, and none may occur more often.
`result` compares rows in total order.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

from oracles.framework.canaries import canary_case, query
from oracles.framework.comparison import row_multiset
from oracles.framework.difference_text import rows_text
from oracles.framework.pairwise import REPETITIONS, Pair, SampledPairwise
from oracles.framework.shared_runs import OTHER_PLANS
from oracles.framework.verdicts import lost_session, outcomes_doubt
from oracles.model.case import Case, Kind
from oracles.model.finding import Evidence, Finding
from oracles.model.mode import CLOSED_EARLY, Mode, Protocol, protocol_of
from oracles.model.observation import CaseObservation, Outcome, Run
from oracles.model.oracle import Agree, Canary, Inconclusive, More, NotApplicable, Unstable, Verdict

_SYMPTOM: Final = "rows of a closed cursor that the whole query does not return"
_READ_WHOLE: Final = Mode("read_whole", protocol=Protocol.EXTENDED)


def _whole(case: Case, arm: str, *plan: Mode, repetition: int = 0) -> Run:
    """Return the run that reads all rows, by the same messages except for the limit."""
    return Run(arm, (*case.modes, _READ_WHOLE, *plan), repetition=repetition)


class _ClosedEarlyPair(Pair):
    def judge(self) -> tuple[Verdict, ...] | More:
        runs = (self._early(self.reference), self._early(self.suspect), _whole(self.case, self.reference))
        seen = [self.observations[run] for run in runs]
        if any(each.residue is None for each in seen):
            return (lost_session(*seen),)
        if len({each.digests for each in seen}) > 1:
            return (
                Inconclusive(
                    "tables differ after the case",
                    sides=_contents(seen[0], next(each for each in seen if each.digests != seen[0].digests)),
                ),
            )
        outcomes = zip(*([step.outcome for step in each.steps] for each in seen), strict=True)
        ended = [step for step, each in enumerate(outcomes) if set(each) == {Outcome.OK}]
        steps = [step for step in ended if self._is_unordered_query(step)]
        differing = [step for step in steps if self._surplus(step, self._early(self.suspect))]
        if differing and (missing := self.missing(self._confirming_runs())):
            return More(missing, frozenset({_SYMPTOM}))
        verdicts = [self._verdict(step) for step in differing]
        for verdict in verdicts:
            if isinstance(verdict, Finding):  # the others have the same origin
                return (verdict,)
        agreed = len(steps) - len(differing)
        found = (*verdicts, *self._unread(), *((Agree(agreed),) if agreed else ()))
        return found or (NotApplicable(),)

    def _unread(self) -> Iterator[Inconclusive]:
        """Yield a doubt about the first query of which not all rows were read. An error in later rows is legal."""
        whole, early = (
            self.observations[run] for run in (_whole(self.case, self.reference), self._early(self.suspect))
        )
        for step, (all_rows, first) in enumerate(zip(whole.steps, early.steps, strict=True)):
            cut_short = first.outcome is Outcome.OK and all_rows.outcome in (Outcome.TIMEOUT, Outcome.TOO_LARGE)
            if cut_short and self._is_unordered_query(step):
                yield outcomes_doubt("the whole query was not read", step, whole, early)
                return

    def _is_unordered_query(self, position: int) -> bool:
        step = self.case.all_steps[position]
        return step.kind is Kind.QUERY and not step.ordered

    def _early(self, arm: str, repetition: int = 0) -> Run:
        return Run(arm, self.case.modes, repetition=repetition)

    def _rows(self, step: int, run: Run) -> tuple[bytes, ...]:
        return self.observations[run].steps[step].rows

    def _rows_of_all(self, step: int) -> Counter[bytes]:
        """Return the rows of the reference's whole result."""
        return row_multiset(self._rows(step, _whole(self.case, self.reference)))

    def _surplus(self, step: int, run: Run) -> Counter[bytes]:
        """Return the rows that the reference's whole result does not have."""
        return row_multiset(self._rows(step, run)) - self._rows_of_all(step)

    def _sides(self, step: int, run: Run) -> tuple[str, str]:
        whole, early = self._rows_of_all(step), row_multiset(self._rows(step, run))
        return rows_text("rows of the whole query", whole), rows_text("rows of the closed cursor", early)

    def _other_runs(self) -> list[Run]:
        """Return the runs of the reference that must return the same rows."""
        others = [_whole(self.case, self.reference, plan) for plan in OTHER_PLANS]
        return [*others, _whole(self.case, self.reference, repetition=REPETITIONS[0])]

    def _confirming_runs(self) -> tuple[Run, ...]:
        return (self._early(self.suspect, REPETITIONS[0]), *self._other_runs())

    def _verdict(self, step: int) -> Finding | Unstable:
        again, others = self._early(self.suspect, REPETITIONS[0]), self._other_runs()
        whole = self._rows_of_all(step)
        if unlike := [rows for rows in (row_multiset(self._rows(step, each)) for each in others) if rows != whole]:
            sides = rows_text("rows of the whole query", whole), rows_text("rows of another run", unlike[0])
            return Unstable(f"{self.reference} differs from itself", step, sides)
        if self._surplus(step, self._early(self.reference)):
            return Unstable(f"{self.reference} does so, too", step, self._sides(step, self._early(self.reference)))
        if not self._surplus(step, again):
            return Unstable(
                "rows of a closed cursor: not each time", step, self._sides(step, self._early(self.suspect))
            )
        return self._finding(step)

    def _finding(self, step: int) -> Finding:
        early = self._early(self.suspect)
        surplus, shown = self._surplus(step, early), len(self._rows(step, early))
        return Finding(
            oracle=ClosedEarly.name,
            arms=(self.reference, self.suspect),
            origin=_SYMPTOM,
            step=step,
            summary=f"step {step}: {surplus.total()} of {shown} rows of a closed cursor are not among all rows",
            expected=f"the first rows are among the {self._rows_of_all(step).total()} rows of the whole query",
            actual=rows_text("these rows, which are not among them", surplus),
            evidence=(Evidence(self.case.all_steps[step].sql, simple_protocol=True),),
        )


def _contents(ours: CaseObservation, theirs: CaseObservation) -> tuple[str, str]:
    """Return the tables and sequences with other contents on either side, as far as there are two sides."""
    one, other = (sorted(set(each.digests) - set(beside.digests)) for each, beside in ((ours, theirs), (theirs, ours)))
    return "\n".join(map(" ".join, one)), "\n".join(map(" ".join, other))


class ClosedEarly(SampledPairwise):
    """The first rows of a query are rows of the whole query."""

    name: ClassVar[str] = "closed_early"
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary(
            "change_value", canary_case(query("SELECT n FROM canary"), modes=(CLOSED_EARLY,)), needs_another_arm=True
        ),
    )
    pair = _ClosedEarlyPair

    def own_runs(self, case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
        """Return the whole run on the reference if the case closes its cursors early."""
        return (_whole(case, arms[0]),) if protocol_of(case.modes) is Protocol.CLOSED_EARLY else ()
