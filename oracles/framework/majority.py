"""Majority: of three arms or more, which one a finding is about is put to the vote of all that the oracle judged.

An arm is held against the first one, so a bug of that one looks like one of each other arm. It is outvoted if these do
the same among themselves.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from oracles.model.finding import Finding, Vote
from oracles.model.oracle import Agree, Verdict


def with_votes(verdicts: Sequence[Verdict], arms: Sequence[str]) -> Iterator[Verdict]:
    """Yield an oracle's verdicts on a case, findings with the vote of the arms that it judged.

    Silence is assent only where the oracle was certain of all: what could not be told does not say whose it was.
    """
    findings = [verdict for verdict in verdicts if isinstance(verdict, Finding)]
    certain = all(isinstance(verdict, Agree | Finding) for verdict in verdicts)
    for verdict in verdicts:
        yield replace(verdict, vote=_vote(verdict, findings, arms, certain=certain)) if verdict in findings else verdict


def _vote(finding: Finding, findings: Sequence[Finding], arms: Sequence[str], *, certain: bool) -> Vote | None:
    reference, accused = finding.arms
    here = {other.arms[1]: other for other in findings if other.step == finding.step and other.arms[0] == reference}
    like_reference = tuple(arm for arm in arms if arm == reference or (certain and arm not in here))
    like_accused = tuple(arm for arm in arms if arm in here and here[arm].actual == finding.actual)
    if finding.shown_by_all or len(like_reference) == len(like_accused):
        return None
    if len(like_reference) > len(like_accused):
        return Vote(accused, like_reference)
    return Vote(reference, like_accused)
