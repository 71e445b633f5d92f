"""A bug as reports have it: its findings, status, blame, evidence and reproducer.

Evidence of two plans is shown side by side: shapes such as `Hash Join(Seq Scan, Hash(Seq Scan))` as indented lines.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from pathlib import Path
from typing import Final

from fuzz.campaign.bug_history import BugHistory, BugStatus
from fuzz.campaign.known import KnownFault, fault_of, known_fault
from fuzz.campaign.store import HarnessFinding, SpecFinding
from fuzz.errors import CaseError
from fuzz.report.forms.form import title_of
from fuzz.triage.findings import Bug, StoredFinding
from fuzz.triage.reproducer.markers import unmarked
from fuzz.triage.reproducer.reproducer import body
from fuzz.triage.reproducer.script import write_modes, write_steps
from oracles.model.finding import Evidence, Finding

_PART = re.compile(r"[(),]|[^(),]+")


@dataclass(frozen=True, slots=True)
class PlanLine:
    """A node of a plan, its depth, and whether the other arm's plan lacks it."""

    depth: int
    node: str
    differs: bool = False


def tree_lines(shape: str) -> Iterator[PlanLine]:
    """Yield a line for each node of a plan's shape, from the top."""
    depth = 0
    for part in _PART.findall(shape):
        if part == "(":
            depth += 1
        elif part == ")":
            depth = max(0, depth - 1)
        elif node := part.strip(", "):
            yield PlanLine(depth, node)


def side_by_side(left: str, right: str) -> tuple[tuple[PlanLine, ...], tuple[PlanLine, ...]]:
    """Return the lines of two plans' shapes, marked where the plans differ."""
    ours, theirs = tuple(tree_lines(left)), tuple(tree_lines(right))
    same = SequenceMatcher(a=ours, b=theirs, autojunk=False).get_matching_blocks()
    return (
        _marked(ours, {block.a + at for block in same for at in range(block.size)}),
        _marked(theirs, {block.b + at for block in same for at in range(block.size)}),
    )


def _marked(lines: Sequence[PlanLine], same: set[int]) -> tuple[PlanLine, ...]:
    return tuple(PlanLine(line.depth, line.node, at not in same) for at, line in enumerate(lines))


_PLAN: Final = "plan: "  # begins the line of a finding's text that has the plan's shape


class Status(StrEnum):
    """The state of a bug's first finding."""

    CONFIRMED = "confirmed"  # occurs in each run
    SOMETIMES = "occurs sometimes"
    LOST = "did not occur again"
    UNREDUCED = "not reduced"
    KNOWN = "known fault"


@dataclass(frozen=True, slots=True)
class Side:
    """The behaviour of one arm: its title, its text, and its plan, if the finding has plans."""

    title: str
    text: str
    plan: tuple[PlanLine, ...] = ()


@dataclass(frozen=True, slots=True)
class ReportedBug:
    """A bug. Oracle, sides, evidence and script are those of its first finding, reduced as far as possible."""

    key: str
    fingerprint: str
    title: str
    oracle: str
    origin: str
    status: Status
    known: KnownFault | None
    arms: tuple[str, str]  # (reference, suspect)
    shown_by_all: bool  # a fault of the base
    findings: tuple[tuple[str, int], ...]  # fingerprint, number of cases
    case_id: str
    modes: tuple[str, ...]
    suspect: str  # according to the majority of the arms; "" without one
    how_often: str  # "" if it was not reduced
    blame: str  # "" if unknown
    patches: tuple[str, ...]  # to blame
    sides: tuple[Side, Side]
    evidence: tuple[Evidence, ...]
    statements: str  # of the case, with the settings of its modes, for readers
    script: str  # the reproducer, for psql
    file: Path | None  # of the script
    replay: str  # the command
    over_runs: BugHistory | None = None  # of a continuous campaign

    @property
    def state(self) -> str:
        """Return the status over all runs if there are several, else the status."""
        if self.over_runs is None or self.status is Status.KNOWN:
            return self.status
        return self.over_runs.status

    @property
    def cause(self) -> str:
        """Return a short text for tables: the patch to blame, or the whole text of the blame if it is not one patch."""
        return self.patches[0] if len(self.patches) == 1 and self.blame.startswith(self.patches[0]) else self.blame

    @property
    def is_fixed(self) -> bool:
        """Return whether the last revision does not show it any more."""
        return self.over_runs is not None and self.over_runs.status is BugStatus.FIXED

    @property
    def cases(self) -> int:
        """Return the number of cases that showed its findings, summed over the findings."""
        return sum(cases for _, cases in self.findings)


