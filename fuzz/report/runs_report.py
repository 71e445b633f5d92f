"""The report of all runs of a continuous campaign: the sums of their reports, and the history of each bug."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from fuzz import workdir
from fuzz.campaign.bug_history import BugHistory, BugStatus, CampaignRun, history
from fuzz.campaign.continuous import kept_plan, runs_of
from fuzz.campaign.counters import Counters, ProgressPoint, complaints, sample_of
from fuzz.campaign.database import home
from fuzz.campaign.disk import directory_of, size_of
from fuzz.campaign.reach import feature_reach
from fuzz.errors import CaseError
from fuzz.report.campaign_report import (
    CampaignReport,
    Doubts,
    ReportedRun,
    oracles_of,
    reach_besides,
    report_without_bugs,
    workloads_of,
)
from fuzz.report.reported_bug import ReportedBug, Status, reported_bug
from fuzz.report.summary import Summary
from fuzz.triage.findings import Bug

_ORDER: Final = (
    BugStatus.NEW,
    BugStatus.BACK_AGAIN,
    BugStatus.STILL_THERE,
    BugStatus.NOT_SEEN,
    BugStatus.FIXED,
)


def report_of_runs(name: str) -> CampaignReport:
    """Return the report of all runs of a campaign. Raises StoreError, CaseError."""
    plan, runs = kept_plan(name), runs_of(name)
    if not runs:
        raise CaseError(f"campaign {name} has no run yet; start one with {workdir.COMMAND} campaign start {name}")
    parts = [report_without_bugs(directory_of(run)) for run in runs]
    last = parts[-1]
    found = history(runs)
    counters = _sum(parts)
    canaries = {key: sum(part.summary.canaries[key] for part in parts) for key in last.summary.canaries}
    features = tuple(feature_reach(counters.reach, each.feature) for each in last.features)
    summary = Summary(
        campaign=name,
        why=last.summary.why,
        seed=last.summary.seed,
        arms=last.arms,
        canaries=canaries,
        missed="",
        counters=counters,
        findings=[each for bug in reversed(found) for each in bug.findings],
        unreached=last.summary.unreached,
        not_compared=last.summary.not_compared,
        complaints=complaints(counters, canaries),
        parts={},
        known=plan.known,
        left_out=last.summary.left_out,
    )
    bugs = (_bug(bug, summary) for bug in found)
    return CampaignReport(
        directory=home(),
        summary=summary,
        bugs=tuple(sorted(bugs, key=_rank)),
        doubts=tuple(_doubts(parts)),
        oracles=tuple(oracles_of(counters)),
        workloads=tuple(workloads_of(counters)),
        features=features,
        reach=reach_besides(counters, [each.feature.name for each in features]),
        samples=tuple(_samples(parts)),
        of_cases=True,
        runs=tuple(_runs(runs, parts, found)),
    )


def _rank(bug: ReportedBug) -> tuple[bool, int]:
    """Return the place of a bug in the report: known faults come last."""
    status = BugStatus.NEW if bug.over_runs is None else bug.over_runs.status
    return bug.status is Status.KNOWN, _ORDER.index(status)


def _bug(bug: BugHistory, summary: Summary) -> ReportedBug:
    command = f"{workdir.COMMAND} replay {bug.run}/{bug.finding.finding.fingerprint}"  # on the builds of that run
    return reported_bug(Bug(bug.key, bug.findings), summary.known, lambda _: command, bug)


def _sum(parts: Sequence[CampaignReport]) -> Counters:
    total = Counters()
    for part in parts:
        total.add(part.counters)
    return total


def _doubts(parts: Sequence[CampaignReport]) -> Iterator[Doubts]:
    """Yield the doubts of all runs, the most frequent ones first. Those stored are named with their campaign."""
    alike: dict[tuple[str, ...], list[tuple[str, Doubts]]] = {}
    for part in parts:
        for each in part.doubts:
            alike.setdefault((each.oracle, each.generator, each.kind, each.reason), []).append((part.name, each))
    for found in sorted(alike.values(), key=lambda found: -sum(each.count for _, each in found)):
        yield replace(
            found[0][1],
            count=sum(each.count for _, each in found),
            stored=tuple(f"{campaign}/{name}" for campaign, each in found for name in each.stored),
            retried=sum(each.retried for _, each in found),
        )


def _samples(parts: Sequence[CampaignReport]) -> Iterator[ProgressPoint]:
    """Yield a sample of the beginning, and one of the end of each run. All sum the runs before."""
    counters, found, at = Counters(), set[str](), 0.0
    for part in parts:
        if part.samples and not at:
            at = part.samples[0].at
            yield sample_of(counters, 0, at)
        counters.add(part.counters)
        found |= {each.finding.fingerprint for each in part.summary.findings}
        at = part.samples[-1].at if part.samples else at
        yield sample_of(counters, len(found), at)


def _runs(
    runs: Sequence[CampaignRun], parts: Sequence[CampaignReport], found: Sequence[BugHistory]
) -> Iterator[ReportedRun]:
    new = Counter(bug.first for bug in found)
    for run, part in zip(runs, parts, strict=True):
        yield ReportedRun(
            number=run.number,
            revision=run.revision,
            seed=run.plan.seed,
            seconds=run.seconds,
            cases=run.cases,
            statements=run.statements,
            shapes=part.plans.shapes,
            doubts=part.counters.of_kind("unstable") + part.counters.of_kind("inconclusive"),
            new_bugs=new[run.number],
            replays=len(run.replays),
            size=size_of(directory_of(run)),
            ended=run.ended,
        )
