"""Lost connection: a session must not end on the suspect if it continues on the reference.

The server may end a session without a crash: by a FATAL error, an exit, or a kill by the kernel for lack of memory.
A kill from outside, such as by the user, does not occur each time, so the case is executed twice more on both arms.
Other cases that crash the server again and again may end the session each time, which is a doubt.
Crashes are judged by the oracle `crash`.
"""

from collections.abc import Iterator
from typing import ClassVar, Final

from oracles.crash import crash_origin, crash_report
from oracles.framework.canaries import canary_case, query
from oracles.framework.comparison import first_cut
from oracles.framework.pairwise import REPETITIONS, Pair, Pairwise
from oracles.framework.verdicts import outcomes_doubt
from oracles.model.finding import Finding
from oracles.model.observation import CaseObservation, Outcome, Run
from oracles.model.oracle import Agree, Canary, More, Verdict

_REPETITIONS: Final = REPETITIONS[:2]


class _SessionPair(Pair):
    def judge(self) -> tuple[Verdict, ...] | More:
        step, ended = self._lost_step()
        if step is None:
            return (Agree(ended),)
        if missing := self.missing(run for number in _REPETITIONS for run in self._runs(number)):
            return More(missing, frozenset({self._symptom(step)}))
        for ours, theirs in (map(self._seen, self._runs(number)) for number in _REPETITIONS):
            if not ours.steps[step].has_ended:
                reason = f"{self.reference} loses the connection too"
                return (Agree(ended), outcomes_doubt(reason, step, ours, theirs))
            if theirs.steps[step].outcome is not Outcome.LOST:
                return (Agree(ended), outcomes_doubt("connection lost, but not each time", step, ours, theirs))
            if theirs.disturbed:
                reason = "the death of another process ended the session, several times"
                return (Agree(ended), outcomes_doubt(reason, step, ours, theirs))
        return (self._finding(step),)

    def _lost_step(self) -> tuple[int | None, int]:
        """Return the step at which only the suspect lost its session, if any, and the number of those that ended."""
        ours, theirs = map(self._seen, self._runs())
        step, ended = first_cut(self.case, ours, theirs, Outcome.LOST)
        return None if crash_report(theirs) else step, ended

    def _runs(self, repetition: int = 0) -> Iterator[Run]:
        return (Run(arm, self.case.modes, repetition=repetition) for arm in (self.reference, self.suspect))

    def _seen(self, run: Run) -> CaseObservation:
        return self.observations[run]

    def _symptom(self, step: int) -> str:
        _, theirs = map(self._seen, self._runs())
        killed = crash_origin(theirs.crash) if theirs.crash else "without a message"
        return f"connection lost: {theirs.steps[step].sqlstate or killed}"

    def _finding(self, step: int) -> Finding:
        ours, theirs = map(self._seen, self._runs())
        words = [f"{each.severity}: {each.sqlstate}: {each.text}" for each in theirs.steps[step].messages]
        return Finding(
            oracle=LostConnection.name,
            arms=(self.reference, self.suspect),
            origin=self._symptom(step),
            step=step,
            summary=f"step {step}: {self.suspect} ends the session, its server stays up",
            expected=f"{ours.steps[step].outcome}",
            actual="\n".join([*words, *theirs.log, theirs.crash or ""]).strip() or "the connection is closed",
        )


class LostConnection(Pairwise):
    """Sessions that end on an arm, but not on the reference."""

    name: ClassVar[str] = "lost_connection"
    canaries: ClassVar[tuple[Canary, ...]] = (Canary("disconnect", canary_case(query("SELECT n FROM canary"))),)
    reference_is_steady: ClassVar[bool] = True
    pair = _SessionPair
