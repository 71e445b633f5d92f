"""History of the bugs of a continuous campaign: their status after the last run, and on each revision.

Evidence of a run is a case that showed the bug, or a replay. A bug is replayed when its last evidence has other builds.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import groupby
from typing import Any, Final

from fuzz.campaign.known import KnownFault, fault_of
from fuzz.campaign.plan import Plan
from fuzz.triage.findings import StoredFinding, bug_key
from fuzz.triage.replays import KnownFinding, ReplayResult, can_replay

_LENGTH: Final = 12  # digits of a commit


class BugStatus(StrEnum):
    """The state of a bug after a run, or on a revision."""

    NEW = "new"  # first evidence
    STILL_THERE = "still there"
    FIXED = "fixed"  # replays do not show it
    BACK_AGAIN = "back again"  # first evidence after it was fixed
    NOT_SEEN = "not seen again"  # no evidence


@dataclass(frozen=True, slots=True)
class CampaignRun:
    """One run: the number of its campaign, plan and builds, counts, findings, and replays of earlier findings."""

    number: str
    plan: Plan
    seconds: float
    cases: int
    statements: int  # judged
    ended: str  # reason; "" while it runs, or after it was killed
    findings: tuple[StoredFinding, ...]
    builds: Mapping[str, str]  # arm → key
    replays: tuple[ReplayResult, ...] = ()
    series: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # arm → names of its patches
    database_size: int = 0  # bytes on disk of its tables in a shared database

    @property
    def revision(self) -> str:
        """Return the commits of its branches, or else the last arm's build."""
        commits = [commit[:_LENGTH] for commit in self.plan.arms.commits]
        return ", ".join(commits or list(self.builds.values())[-1:])


_Occurrences = Sequence[tuple[CampaignRun, StoredFinding]]


@dataclass(frozen=True, slots=True)
class OnRevision:
    """The status of a bug on the builds of consecutive runs."""

    revision: str
    first: str  # run
    last: str  # run
    status: BugStatus
    of_base: bool  # whether a replay showed it on all arms

    def to_json(self) -> dict[str, Any]:
        """Return the data for `--json`."""
        runs = {"first": self.first, "last": self.last}
        return {"revision": self.revision, "status": self.status, "in_base": self.of_base} | runs


