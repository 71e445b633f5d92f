"""Asking an oracle, and real servers, whether cases show its finding."""

from collections.abc import Callable, Sequence

from fuzz.campaign.seats import seats
from fuzz.campaign.trial import try_case
from fuzz.execution.stage import Stage
from fuzz.servers.arm import Arm
from oracles.case import Case
from oracles.finding import Finding
from oracles.oracle import all_oracles

Alike = Callable[[Finding, Finding], bool]


class Asking:
    """A finding, its oracle, and arms on which cases are tried."""

    def __init__(self, stage: Stage, arms: Sequence[Arm], finding: Finding) -> None:
        self.finding = finding
        self._stage = stage
        self._seats = seats([oracle for oracle in all_oracles() if oracle.name == finding.oracle], arms)

    def shown(self, case: Case, alike: Alike = Finding.resembles) -> Finding | None:
        """Try a case once; return what it shows that is like the finding. Raises ServerError."""
        for found in try_case(self._stage, self._seats, case).findings:
            if alike(found, self.finding):
                return found
        return None


def same_arms(one: Finding, other: Finding) -> bool:
    """Tell whether both accuse the same arm, whatever its symptom."""
    return one.arms == other.arms
