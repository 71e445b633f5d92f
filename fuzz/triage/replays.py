"""Replays: reduced findings of earlier runs, tried on the arms of a later one.

A replay without a decision, for example after a timeout, is none.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fuzz.execution.executor import Executor
from fuzz.execution.judging import Assignment, JudgedCase, assignments, judge_case
from fuzz.servers.arm import Arm
from fuzz.triage.blame import tries_for
from fuzz.triage.interestingness import oracle_of
from fuzz.triage.stored_finding import StoredFinding
from oracles.model.finding import Finding
from oracles.model.oracle import Agree, Inconclusive, Unstable, all_oracles


@dataclass(frozen=True, slots=True)
class Replay:
    """The outcome of the tries of a finding's reduced case."""

    fingerprint: str
    shown: bool
    of_base: bool = False  # whether all arms show it


def can_replay(found: StoredFinding, arms: Sequence[str]) -> bool:
    """Return whether a finding can be tried: it occurred again after its reduction, and has its arms and its oracle."""
    named = set(found.least.finding.arms) <= set(arms)
    return found.reduced and found.least.shown > 0 and named and found.finding.oracle in _oracles()


def replays(findings: Sequence[StoredFinding], executor: Executor, arms: Sequence[Arm]) -> Iterator[Replay]:
    """Try findings on arms, and yield the outcome of each that the oracle decides. Raises ServerError."""
    for found in findings:
        judging = assignments([oracle_of(found.least.finding)], arms)
        if outcome := _replay(found, executor, judging, alone=len(arms) == 1):
            yield outcome


def _replay(found: StoredFinding, executor: Executor, judging: Sequence[Assignment], *, alone: bool) -> Replay | None:
    fingerprint, wanted, decided = found.finding.fingerprint, found.least.finding, False
    for _ in range(tries_for(found.least)):
        judged = judge_case(executor, judging, found.least.case)
        shown = [each for each in judged.findings if _is_like(each, wanted)]
        if shown:
            return Replay(fingerprint, shown=True, of_base=not alone and any(each.shown_by_all for each in shown))
        decided |= _is_decided(judged)
    return Replay(fingerprint, shown=False) if decided else None


def _is_decided(judged: JudgedCase) -> bool:
    """Return whether the oracle has judged the case without a doubt."""
    verdicts = [verdict for _, verdict in judged.verdicts]
    doubtful = any(isinstance(verdict, Inconclusive | Unstable) for verdict in verdicts)
    return judged.complete and not doubtful and any(isinstance(verdict, Agree) for verdict in verdicts)


def _is_like(shown: Finding, wanted: Finding) -> bool:
    """Return whether a finding has the wanted suspect. The symptom may differ, as code around the bug has changed."""
    return shown.arms[1] == wanted.arms[1] or shown.shown_by_all or wanted.shown_by_all


def _oracles() -> frozenset[str]:
    return frozenset(oracle.name for oracle in all_oracles())
