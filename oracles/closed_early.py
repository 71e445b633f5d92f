"""Closed early: the first rows of a query, from a cursor that is then closed, are rows of the whole query.

`result` compares only the number of such rows, because which rows come first is up to the arm. This oracle executes the
whole query once on the reference. The rows of each suspect must be among its rows, each as often at most. Rows in total
order are compared by `result`.
"""

from collections.abc import Sequence
from typing import ClassVar, Final

from oracles.framework.canaries import canary_case, query
from oracles.framework.comparison import row_multiset
from oracles.framework.difference_text import rows_text
from oracles.framework.other_plans import OTHER_PLANS
from oracles.framework.pairwise import REPETITIONS, Pair, SampledPairwise
from oracles.model.case import Case, Kind
from oracles.model.finding import Evidence, Finding
from oracles.model.mode import Mode, Protocol, protocol_of
from oracles.model.observation import Outcome, Run
from oracles.model.oracle import Agree, Canary, Inconclusive, More, NotApplicable, Unstable, Verdict

_SYMPTOM: Final = "rows of a closed cursor that the whole query does not return"
_MODE: Final = Mode("closed_early", protocol=Protocol.CLOSED_EARLY, changes_results=True)
_READ_WHOLE: Final = Mode("read_whole", protocol=Protocol.EXTENDED)


def _whole(case: Case, arm: str, *plan: Mode, repetition: int = 0) -> Run:
    """Return the run that reads all rows, by the same messages except for the limit."""
    return Run(arm, (*case.modes, _READ_WHOLE, *plan), repetition=repetition)


class _ClosedEarlyPair(Pair):
    def judge(self) -> tuple[Verdict, ...] | More:
        seen = [self.observations[run] for run in (*self._early_runs(), _whole(self.case, self.reference))]
        if any(each.residue is None for each in seen):
            return (Inconclusive("connection lost"),)
        if len({each.digests for each in seen}) > 1:
            return (Inconclusive("tables differ after the case"),)
        outcomes = zip(*([step.outcome for step in each.steps] for each in seen), strict=True)
        ended = [step for step, each in enumerate(outcomes) if set(each) == {Outcome.OK}]
        steps = [step for step in ended if self._is_unordered_query(step)]
        for step in steps:
            if self._surplus(step, self._early(self.suspect)):
                return self._settled(step)
        return (Agree(len(steps)),) if steps else (NotApplicable(),)

    def _is_unordered_query(self, position: int) -> bool:
        step = self.case.all_steps[position]
        return step.kind is Kind.QUERY and not step.ordered

    def _early(self, arm: str, repetition: int = 0) -> Run:
        return Run(arm, self.case.modes, repetition=repetition)

    def _early_runs(self) -> tuple[Run, Run]:
        return self._early(self.reference), self._early(self.suspect)

    def _rows(self, step: int, run: Run) -> tuple[bytes, ...]:
        return self.observations[run].steps[step].rows

    def _surplus(self, step: int, run: Run) -> int:
        """Return the number of rows that the reference's whole result does not have."""
        whole = row_multiset(self._rows(step, _whole(self.case, self.reference)))
        return (row_multiset(self._rows(step, run)) - whole).total()

    def _settled(self, step: int) -> tuple[Verdict, ...] | More:
        again = self._early(self.suspect, REPETITIONS[0])
        others = [_whole(self.case, self.reference, plan) for plan in OTHER_PLANS]
        others.append(_whole(self.case, self.reference, repetition=REPETITIONS[0]))
        if missing := self.missing((again, *others)):
            return More(missing, frozenset({_SYMPTOM}))
        whole = row_multiset(self._rows(step, _whole(self.case, self.reference)))
        if any(row_multiset(self._rows(step, other)) != whole for other in others):
            return (Unstable(f"{self.reference} differs from itself", step),)
        if self._surplus(step, self._early(self.reference)):
            return (Unstable(f"{self.reference} does so, too", step),)
        if not self._surplus(step, again):
            return (Unstable("rows of a closed cursor: not each time", step),)
        return (self._finding(step),)

    def _finding(self, step: int) -> Finding:
        early = self._rows(step, self._early(self.suspect))
        whole = row_multiset(self._rows(step, _whole(self.case, self.reference)))
        surplus = row_multiset(early) - whole
        return Finding(
            oracle=ClosedEarly.name,
            arms=(self.reference, self.suspect),
            origin=_SYMPTOM,
            step=step,
            summary=f"step {step}: {surplus.total()} of {len(early)} rows of a closed cursor are not among all rows",
            expected=f"the first rows are among the {whole.total()} rows of the whole query",
            actual=rows_text("these rows, which are not among them", surplus),
            beside=(Evidence(self.case.all_steps[step].sql, plainly=True),),
        )


class ClosedEarly(SampledPairwise):
    """The first rows of a query are rows of the whole query."""

    name: ClassVar[str] = "closed_early"
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary("change_value", canary_case(query("SELECT n FROM canary"), modes=(_MODE,)), needs_another_arm=True),
    )
    pair = _ClosedEarlyPair

    def own_runs(self, case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
        """Return the whole run on the reference if the case closes its cursors early."""
        return (_whole(case, arms[0]),) if protocol_of(case.modes) is Protocol.CLOSED_EARLY else ()
