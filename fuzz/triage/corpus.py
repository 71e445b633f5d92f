"""Corpus: reproducers of fixed faults, which no arm may show, and of upstream faults, which all arms must show."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from fuzz.errors import CaseError
from fuzz.execution.executor import Executor
from fuzz.execution.judging import JudgedCase, assignments, judge_case
from fuzz.servers.arm import Arm
from fuzz.servers.known_good import newer_than_known
from fuzz.triage.reduction.problem import sort_key
from fuzz.triage.reproducer.reproducer import load
from fuzz.triage.sequential_test import CERTAIN_TRIES
from oracles.model.case import Case
from oracles.model.finding import Finding
from oracles.model.oracle import NotApplicable, all_oracles, oracle_named


class Folder(StrEnum):
    """Folders of the corpus, which determine the expected findings of their reproducers."""

    FIXED = "fixed"
    UPSTREAM = "upstream"


@dataclass(frozen=True, slots=True)
class Entry:
    """A reproducer of the corpus, and the current findings of its case."""

    path: Path
    place: Folder
    case: Case
    findings: tuple[Finding, ...]
    newer: str = ""  # the arms' version if it is newer than the known-good one, else ""
    idle_oracle: str = ""  # the reproducer's oracle if it judged nothing, else ""

    @property
    def fixed_upstream(self) -> bool:
        """Return whether a newer release has fixed an upstream fault."""
        return bool(self.newer) and self.place is Folder.UPSTREAM and not self.findings

    @property
    def remark(self) -> str:
        """Return the state of the entry in a few words."""
        return self.deviation or (
            f"fixed upstream: {self.newer} does not show it" if self.fixed_upstream else "as expected"
        )

    @property
    def deviation(self) -> str:
        """Return the deviation from the expected findings, or an empty string."""
        others = [finding for finding in self.findings if not finding.shown_by_all]
        if others:
            return f"{others[0].arms[1]} shows it: {others[0].summary}"
        if self.findings and self.place is Folder.FIXED:
            return f"all arms show it: {self.findings[0].summary}"
        if not self.findings and self.place is Folder.UPSTREAM and not self.fixed_upstream:
            return f"no arm shows it any more: move it to {Folder.FIXED}/"
        if self.idle_oracle and self.place is Folder.FIXED:
            return f"{self.idle_oracle} judges nothing of it, so it proves nothing: reduce the finding again"
        return ""


@dataclass(frozen=True, slots=True)
class Reproducer:
    """A reproducer of the corpus."""

    path: Path
    place: Folder
    case: Case
    oracle: str  # the one that its header names, or ""


def reproducers(corpus: Path) -> tuple[Reproducer, ...]:
    """Return the reproducers in the order of their names. Raises CaseError if one cannot be read, or there is none."""
    paths = [(place, path) for place in Folder for path in sorted((corpus / place).glob("*.sql"))]
    if not paths:
        raise CaseError(f"{corpus} has no reproducer; give --corpus a directory with fixed/*.sql or upstream/*.sql")
    loaded = ((place, path, load(str(path))) for place, path in paths)
    return tuple(
        Reproducer(path, place, kept.case, kept.about.oracle if kept.about else "") for place, path, kept in loaded
    )


def entries(kept: Sequence[Reproducer], executor: Executor, arms: Sequence[Arm]) -> Iterator[Entry]:
    """Execute reproducers in order, and yield their entries. Raises CaseError, ServerError."""
    newer = newer_version([arm.build.version for arm in arms])
    for each in kept:
        judged = _judged(executor, arms, each.case)
        yield Entry(each.path, each.place, each.case, judged.findings, newer, _idle_oracle(each.oracle, judged))


def newer_version(versions: Sequence[str]) -> str:
    """Return the arms' versions if all are newer than the known-good one, else an empty string."""
    return " and ".join(sorted(set(versions))) if all(map(newer_than_known, versions)) else ""


def shown(executor: Executor, arms: Sequence[Arm], case: Case) -> tuple[Finding, ...]:
    """Return the findings of all oracles in the first execution that has any."""
    return _judged(executor, arms, case).findings


def _judged(executor: Executor, arms: Sequence[Arm], case: Case) -> JudgedCase:
    """Return the first judged execution that has findings, or else the last one."""
    judging = assignments(all_oracles(), arms)
    for _ in range(CERTAIN_TRIES):
        judged = judge_case(executor, judging, case)
        if judged.findings:
            break
    return judged


def _idle_oracle(oracle: str, judged: JudgedCase) -> str:
    """Return the oracle that the reproducer names if it has compared nothing, else ""."""
    at_work = {name for name, verdict in judged.verdicts if not isinstance(verdict, NotApplicable)}
    return "" if oracle in at_work else oracle


def place_for(fingerprint: str, findings: Sequence[Finding]) -> Folder:
    """Return the folder for a reproducer with these findings. Raises CaseError if only one arm has the fault."""
    for finding in findings:
        if not finding.shown_by_all:
            still = f"{finding.arms[1]} still shows {finding.summary!r}"
            raise CaseError(f"cannot keep finding {fingerprint} before it is fixed: {still}")
    return Folder.UPSTREAM if findings else Folder.FIXED


def needless(found: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return the redundant entries: a smaller one shows the same fault, or another one has the same case."""
    kept: set[tuple[object, ...]] = set()
    left_out = []
    for entry in sorted(found, key=lambda entry: sort_key(entry.case)):
        what = {_fault(entry, finding) for finding in entry.findings} or {(entry.place, *_content(entry.case))}
        if what <= kept:
            left_out.append(entry)
        kept |= what
    return tuple(left_out)


def _fault(entry: Entry, finding: Finding) -> tuple[object, ...]:
    """Return a key that is equal for two entries that show the same fault.

    Most origins name a violated rule, and many faults may violate it. Entries with such findings are equal only if
    their cases are.
    """
    oracle = oracle_named(finding.oracle)
    case = () if oracle is not None and oracle.origin_is_cause else _content(entry.case)
    return entry.place, finding.oracle, finding.arms, finding.origin, *case


def _content(case: Case) -> tuple[object, ...]:
    return case.scene, case.steps, case.modes
