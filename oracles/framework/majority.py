"""Majority: with three arms or more, the arms vote on the one that has the fault.

Each arm is compared with the first one only. So a fault of the first arm appears as a fault of each other arm. If the
others behave alike among themselves, they outvote the first.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from oracles.model.finding import Finding, Vote
from oracles.model.oracle import Agree, Verdict


def with_votes(verdicts: Sequence[Verdict], arms: Sequence[str]) -> Iterator[Verdict]:
    """Yield an oracle's verdicts on a case; findings have the vote of the judged arms.

    An arm without a finding votes for the reference only if no verdict is unstable or inconclusive.
    """
    findings = [verdict for verdict in verdicts if isinstance(verdict, Finding)]
    certain = all(isinstance(verdict, Agree | Finding) for verdict in verdicts)
    for verdict in verdicts:
        yield replace(verdict, vote=_vote(verdict, findings, arms, certain=certain)) if verdict in findings else verdict


def _vote(finding: Finding, findings: Sequence[Finding], arms: Sequence[str], *, certain: bool) -> Vote | None:
    reference, suspect = finding.arms
    here = {other.arms[1]: other for other in findings if other.step == finding.step and other.arms[0] == reference}
    like_reference = tuple(arm for arm in arms if arm == reference or (certain and arm not in here))
    like_suspect = tuple(arm for arm in arms if arm in here and here[arm].actual == finding.actual)
    if finding.shown_by_all or len(like_reference) == len(like_suspect):
        return None
    if len(like_reference) > len(like_suspect):
        return Vote(suspect, like_reference)
    return Vote(reference, like_suspect)
