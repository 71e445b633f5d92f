"""History of the bugs of a continuous campaign: their status after the last run, and on each revision.

Evidence of a run is a case that showed the bug, or a replay. Findings of a bug are replayed when its last evidence has
other builds. It is fixed when none of the replays on the same builds shows it, and none is missing.
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
    FIXED = "fixed"  # replays of all its findings do not show it
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
class _Evidence:
    """Runs on the same builds, and whether they show a bug: None if their evidence, if any, does not suffice."""

    runs: tuple[CampaignRun, ...]
    shown: bool | None
    of_base: bool | None  # according to replays; None without any

    @property
    def builds(self) -> Mapping[str, str]:
        """Return the builds of its runs."""
        return self.runs[0].builds


def history(runs: Sequence[CampaignRun]) -> tuple[BugHistory, ...]:
    """Return the bugs of all runs, the newest first."""
    return tuple(_history(key, found, runs) for key, found in reversed(_bugs(runs).items()))


def to_replay(
    runs: Sequence[CampaignRun], builds: Mapping[str, str], expected: Sequence[KnownFault]
) -> tuple[KnownFinding, ...]:
    """Return the findings to try on these builds: of bugs without evidence, or with a part of it, on these builds."""
    known = []
    for occurrences in _bugs(runs).values():
        done = _done_on(builds, runs, occurrences)
        known += [
            KnownFinding(found, run.builds)
            for run, found in _merged(occurrences)
            if found.finding.fingerprint not in done and is_replayed(found, tuple(builds), expected)
        ]
    return tuple(known)


def is_replayed(found: StoredFinding, arms: Sequence[str], expected: Sequence[KnownFault]) -> bool:
    """Return whether a finding is tried on new builds. One of an expected fault must have been reduced."""
    return can_replay(found, arms) and (found.reduced or fault_of(found, expected) is None)


def _done_on(builds: Mapping[str, str], runs: Sequence[CampaignRun], occurrences: _Occurrences) -> frozenset[str]:
    """Return the findings of a bug that need no replay on these builds: all if they show it, else those replayed.

    Evidence that is older than the last one with other builds does not count.
    """
    names, in_cases, done = _names(occurrences), _shown_in(occurrences), frozenset[str]()
    for run in reversed(runs):
        replayed, shown = _evidence_in(run, names, in_cases)
        if (shown or replayed) and run.builds != builds:
            break
        if shown:
            return names
        done |= {replay.fingerprint for replay in replayed}
    return done


def _bugs(runs: Sequence[CampaignRun]) -> dict[str, _Occurrences]:
    """Return key -> occurrences of each bug, in the order of their discovery.

    Findings of several bugs may have one fingerprint. One that is not confirmed counts as an occurrence of the bug of
    the last one that was, or else of the next.
    """
    occurrences = [(run, found) for run in runs for found in run.findings]
    confirmed = {found.finding.fingerprint: found for _, found in reversed(occurrences) if found.confirmed}
    bugs: dict[str, list[tuple[CampaignRun, StoredFinding]]] = defaultdict(list)
    for run, found in occurrences:
        fingerprint = found.finding.fingerprint
        if found.confirmed:
            confirmed[fingerprint] = found
        bugs[bug_key(confirmed.get(fingerprint, found))].append((run, found))
    return dict(bugs)


def _history(key: str, occurrences: _Occurrences, runs: Sequence[CampaignRun]) -> BugHistory:
    merged = _merged(occurrences)
    findings = tuple(found for _, found in merged)
    evidence = list(_evidence(occurrences, runs))
    return BugHistory(
        key=key,
        first=occurrences[0][0].number,
        last=next(each.runs[0].number for each in reversed(evidence) if each.shown),
        cases=sum(each.count for each in findings),
        status=list(_statuses(evidence))[-1][1],
        of_base=_is_of_base(findings[0], [each for each in evidence if each.shown is not None]),
        run=merged[0][0].number,
        finding=findings[0],
        findings=findings,
        revisions=tuple(
            OnRevision(
                each.runs[-1].revision, each.runs[0].number, each.runs[-1].number, status, of_base=bool(each.of_base)
            )
            for each, status in _statuses(map(_joined, _on_same_builds(evidence)))
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
    """Return one finding of each fingerprint with its run and the cases of all runs.

    Confirmed and then reduced ones come first, and earlier ones among them.
    """
    first: dict[str, tuple[CampaignRun, StoredFinding]] = {}
    cases = Counter[str]()
    for run, found in sorted(occurrences, key=lambda each: (not each[1].confirmed, not each[1].reduced)):
        first.setdefault(found.finding.fingerprint, (run, found))
        cases[found.finding.fingerprint] += found.count
    return tuple((run, replace(found, count=cases[name])) for name, (run, found) in first.items())


def _names(occurrences: _Occurrences) -> frozenset[str]:
    return frozenset(found.finding.fingerprint for _, found in occurrences)


def _shown_in(occurrences: _Occurrences) -> Mapping[str, frozenset[str]]:
    """Return number of a run -> fingerprints of the findings of its cases, and of those that it confirmed."""
    # Others are only taken over from an earlier run, which may have been deleted.
    shown = [each for each in occurrences if each[1].count or each[1].confirmed] or occurrences
    return {number: _names(list(alike)) for number, alike in groupby(shown, key=lambda each: each[0].number)}


def _evidence_in(
    run: CampaignRun, names: frozenset[str], in_cases: Mapping[str, frozenset[str]]
) -> tuple[list[ReplayResult], bool]:
    """Return the replays of these findings in a run, and whether these or its cases show the bug."""
    replayed = [replay for replay in run.replays if replay.fingerprint in names]
    return replayed, run.number in in_cases or any(replay.shown for replay in replayed)


def _evidence(occurrences: _Occurrences, runs: Sequence[CampaignRun]) -> Iterator[_Evidence]:
    """Yield the evidence of each run. Cases outweigh replays that do not show the bug.

    It is not there if its earlier findings were replayed on the builds of the run, by this run or those just before.
    """
    names, in_cases = _names(occurrences), _shown_in(occurrences)
    merged = {found.finding.fingerprint: found for _, found in _merged(occurrences)}
    earlier, tried = set[str](), set[str]()
    builds: Mapping[str, str] = {}
    for run in runs:
        replayed, shown = _evidence_in(run, names if earlier else frozenset(), in_cases)  # others are of another bug
        if shown or run.builds != builds:
            tried.clear()
        builds = run.builds
        tried |= {replay.fingerprint for replay in replayed}
        missing = (merged[each] for each in earlier - tried)
        all_tried = bool(replayed) and not any(can_replay(found, tuple(builds)) for found in missing)
        of_base = any(replay.of_base for replay in replayed) if replayed else None
        yield _Evidence((run,), shown if shown or all_tried else None, of_base)
        earlier |= in_cases.get(run.number, frozenset())


def _on_same_builds(evidence: Iterable[_Evidence]) -> Iterator[list[_Evidence]]:
    return (list(alike) for _, alike in groupby(evidence, key=lambda each: dict(each.builds)))


def _joined(alike: Sequence[_Evidence]) -> _Evidence:
    """Return the evidence of runs on the same builds together."""
    shown = [each.shown for each in alike if each.shown is not None]
    of_base = [each.of_base for each in alike if each.of_base is not None]
    return _Evidence(
        tuple(run for each in alike for run in each.runs),
        any(shown) if shown else None,
        any(of_base) if of_base else None,
    )


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