def reported_bug(
    bug: Bug, known: Sequence[KnownFault], replay: Callable[[StoredFinding], str], over_runs: BugHistory | None = None
) -> ReportedBug:
    """Return a bug as reports have it. `replay` returns the command that replays a finding."""
    found = bug.findings[0]
    finding, case = found.least.finding, found.least.case
    fault = fault_of(found, known)
    return ReportedBug(
        key=bug.key,
        fingerprint=found.finding.fingerprint,
        title=title_of(finding),
        oracle=finding.oracle,
        origin=finding.symptom,
        status=_status(found, fault),
        known=fault,
        arms=finding.arms,
        shown_by_all=finding.shown_by_all if over_runs is None else over_runs.of_base,
        findings=tuple((each.finding.fingerprint, each.count) for each in bug.findings),
        case_id=found.case_id,
        modes=tuple(mode.name for mode in case.modes),
        suspect=str(finding.vote or ""),
        how_often=found.least.how_often if found.least.runs else "",
        blame=str(found.blame or ""),
        patches=found.blame.patches if found.blame else (),
        sides=_sides(finding),
        evidence=finding.evidence,
        statements=_joined(lambda: map(unmarked, (*write_modes(case), *write_steps(case)))),
        script=_text(found.reproducer) or _joined(lambda: body(case, finding)),
        file=found.reproducer,
        replay=replay(found),
        over_runs=over_runs,
    )


def reported_spec(found: SpecFinding, known: Sequence[KnownFault], replay: str) -> ReportedBug:
    """Return the finding of an isolation spec as a bug. `replay` is the command that runs the spec again."""
    return _reported_file(found, found.spec.name, found.spec, _text(found.spec), known, replay)


def reported_harness(found: HarnessFinding, known: Sequence[KnownFault], replay: str) -> ReportedBug:
    """Return the finding of a harness as a bug. `replay` is the command that runs its input again."""
    return _reported_file(found, found.harness, found.input, f"{replay}\n", known, replay)


def _reported_file(
    found: SpecFinding | HarnessFinding, case: str, file: Path, script: str, known: Sequence[KnownFault], replay: str
) -> ReportedBug:
    """Return a finding that a file shows. `case` names what showed it."""
    finding = found.finding
    fault = known_fault(finding, known)
    return ReportedBug(
        key=finding.fingerprint,
        fingerprint=finding.fingerprint,
        title=title_of(finding),
        oracle=finding.oracle,
        origin=finding.symptom,
        status=Status.KNOWN if fault else Status.UNREDUCED,
        known=fault,
        arms=finding.arms,
        shown_by_all=finding.shown_by_all,
        findings=((finding.fingerprint, found.count),),
        case_id=case,
        modes=(),
        suspect=str(finding.vote or ""),
        how_often="",
        blame="",
        patches=(),
        sides=_sides(finding),
        evidence=(),
        statements="",
        script=script,
        file=file,
        replay=replay,
    )


def _status(found: StoredFinding, fault: KnownFault | None) -> Status:
    if fault is not None:
        return Status.KNOWN
    if not found.reduced:
        return Status.UNREDUCED
    if not found.least.shown:
        return Status.LOST
    return Status.CONFIRMED if found.least.always else Status.SOMETIMES


def _sides(finding: Finding) -> tuple[Side, Side]:
    (ours, left), (theirs, right) = finding.sides()
    (left, left_plan), (right, right_plan) = _without_plan(left), _without_plan(right)
    left_lines, right_lines = side_by_side(left_plan, right_plan)
    return Side(ours, left, left_lines), Side(theirs, right, right_lines)


def _without_plan(text: str) -> tuple[str, str]:
    """Return a side's text without the line of its plan, and the plan's shape."""
    lines = text.split("\n")
    plans = [line for line in lines if line.startswith(_PLAN)]
    if len(plans) != 1:
        return text, ""
    return "\n".join(line for line in lines if line not in plans), plans[0].removeprefix(_PLAN)


def _joined(blocks: Callable[[], Iterable[str]]) -> str:
    """Return blocks of a script as one text, or a comment with the reason why no script can have them."""
    try:
        return "\n".join(text for block in blocks() if (text := block.strip("\n")))
    except CaseError as error:
        return f"-- {error}"


def _text(file: Path | None) -> str:
    """Return a script's text; "" if the file is not there."""
    try:
        return file.read_text(encoding="utf-8", errors="replace") if file else ""
    except OSError:
        return ""
