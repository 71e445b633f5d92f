"""The corpus: reproducers of what was fixed, which must show nothing, and of upstream faults, which all arms show."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from fuzz.errors import CaseError
from fuzz.execution.executor import Executor
from fuzz.execution.judging import assignments, judge_case
from fuzz.servers.arm import Arm
from fuzz.servers.known_good import newer_than_known
from fuzz.triage.reduction.problem import sort_key
from fuzz.triage.reproducer.load import load
from fuzz.triage.sequential_test import ASKED
from oracles.framework.metamorphic import Metamorphic
from oracles.model.case import Case
from oracles.model.finding import Finding
from oracles.model.oracle import all_oracles

_CLAIMING = frozenset(oracle.name for oracle in all_oracles() if isinstance(oracle, Metamorphic))


class Folder(StrEnum):
    """Where in the corpus a reproducer is, which says what is expected of it."""

    FIXED = "fixed"
    UPSTREAM = "upstream"


@dataclass(frozen=True, slots=True)
class Entry:
    """A reproducer of the corpus, and what its case shows now."""

    path: Path
    place: Folder
    case: Case
    findings: tuple[Finding, ...]
    newer: str = ""  # the arms' version, where it is newer than the known-good one

    @property
    def fixed_upstream(self) -> bool:
        """Return whether a newer release has mended what upstream is expected to show."""
        return bool(self.newer) and self.place is Folder.UPSTREAM and not self.findings

    @property
    def remark(self) -> str:
        """Say how it is, in a few words."""
        return self.complaint or (
            f"fixed upstream: {self.newer} does not show it" if self.fixed_upstream else "as expected"
        )

    @property
    def complaint(self) -> str:
        """Say what is not as expected, or nothing."""
        others = [finding for finding in self.findings if not finding.shown_by_all]
        if others:
            return f"{others[0].arms[1]} shows it: {others[0].summary}"
        if self.findings and self.place is Folder.FIXED:
            return f"all arms show it: {self.findings[0].summary}"
        if not self.findings and self.place is Folder.UPSTREAM and not self.fixed_upstream:
            return "no arm shows it any more: it belongs to what is fixed"
        return ""


def entries(corpus: Path, executor: Executor, arms: Sequence[Arm]) -> Iterator[Entry]:
    """Try each reproducer, in the order of their names. Raises CaseError, ServerError."""
    newer = newer_version([arm.build.version for arm in arms])
    for place in Folder:
        for path in sorted((corpus / place).glob("*.sql")):
            case = load(str(path)).case
            yield Entry(path, place, case, shown(executor, arms, case), newer)


def newer_version(versions: Sequence[str]) -> str:
    """Return the arms' versions, where all of them are newer than the known-good one; else nothing."""
    return " and ".join(sorted(set(versions))) if all(map(newer_than_known, versions)) else ""


def shown(executor: Executor, arms: Sequence[Arm], case: Case) -> tuple[Finding, ...]:
    """Return all that any oracle finds, in the first run that shows anything."""
    judging = assignments(all_oracles(), arms)
    return next((found for _ in range(ASKED) if (found := judge_case(executor, judging, case).findings)), ())


def place_for(fingerprint: str, findings: Sequence[Finding]) -> Folder:
    """Return where a reproducer belongs that shows this. Raises CaseError where an arm alone has the fault."""
    for finding in findings:
        if not finding.shown_by_all:
            still = f"{finding.arms[1]} still shows {finding.summary!r}"
            raise CaseError(f"finding {fingerprint} can be kept once it is mended: {still}")
    return Folder.UPSTREAM if findings else Folder.FIXED


def needless(found: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return entries that say nothing new: beside a smaller one that shows the same, or one with the same case."""
    kept: set[tuple[object, ...]] = set()
    left_out = []
    for entry in sorted(found, key=lambda entry: sort_key(entry.case)):
        what = {_fault(entry, finding) for finding in entry.findings} or {(entry.place, *_content(entry.case))}
        if what <= kept:
            left_out.append(entry)
        kept |= what
    return tuple(left_out)


def _fault(entry: Entry, finding: Finding) -> tuple[object, ...]:
    """Return what two entries have in common that show one fault.

    The origin of a broken claim is which claim it is, and any fault may break it: only the same case shows the same.
    """
    case = _content(entry.case) if finding.oracle in _CLAIMING else ()
    return entry.place, finding.oracle, finding.arms, finding.origin, *case


def _content(case: Case) -> tuple[object, ...]:
    return case.scene, case.steps, case.modes