@dataclass(frozen=True, slots=True)
class BugHistory:
    """A bug over all runs."""

    key: str
    first: str  # run
    last: str  # run
    cases: int
    status: BugStatus
    of_base: bool  # whether the base has it, according to the last evidence
    run: str  # of `finding`
    finding: StoredFinding  # of the first run that reduced it, else of the first run
    findings: tuple[StoredFinding, ...]  # one of each fingerprint, `finding` first, with the cases of all runs
    revisions: tuple[OnRevision, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the data for `--json` and notifications."""
        found = self.finding
        return {
            "bug": self.key,
            "status": self.status,
            "in_base": self.of_base,
            "revisions": [each.to_json() for each in self.revisions],
            "first": self.first,
            "last": self.last,
            "cases": self.cases,
            "finding": f"{self.run}/{found.finding.fingerprint}",
            "oracle": found.finding.oracle,
            "summary": found.finding.summary,
            "blame": str(found.blame or ""),
            "reproducer": None if found.reproducer is None else str(found.reproducer),
        }


@dataclass(frozen=True, slots=True)
class _Seen:
    """A run, and the fingerprints of its findings."""

    run: CampaignRun
    fingerprints: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Evidence:
    """Runs on the same builds, and whether they show a bug: None if they have no evidence."""

    runs: tuple[CampaignRun, ...]
    shown: bool | None
    of_base: bool | None  # according to replays; None without any

    @property
    def builds(self) -> Mapping[str, str]:
        """Return the builds of its runs."""
        return self.runs[0].builds


def history(runs: Sequence[CampaignRun]) -> tuple[BugHistory, ...]:
    """Return the bugs of all runs, the newest first."""
    seen = _seen(runs)
    return tuple(_history(key, found, seen) for key, found in reversed(_bugs(runs).items()))


def to_replay(
    runs: Sequence[CampaignRun], builds: Mapping[str, str], expected: Sequence[KnownFault]
) -> tuple[KnownFinding, ...]:
    """Return the findings to try on these builds: those of bugs whose last evidence has other builds.

    Those of expected faults are left out if they are not reduced.
    """
    seen, known = _seen(runs), []
    for occurrences in _bugs(runs).values():
        merged = _merged(occurrences)
        if _evidence_by_run(seen, _names(found for _, found in merged))[-1].builds != builds:
            known += [
                KnownFinding(found, run.builds)
                for run, found in merged
                if can_replay(found, tuple(builds)) and (found.reduced or fault_of(found, expected) is None)
            ]
    return tuple(known)


def _seen(runs: Sequence[CampaignRun]) -> list[_Seen]:
    return [_Seen(run, _names(run.findings)) for run in runs]


def _bugs(runs: Sequence[CampaignRun]) -> dict[str, _Occurrences]:
    """Return key -> occurrences of each bug, in the order of their discovery."""
    occurrences = [(run, found) for run in runs for found in run.findings]
    reduced = {found.finding.fingerprint: found for _, found in reversed(occurrences) if found.reduced}
    bugs: dict[str, list[tuple[CampaignRun, StoredFinding]]] = defaultdict(list)
    for run, found in occurrences:
        bugs[bug_key(reduced.get(found.finding.fingerprint, found))].append((run, found))
    return dict(bugs)


def _history(key: str, occurrences: _Occurrences, seen: Sequence[_Seen]) -> BugHistory:
    merged = _merged(occurrences)
    findings = tuple(found for _, found in merged)
    names = _names(findings)
    found = _evidence_by_run(seen, names)
    return BugHistory(
        key=key,
        first=occurrences[0][0].number,
        last=next(each.runs[0].number for each in reversed(found) if each.shown),
        cases=sum(each.count for each in findings),
        status=list(_statuses(_evidence([each], names) for each in seen))[-1][1],
        of_base=_is_of_base(findings[0], found),
        run=merged[0][0].number,
        finding=findings[0],
        findings=findings,
        revisions=tuple(
            OnRevision(
                each.runs[-1].revision, each.runs[0].number, each.runs[-1].number, status, of_base=bool(each.of_base)
            )
            for each, status in _statuses(_evidence(alike, names) for alike in _on_same_builds(seen))
        ),
    )


def _is_of_base(found: StoredFinding, evidence: Sequence[_Evidence]) -> bool:
    """Return whether the last replay showed the bug on all arms. Without one, finding and blame decide."""
    for each in reversed(evidence):
        if each.of_base is not None:
            return each.of_base
    alone = len(evidence[-1].builds) == 1
    return found.blamed_on_base or (found.least.finding.shown_by_all and not alone)


def _merged(occurrences: _Occurrences) -> _Occurrences:
    """Return one finding of each fingerprint with its run and the cases of all runs: reduced and earlier ones first."""
    first: dict[str, tuple[CampaignRun, StoredFinding]] = {}
    cases = Counter[str]()
    for run, found in sorted(occurrences, key=lambda each: not each[1].reduced):
        first.setdefault(found.finding.fingerprint, (run, found))
        cases[found.finding.fingerprint] += found.count
    return tuple((run, replace(found, count=cases[name])) for name, (run, found) in first.items())


def _names(findings: Iterable[StoredFinding]) -> frozenset[str]:
    return frozenset(found.finding.fingerprint for found in findings)


def _on_same_builds(seen: Sequence[_Seen]) -> Iterator[list[_Seen]]:
    return (list(alike) for _, alike in groupby(seen, key=lambda each: dict(each.run.builds)))


def _evidence(seen: Sequence[_Seen], names: frozenset[str]) -> _Evidence:
    """Return the evidence of runs on the same builds. Cases that show the bug outweigh replays that do not."""
    replayed = [replay for each in seen for replay in each.run.replays if replay.fingerprint in names]
    shown = any(each.fingerprints & names for each in seen) or any(replay.shown for replay in replayed)
    return _Evidence(
        tuple(each.run for each in seen),
        shown if shown or replayed else None,
        any(replay.of_base for replay in replayed) if replayed else None,
    )


def _evidence_by_run(seen: Sequence[_Seen], names: frozenset[str]) -> list[_Evidence]:
    """Return the evidence of each run that has some."""
    return [each for one in seen if (each := _evidence([one], names)).shown is not None]


def _statuses(found: Iterable[_Evidence]) -> Iterator[tuple[_Evidence, BugStatus]]:
    """Yield the status after each piece of evidence, from the first that shows the bug on."""
    last: _Evidence | None = None
    for each in found:
        if each.shown is None:
            if last is not None:
                yield each, _without_evidence(last, each)
            continue
        yield each, _with_evidence(last, shown=each.shown)
        last = each


def _with_evidence(last: _Evidence | None, *, shown: bool) -> BugStatus:
    if not shown:
        return BugStatus.FIXED
    if last is None:
        return BugStatus.NEW
    return BugStatus.STILL_THERE if last.shown else BugStatus.BACK_AGAIN


def _without_evidence(last: _Evidence, now: _Evidence) -> BugStatus:
    """Return `fixed` as long as the builds are those that do not show the bug, or else `not seen again`."""
    return BugStatus.FIXED if not last.shown and last.builds == now.builds else BugStatus.NOT_SEEN
