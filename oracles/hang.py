"""Hang: a statement must end on each arm if it ends on the reference.

A statement that reaches statement_timeout on the suspect only is executed again, twice on each arm, with a limit
several times as long. It is a finding if it never ends on the suspect within that limit, and always on the reference.
A statement that ends within the longer limit is slow, which is no finding here.
"""

from collections.abc import Iterator
from typing import ClassVar, Final

from oracles.explain.nodes import plan_kinds
from oracles.framework.canaries import canary_case, query
from oracles.framework.comparison import first_cut
from oracles.framework.pairwise import Pair, Pairwise
from oracles.framework.verdicts import outcomes_doubt
from oracles.model.case import Kind
from oracles.model.finding import UNDER_PLAN, Finding
from oracles.model.mode import Mode
from oracles.model.observation import CaseObservation, Outcome, Run
from oracles.model.oracle import Agree, Canary, Inconclusive, More, Verdict

TIMEOUT_FACTOR: Final = 4  # of the longer limit
_SYMPTOM: Final = "statement does not end"
_SHORT: Final = Mode("short timeout", (("statement_timeout", "500ms"),))


class _HangPair(Pair):
    def judge(self) -> tuple[Verdict, ...] | More:
        step, ended = self._cut_step()
        if step is None:
            return (Agree(ended),)
        for repetition in (0, 1):
            if missing := self.missing(self._longer_runs(repetition)):
                return More(missing, frozenset({_SYMPTOM}))
            ours, theirs = (self.observations[run].steps[step] for run in self._longer_runs(repetition))
            if not ours.has_ended:
                return (
                    Agree(ended),
                    self._doubt(f"{self.reference} does not always end a statement either", step, repetition),
                )
            if theirs.outcome is not Outcome.TIMEOUT:
                return (Agree(ended), self._doubt("a statement ends under a longer limit only", step, repetition))
        if missing := self.missing([self._planned_run()]):
            return More(missing, frozenset({_SYMPTOM}))
        return (self._finding(step),)

    def _cut_step(self) -> tuple[int | None, int]:
        """Return the step that timed out on the suspect only, if any, and the number of earlier steps that ended."""
        ours, theirs = (self.observations[Run(arm, self.case.modes)] for arm in (self.reference, self.suspect))
        return first_cut(self.case, ours, theirs, Outcome.TIMEOUT)

    def _longer_runs(self, repetition: int = 0) -> Iterator[Run]:
        arms = (self.reference, self.suspect)
        return (Run(arm, self.case.modes, timeout_factor=TIMEOUT_FACTOR, repetition=repetition) for arm in arms)

    def _doubt(self, reason: str, step: int, repetition: int) -> Inconclusive:
        ours, theirs = (self.observations[run] for run in self._longer_runs(repetition))
        return outcomes_doubt(reason, step, ours, theirs)

    def _planned_run(self) -> Run:
        return Run(self.suspect, self.case.modes, plannings=1)

    def _finding(self, step: int) -> Finding:
        _, longer = self._longer_runs()
        hung = self.observations[longer]
        return Finding(
            oracle=Hang.name,
            arms=(self.reference, self.suspect),
            origin=_SYMPTOM + self._under_plan(step),
            step=step,
            summary=f"step {step}: {self.suspect} does not end within {TIMEOUT_FACTOR} times the statement timeout",
            expected=f"{self.observations[Run(self.reference, self.case.modes)].steps[step].outcome}",
            actual="\n".join(("no answer", *hung.hang)),
        )

    def _under_plan(self, step: int) -> str:
        if self.case.all_steps[step].kind is not Kind.QUERY:
            return f": {' '.join(self.case.all_steps[step].sql.split()[:1]).upper()}"
        planned: CaseObservation = self.observations[self._planned_run()]
        return UNDER_PLAN + plan_kinds(planned.steps[step].plan)


class Hang(Pairwise):
    """Statements that end on the reference, but not on another arm."""

    name: ClassVar[str] = "hang"
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary("hang", canary_case(query("SELECT n FROM canary"), modes=(_SHORT,))),
    )
    reference_is_steady: ClassVar[bool] = True
    script_begin: ClassVar[str] = "SET statement_timeout = '30s';  -- a statement below does not end"
    pair = _HangPair
