"""Looking whether a finding still shows, and how often.

Asking an oracle, and real servers, whether cases show its finding.

The question that a reduction asks: does a case show the finding, in not much more time than the whole one took?
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from fuzz.errors import CaseError
from fuzz.execution.executor import Executor
from fuzz.execution.judging import Assignment, assignments, judge_case
from fuzz.servers.arm import Arm
from fuzz.triage.question_timeout import QuestionTimeout
from fuzz.triage.reduced_case import ReducedCase
from fuzz.triage.sequential_test import SequentialTest
from oracles.model.case import Case
from oracles.model.finding import Finding
from oracles.model.oracle import Observations, Oracle, Unstable, all_oracles

Alike = Callable[[Finding, Finding], bool]


class FindingCheck:
    """A finding, its oracle, and arms on which cases are tried: the two that it names, unless all arms show it."""

    def __init__(self, executor: Executor, arms: Sequence[Arm], finding: Finding) -> None:
        self.finding = finding
        self._executor = executor
        self._all = self._assigned_to(arms)
        self._two = (
            self._all if finding.shown_by_all else self._assigned_to([a for a in arms if a.name in finding.arms])
        )
        self._case: Case | None = None
        self._settled: Observations = {}

    def _assigned_to(self, arms: Sequence[Arm]) -> tuple[Assignment, ...]:
        return assignments([oracle_of(self.finding)], arms)

    def shown(self, case: Case, alike: Alike = Finding.resembles) -> Finding | None:
        """Try a case once; return what it shows that is like the finding. Raises ServerError.

        Where the oracle allows for it, what the arm held against did is not seen anew if a case is tried repeatedly.
        """
        judged = judge_case(self._executor, self._two, case, self._settled if case == self._case else {})
        steady = all(assignment.oracle.reference_is_steady for assignment in self._two)
        unstable = any(isinstance(verdict, Unstable) for _, verdict in judged.verdicts)
        self._case = case if steady and judged.complete and not unstable else None
        self._settled = {run: seen for run, seen in judged.observations.items() if run.arm == self.finding.arms[0]}
        return next((found for found in judged.findings if alike(found, self.finding)), None)

    def seems_to_show(self, case: Case) -> bool:
        """Tell whether a case seems to show it, before what may speak against it is observed. Raises ServerError."""
        judged = judge_case(self._executor, self._two, case, enough=self.finding.symptom)
        return self.finding.symptom in judged.symptoms or any(map(self.finding.resembles, judged.findings))

    def voted(self, case: Case, shown: Finding) -> Finding:
        """Return what a case shows with the vote of all arms on it; with the first finding's where that is not told."""
        if shown.vote or self._all == self._two:
            return shown
        findings = judge_case(self._executor, self._all, case).findings
        return next((found for found in findings if found.resembles(shown)), replace(shown, vote=self.finding.vote))


def same_arms(one: Finding, other: Finding) -> bool:
    """Tell whether both accuse the same arm, whatever its symptom."""
    return one.arms == other.arms


def oracle_of(finding: Finding) -> Oracle:
    """Return the oracle of a finding. Raises CaseError where there is no such oracle any more."""
    found = next((oracle for oracle in all_oracles() if oracle.name == finding.oracle), None)
    if found is None:
        raise CaseError(f"finding {finding.fingerprint} is of the oracle {finding.oracle}, which this pgduel lacks")
    return found


Answer = TypeVar("Answer")


class InterestingnessTest:
    """Whether cases show the finding that the whole one does, and what they show."""

    def __init__(
        self, executor: Executor, limit: QuestionTimeout, arms: Sequence[Arm], whole: Case, finding: Finding
    ) -> None:
        """`limit` is the one that the executor asks when to give up."""
        self._oracle = oracle_of(finding)
        self.whole = sampled_by_name(whole, self._oracle, alone=len(arms) == 1)
        self.shown: dict[Case, Finding] = {}
        self._limit = limit
        self._check = FindingCheck(executor, arms, finding)

    def shows(self, case: Case, alike: Alike = Finding.resembles) -> bool:
        """Tell whether the case shows a finding like the one in question, and keep what it shows.

        Only the samples that it names count: content would select one smaller case of a few, and refuse those after it.
        """
        shown = self._asked(case, lambda looked_at: self._check.shown(looked_at, alike))
        if shown is not None:
            self.shown[case] = shown
        return shown is not None

    def seems_to_show(self, case: Case) -> bool:
        """Tell whether a case seems to show it: that takes a fraction of the time, but more may speak against it."""
        return bool(self._asked(case, self._check.seems_to_show))

    def _asked(self, case: Case, ask: Callable[[Case], Answer]) -> Answer | None:
        """Ask about a case within the limit; None where reduction may not make it of the whole one."""
        if not self._oracle.may_become(self.whole, case):
            return None
        with self._limit.question(whole=case == self.whole):
            return ask(replace(case, sampled_by_content=False))


def sampled_by_name(case: Case, oracle: Oracle, *, alone: bool) -> Case:
    """Return the case with the names of the oracle's samples that it is in, as a smaller case has other content.

    Reduction drops those that are not needed.
    """
    names = (sample.name for sample in oracle.samples if case in (sample.alone if alone else sample))
    return replace(case, samples=tuple(dict.fromkeys((*case.samples, *names))))


def look(executor: Executor, arms: Sequence[Arm], case: Case, finding: Finding) -> ReducedCase:
    """Run the case as often as it takes to say how often it shows something of the finding's oracle and arms.

    What it shows is the finding from now on; the one given stands where it shows nothing. Raises ServerError.
    """
    check = FindingCheck(executor, arms, finding)
    seen: list[Finding] = []

    def shows(tried: Case) -> bool:
        shown = check.shown(tried, same_arms)
        seen.extend([] if shown is None else [shown])
        return shown is not None

    showing = SequentialTest(shows).look(case)
    return ReducedCase(case, seen[0] if seen else finding, showing.shown, showing.runs)
