"""Findings in the store, with the results of their triage so far, and the bugs that they make up.

A bug is a group of reduced and blamed findings that most likely have the same cause.
"""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fuzz.triage.blame import UPSTREAM, Blame
from fuzz.triage.interestingness import ReducedCase
from oracles.model.case import Case
from oracles.model.finding import Finding


@dataclass(frozen=True, slots=True)
class StoredFinding:
    """A finding with the first case that showed it, the number of such cases, and its reproducer."""

    finding: Finding
    case_id: str
    case: Case
    count: int
    reproducer: Path | None  # None only if pgduel was killed before it was written
    reduced: bool
    smallest: ReducedCase | None = None  # the smallest so far, unless `reduced`
    blame: Blame | None = None
    seconds: float | None = None  # duration of its reduction

    @property
    def least(self) -> ReducedCase:
        """Return the smallest known case; without one, the whole case with 0 runs."""
        return self.smallest or ReducedCase(self.case, self.finding, 0, 0)

    @property
    def confirmed(self) -> bool:
        """Return whether its reduction showed it again."""
        return self.reduced and self.least.shown > 0

    @property
    def triaged(self) -> bool:
        """Return whether its triage is complete: reduced and, if it occurred again, blamed."""
        return self.reduced and (self.blame is not None or not self.least.shown)

    @property
    def correction(self) -> str:
        """Return the name of the known fault's correction that hides it, or ""."""
        return "" if self.blame is None else self.blame.correction

    @property
    def explained(self) -> bool:
        """Return whether its case is no evidence of a new bug: it did not show it again, or a correction hides it."""
        return self.triaged and (not self.least.shown or bool(self.correction))

    @property
    def blamed_on_base(self) -> bool:
        """Return whether the base without any patch shows it."""
        return bool(self.correction) or (self.blame is not None and self.blame.key == UPSTREAM)


def untriaged(findings: Sequence[StoredFinding]) -> list[StoredFinding]:
    """Return the findings that a resumed campaign must still reduce or blame."""
    return [found for found in findings if not found.triaged]


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
    example, an assertion's site or the kinds of plan nodes. A finding that is not reduced is a bug of its own. Findings
    that one correction hides are one bug, whatever their oracles.
    """
    if not found.confirmed:
        return found.finding.fingerprint
    blame = "" if found.blame is None else found.blame.key
    finding = found.least.finding
    parts = (blame,) if found.correction else (finding.oracle, finding.origin, blame)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def bugs(findings: Sequence[StoredFinding]) -> tuple[Bug, ...]:
    """Return the bugs of the findings, in the order of the first finding of each."""
    alike: dict[str, list[StoredFinding]] = defaultdict(list)
    for found in findings:
        alike[bug_key(found)].append(found)
    return tuple(Bug(key, tuple(of_it)) for key, of_it in alike.items())
