"""The duel of two arms: cases of a campaign, in its order, until the second arm has a finding."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from typing import Final

from fuzz.campaign.schedule import Schedule
from fuzz.engines.seeded import case_of
from fuzz.errors import ServerError, StorageError
from fuzz.execution.exchanges import Abandoned
from fuzz.execution.executor import Executor
from fuzz.execution.judging import assignments, judge_despite_errors
from fuzz.execution.source_database import SourceDatabase
from fuzz.generators.generator import Scale
from fuzz.mutation.result import DuelResult, Kill
from fuzz.servers.arm import Arm, features_of
from fuzz.sources.source import UserInput
from oracles.model.case import CaseId
from oracles.model.finding import Finding
from oracles.model.oracle import all_oracles

TRIES: Final = 3  # of a case during which a server goes away, and to see a finding again


class Duel:
    """Two running arms, the executor on them while they are up, and the oracles' assignments."""

    def __init__(self, arms: Sequence[Arm], stop: Callable[[], bool]) -> None:
        """Soon after `stop` returns true, methods raise Abandoned."""
        self._arms = arms
        self._stop = stop
        self._assigned = assignments(all_oracles(), arms)
        self._features = features_of(arms)
        self._target = SourceDatabase(arms[0], "mutants", UserInput())
        self._executor: Executor | None = None

    def close(self) -> None:
        """Drop the databases."""
        with suppress(ServerError):
            if self._executor is not None:
                self._executor.close()
            self._target.close()
        self._executor = None

    def findings(self, case_id: CaseId) -> tuple[Finding, ...] | None:
        """Return the findings of a case on the second arm, or None if pgduel itself failed.

        Raises Abandoned, StorageError, or ServerError if a server stays down or goes away each time.
        """
        for left in reversed(range(TRIES)):
            try:
                return self._findings(case_id)
            except (Abandoned, StorageError):
                raise
            except ServerError:
                self._revive()
                if not left:
                    raise
            except Exception:  # a mutant may send what no oracle expects
                return None
        raise AssertionError

    def _revive(self) -> None:
        self.close()
        for arm in self._arms:
            if not arm.cluster.alive():
                arm.cluster.restart()

    def _findings(self, case_id: CaseId) -> tuple[Finding, ...]:
        case = case_of(case_id, Scale.of_arms(len(self._arms)), self._target, self._features)
        if self._executor is None:
            self._executor = Executor(self._arms, "mutants", stop=self._stop)
        judged = judge_despite_errors(self._executor, self._assigned, case)
        suspect = self._arms[-1].name
        if findings := tuple(found for found in judged.findings if found.arms[-1] == suspect):
            return findings
        judged.raise_errors()
        if not judged.complete:
            raise Abandoned
        return ()


def case_ids(seed: int, workloads: Mapping[str, int], cases: int) -> Iterator[CaseId]:
    """Yield the cases in the order of a campaign, but generators take turns after each case, as the cases are few.

    Workloads whose share is less than half a case have none.
    """
    least = sum(workloads.values()) / (2 * cases)
    schedule = Schedule({name: weight for name, weight in workloads.items() if weight >= least}, cases, {}, size=1)
    while (turn := schedule.next()) is not None:
        yield from turn.case_ids(seed)


def duel(
    arms: Sequence[Arm],
    cases: Iterator[CaseId],
    false_alarms: frozenset[str],
    limit: float,
    stop: Callable[[], bool],
) -> DuelResult:
    """Judge cases until there is a finding, other than those of these fingerprints.

    No case begins after `limit` seconds. Raises ServerError, Abandoned.
    """
    judged = failures = 0
    began = time.monotonic()
    seconds = 0.0
    with closing(Duel(arms, stop)) as both:
        for case_id in cases:
            findings = both.findings(case_id)
            seconds = time.monotonic() - began
            failures += findings is None
            judged += findings is not None
            found = next((each for each in findings or () if each.fingerprint not in false_alarms), None)
            if found is not None:
                kill = Kill(found.oracle, found.summary, str(case_id), _occurs_again(both, case_id, found))
                return DuelResult(judged, failures, kill, seconds, limit)
            if seconds >= limit:
                break
    return DuelResult(judged, failures, None, seconds, limit)


def _occurs_again(both: Duel, case_id: CaseId, found: Finding) -> bool:
    try:
        return any(each.oracle == found.oracle for _ in range(TRIES) for each in both.findings(case_id) or ())
    except ServerError:
        return True


def false_alarms(arms: Sequence[Arm], cases: Iterator[CaseId], stop: Callable[[], bool]) -> dict[str, str]:
    """Return the summaries of all findings of a build against itself, by fingerprint. Raises ServerError, Abandoned."""
    with closing(Duel(arms, stop)) as both:
        return {found.fingerprint: found.summary for case_id in cases for found in both.findings(case_id) or ()}
