"""Asking an oracle, and real servers, whether cases show its finding."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from fuzz.campaign.seats import Seat, seats
from fuzz.campaign.trial import try_case
from fuzz.errors import CaseError
from fuzz.execution.stage import Stage
from fuzz.servers.arm import Arm
from oracles.case import Case
from oracles.finding import Finding
from oracles.oracle import Observations, Oracle, Unstable, all_oracles

Alike = Callable[[Finding, Finding], bool]


class Asking:
    """A finding, its oracle, and arms on which cases are tried: the two that it names, unless all arms show it."""

    def __init__(self, stage: Stage, arms: Sequence[Arm], finding: Finding) -> None:
        self.finding = finding
        self._stage = stage
        self._all = self._seats_of(arms)
        self._two = self._all if finding.shown_by_all else self._seats_of([a for a in arms if a.name in finding.arms])
        self._case: Case | None = None
        self._settled: Observations = {}

    def _seats_of(self, arms: Sequence[Arm]) -> tuple[Seat, ...]:
        return seats([oracle_of(self.finding)], arms)

    def shown(self, case: Case, alike: Alike = Finding.resembles) -> Finding | None:
        """Try a case once; return what it shows that is like the finding. Raises ServerError.

        Where the oracle allows for it, what the arm held against did is not seen anew if a case is tried repeatedly.
        """
        trial = try_case(self._stage, self._two, case, self._settled if case == self._case else {})
        steady = all(seat.oracle.reference_is_steady for seat in self._two)
        unstable = any(isinstance(verdict, Unstable) for _, verdict in trial.verdicts)
        self._case = case if steady and trial.complete and not unstable else None
        self._settled = {run: seen for run, seen in trial.observations.items() if run.arm == self.finding.arms[0]}
        return next((found for found in trial.findings if alike(found, self.finding)), None)

    def seems_to_show(self, case: Case) -> bool:
        """Tell whether a case seems to show it, before what may speak against it is observed. Raises ServerError."""
        trial = try_case(self._stage, self._two, case, enough=self.finding.symptom)
        return self.finding.symptom in trial.symptoms or any(map(self.finding.resembles, trial.findings))

    def voted(self, case: Case, shown: Finding) -> Finding:
        """Return what a case shows with the vote of all arms on it; with the first finding's where that is not told."""
        if shown.vote or self._all == self._two:
            return shown
        findings = try_case(self._stage, self._all, case).findings
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
