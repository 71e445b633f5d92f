"""Interestingness tests: whether a case shows a finding on real servers, and how often.

The test of a reduction also fails if a case needs much more time than the whole one. Without statistics, an index or a
condition, a fast join may take minutes under some plans.

A reduced case is the smallest one that passes, with how often it shows the finding.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from fuzz.errors import CaseError, PgduelError
from fuzz.execution.executor import Executor
from fuzz.execution.judging import Assignment, assignments, judge_case
from fuzz.servers.arm import Arm
from fuzz.triage.sequential_test import SequentialTest
from oracles.model.case import Case
from oracles.model.finding import Finding
from oracles.model.oracle import Observations, Oracle, Unstable, oracle_named

TIMEOUT_FACTOR = 2.0  # of the time of the whole case
TIMEOUT_LEAST = 1.0  # additional seconds, because anything may take that long on a busy machine


@dataclass(frozen=True, slots=True)
class ReducedCase:
    """A reduced case, its finding, and in how many runs it occurred; the whole case if it never occurred again."""

    case: Case
    finding: Finding
    shown: int
    runs: int

    @property
    def always(self) -> bool:
        """Return whether the finding occurred in all runs."""
        return self.shown == self.runs

    @property
    def how_often(self) -> str:
        """Return a text with the number of runs in which the finding occurred."""
        if not self.shown:
            return f"did not show again in {self.runs} runs"
        return f"shows in {self.shown} of {self.runs} runs"


class QuestionTimeout:
    """Timeout of a sequence of tests, relative to the time of the whole case. Executors call `passed`."""

    def __init__(self) -> None:
        self._whole = 0.0  # seconds of the slowest test of the whole case
        self._until = float("inf")

    def passed(self) -> bool:
        """Return whether the current test has reached its timeout."""
        return time.monotonic() > self._until

    @contextmanager
    def applied(self, *, whole: bool) -> Iterator[None]:
        """Apply the timeout to the test in this context; tests of the whole case have none."""
        began = time.monotonic()
        self._until = float("inf") if whole else began + TIMEOUT_LEAST + TIMEOUT_FACTOR * self._whole
        try:
            yield
        finally:
            self._until = float("inf")
        if whole:
            self._whole = max(self._whole, time.monotonic() - began)


Similarity = Callable[[Finding, Finding], bool]


class FindingCheck:
    """A finding, its oracle, and the arms on which cases are tried: the two that it names, or all if all show it."""

    def __init__(self, executor: Executor, arms: Sequence[Arm], finding: Finding) -> None:
        self.finding = finding
        self._executor = executor
        self._all = self._assigned_to(arms)
        self._two = (
            self._all if finding.shown_by_all else self._assigned_to([a for a in arms if a.name in finding.arms])
        )
        self._case: Case | None = None
        self._known: Observations = {}

    def _assigned_to(self, arms: Sequence[Arm]) -> tuple[Assignment, ...]:
        return assignments([oracle_of(self.finding)], arms)

    def shown(self, case: Case, similar: Similarity = Finding.resembles) -> Finding | None:
        """Execute a case once, and return a finding that is like the expected one, or None. Raises ServerError.

        If a case is tried repeatedly, the reference's observations are used again, if the oracle allows it.
        """
        judged = judge_case(self._executor, self._two, case, self._known if case == self._case else {})
        steady = all(assignment.oracle.reference_is_steady for assignment in self._two)
        unstable = any(isinstance(verdict, Unstable) for _, verdict in judged.verdicts)
        self._case = case if steady and judged.complete and not unstable else None
        self._known = {run: seen for run, seen in judged.observations.items() if run.arm == self.finding.arms[0]}
        return next((found for found in judged.findings if similar(found, self.finding)), None)

    def shows_symptom(self, case: Case) -> bool:
        """Return whether a case shows the symptom, before the runs that may refute it. Raises ServerError."""
        judged = judge_case(self._executor, self._two, case, enough=self.finding.symptom)
        return self.finding.symptom in judged.symptoms or any(map(self.finding.resembles, judged.findings))

    def voted(self, case: Case, shown: Finding) -> Finding:
        """Return the finding `shown` with the vote of all arms, or with the first finding's vote if it is unknown."""
        if shown.vote or self._all == self._two:
            return shown
        findings = judge_case(self._executor, self._all, case).findings
        return next((found for found in findings if found.resembles(shown)), replace(shown, vote=self.finding.vote))


