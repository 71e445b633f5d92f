"""Bugs: groups of reduced and blamed findings that most likely have the same cause."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from fuzz.triage.stored_finding import StoredFinding


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug, and its findings in the order of their discovery."""

    key: str
    findings: tuple[StoredFinding, ...]

    @property
    def cases(self) -> int:
        """Return the number of cases that showed its findings, summed over the findings."""
        return sum(found.count for found in self.findings)


def bug_key(found: StoredFinding) -> str:
    """Return 12 hexadecimal digits, equal for findings of one bug.

    They depend on the oracle, the origin in the reduced case, and the patch to blame on any arm. The origin is, for
    example, an assertion's site or the kinds of plan nodes. A finding that is not reduced is a bug of its own.
    """
    if not found.reduced or not found.least.shown:
        return found.finding.fingerprint
    blame = "" if found.blame is None else found.blame.key
    finding = found.least.finding
    return hashlib.sha256("\0".join((finding.oracle, finding.origin, blame)).encode()).hexdigest()[:12]


def bugs(findings: Sequence[StoredFinding]) -> tuple[Bug, ...]:
    """Return the bugs of the findings, in the order of the first finding of each."""
    alike: dict[str, list[StoredFinding]] = defaultdict(list)
    for found in findings:
        alike[bug_key(found)].append(found)
    return tuple(Bug(key, tuple(of_it)) for key, of_it in alike.items())
