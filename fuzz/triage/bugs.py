"""Bugs: findings that are most likely one bug's, once they are reduced and blamed."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from fuzz.triage.stored_finding import StoredFinding


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug, and its findings in the order in which they came."""

    key: str
    findings: tuple[StoredFinding, ...]

    @property
    def cases(self) -> int:
        """Return how many cases showed any of its findings, counted for each finding."""
        return sum(found.count for found in self.findings)


def bug_key(found: StoredFinding) -> str:
    """Return 12 hexadecimal digits that findings of one bug have in common.

    That is the oracle, what it says of the reduced case (an assertion's site, or what the plan is made of), and the
    patch to blame, whichever arm has it. As long as a finding isn't reduced, it is a bug of its own.
    """
    if not found.reduced or not found.least.shown:
        return found.finding.fingerprint
    blame = "" if found.blame is None else found.blame.key
    finding = found.least.finding
    return hashlib.sha256("\0".join((finding.oracle, finding.origin, blame)).encode()).hexdigest()[:12]


def bugs(findings: Sequence[StoredFinding]) -> tuple[Bug, ...]:
    """Return the bugs among findings, in the order of the first finding of each."""
    alike: dict[str, list[StoredFinding]] = defaultdict(list)
    for found in findings:
        alike[bug_key(found)].append(found)
    return tuple(Bug(key, tuple(of_it)) for key, of_it in alike.items())