def same_arms(one: Finding, other: Finding) -> bool:
    """Return whether both findings have the same suspect, with any symptom."""
    return one.arms == other.arms


def oracle_of(finding: Finding) -> Oracle:
    """Return the oracle of a finding. Raises CaseError if it no longer exists."""
    found = oracle_named(finding.oracle)
    if found is None:
        raise CaseError(
            f"finding {finding.fingerprint} needs the oracle {finding.oracle}, which this pgduel lacks; "
            "give its file with --oracle, or use the pgduel that found it"
        )
    return found


T = TypeVar("T")


class InterestingnessTest:
    """Test of smaller cases for the finding of the whole case. `shown` keeps their findings."""

    def __init__(
        self, executor: Executor, limit: QuestionTimeout, arms: Sequence[Arm], whole: Case, finding: Finding
    ) -> None:
        """`limit` is the timeout of `executor`."""
        self._oracle = oracle_of(finding)
        self.whole = sampled_by_name(whole, self._oracle, alone=len(arms) == 1)
        self.shown: dict[Case, Finding] = {}
        self._limit = limit
        self._check = FindingCheck(executor, arms, finding)

    def shows(self, case: Case, similar: Similarity = Finding.resembles) -> bool:
        """Return whether the case shows a finding like the expected one, and store it in `shown`.

        Only the samples that the case names apply. Sampling by content would select a smaller case by chance, and
        reject those made from it.
        """
        shown = self._tested(case, lambda tried: self._check.shown(tried, similar))
        if shown is not None:
            self.shown[case] = shown
        return shown is not None

    def shows_symptom(self, case: Case) -> bool:
        """Return whether a case shows the symptom. That takes a fraction of the time, but more runs may refute it."""
        return bool(self._tested(case, self._check.shows_symptom))

    def _tested(self, case: Case, test: Callable[[Case], T]) -> T | None:
        """Return the result of a test within the timeout; None if reduction may not produce this case.

        None also if the oracle fails on a smaller case, which may be one that no generator makes.
        """
        if not self._oracle.may_become(self.whole, case):
            return None
        with self._limit.applied(whole=case == self.whole):
            try:
                return test(replace(case, sampled_by_content=False))
            except PgduelError:
                raise
            except Exception:
                if case == self.whole:
                    raise
                return None


def sampled_by_name(case: Case, oracle: Oracle, *, alone: bool) -> Case:
    """Return the case with the names of the oracle's samples that contain it.

    A smaller case has other content, so the samples must be named. Reduction drops unnecessary names.
    """
    names = (sample.name for sample in oracle.samples if case in (sample.alone if alone else sample))
    return replace(case, samples=tuple(dict.fromkeys((*case.samples, *names))))


def measured_case(executor: Executor, arms: Sequence[Arm], case: Case, finding: Finding) -> ReducedCase:
    """Return how often the case shows a finding of the same oracle and arms, after as many runs as that needs.

    The result has the first finding that occurred, or the given one if none did. Raises ServerError.
    """
    check = FindingCheck(executor, arms, finding)
    seen: list[Finding] = []

    def shows(tried: Case) -> bool:
        shown = check.shown(tried, same_arms)
        seen.extend([] if shown is None else [shown])
        return shown is not None

    occurrence = SequentialTest(shows).measure(case)
    return ReducedCase(case, seen[0] if seen else finding, occurrence.shown, occurrence.runs)
