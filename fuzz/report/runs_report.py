"""The report of all runs of a continuous campaign: the sums of their reports, and the history of each bug."""

from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Final

from fuzz import workdir
from fuzz.campaign.bug_history import BugHistory, BugStatus, CampaignRun, history
from fuzz.campaign.catalog import warn
from fuzz.campaign.continuous import directory_of, kept_plan, runs_of
from fuzz.campaign.counters import Counters, ProgressPoint, failed_checks, sample_of
from fuzz.campaign.database import home
from fuzz.campaign.disk import size_of_run
from fuzz.campaign.doubt_outcome import DoubtState
from fuzz.campaign.edges import EdgesOfRuns
from fuzz.campaign.plan import Plan
from fuzz.campaign.reach import feature_reach
from fuzz.errors import CaseError
from fuzz.report.campaign_report import (
    CampaignReport,
    Doubts,
    ReportedRun,
    oracles_of,
    reach_besides,
    report_without_bugs,
    states_of,
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


@dataclass
class _Sums:
    """The sums of the reports of runs. Counters of a run have megabytes, so no report but the last is kept."""

    counters: Counters = field(default_factory=Counters)
    canaries: Counter[str] = field(default_factory=Counter)
    fingerprints: set[str] = field(default_factory=set)
    doubts: list[Doubts] = field(default_factory=list)  # of each run
    samples: list[ProgressPoint] = field(default_factory=list)  # of the beginning, and of the end of each run
    runs: list[ReportedRun] = field(default_factory=list)
    edges: EdgesOfRuns = field(default_factory=EdgesOfRuns)

    def add(self, run: CampaignRun) -> CampaignReport:
        """Add the next run, and return its own report. Raises StoreError, CaseError."""
        part = report_without_bugs(directory_of(run))
        if part.samples and not self.samples:
            first = part.samples[0]
            self.samples.append(sample_of(self.counters, 0, first.at, first.usage))
        self.counters.add(part.counters)
        if part.counters.cases:  # a run that missed a canary has none, so it takes nothing from the other runs
            self.canaries.update(part.summary.canaries)
        self.fingerprints |= {each.finding.fingerprint for each in part.summary.findings}
        self.doubts += part.doubts
        edges = self.edges.add(run.builds, directory_of(run))
        if last := next(reversed((*self.samples, *part.samples)), None):
            self.samples.append(sample_of(self.counters, len(self.fingerprints), last.at, last.usage, edges=edges))
        self.runs.append(_reported(run, part))
        return part


class RunsReport:
    """Reports of all runs of a campaign. Each reads only those runs that changed since the report before."""

    def __init__(self, name: str) -> None:
        """Nothing is read before the first report."""
        self._name = name
        self._sums = _Sums()  # of all runs but the last
        self._summed: list[tuple[str, str, float]] = []

    def present(self) -> CampaignReport:
        """Return the report of the present runs. Raises StoreError, CaseError."""
        plan, runs = kept_plan(self._name), runs_of(self._name, warn)
        if not runs:
            start = f"{workdir.COMMAND} campaign start {self._name}"
            raise CaseError(f"campaign {self._name} has no run yet; start one with {start}")
        *earlier, last = runs
        self._sum(earlier)
        sums = deepcopy(self._sums)
        return _report(plan, runs, sums, sums.add(last))

    def _sum(self, runs: Sequence[CampaignRun]) -> None:
        states = [(run.number, run.ended, run.seconds) for run in runs]
        if self._summed != states[: len(self._summed)]:  # a run was deleted, or resumed
            self._sums, self._summed = _Sums(), []
        for run in runs[len(self._summed) :]:
            self._sums.add(run)
        self._summed = states


def _report(plan: Plan, runs: Sequence[CampaignRun], sums: _Sums, last: CampaignReport) -> CampaignReport:
    found = history(runs)
    new = Counter(bug.first for bug in found)
    features = tuple(feature_reach(sums.counters.reach, each.feature) for each in last.features)
    canaries = sums.canaries if last.counters.cases else last.summary.canaries
    summary = Summary(
        campaign=plan.name,
        why=last.summary.why,
        seed=last.summary.seed,
        arms=last.arms,
        canaries=canaries,
        missed="",
        counters=sums.counters,
        findings=[each for bug in reversed(found) for each in bug.findings],
        unreached=last.summary.unreached,
        not_compared=last.summary.not_compared,
        failed_checks=failed_checks(sums.counters, canaries),
        parts={},
        known=plan.known,
        left_out=last.summary.left_out,
    )
    bugs = (_bug(bug, summary) for bug in found)
    return CampaignReport(
        directory=home(),
        summary=summary,
        bugs=tuple(sorted(bugs, key=_rank)),
        doubts=tuple(_alike(sums.doubts)),
        oracles=tuple(oracles_of(sums.counters)),
        workloads=tuple(workloads_of(sums.counters)),
        features=features,
        reach=reach_besides(sums.counters, [each.feature.name for each in features]),
        samples=tuple(sums.samples),
        of_cases=True,
        edges=sums.edges.of(runs[-1].builds),
        runs=tuple(replace(run, new_bugs=new[run.number]) for run in sums.runs),
    )


def _rank(bug: ReportedBug) -> tuple[bool, int]:
    """Return the place of a bug in the report: known faults come last."""
    status = BugStatus.NEW if bug.over_runs is None else bug.over_runs.status
    return bug.status is Status.KNOWN, _ORDER.index(status)


def _bug(bug: BugHistory, summary: Summary) -> ReportedBug:
    command = f"{workdir.COMMAND} replay {bug.run}/{bug.finding.finding.fingerprint}"  # on the builds of that run
    return reported_bug(Bug(bug.key, bug.findings), summary.known, lambda _: command, bug)


def _alike(doubts: Sequence[Doubts]) -> Iterator[Doubts]:
    """Yield the doubts of all runs, the most frequent ones first. Those stored are named with their campaign."""
    alike: dict[tuple[str, ...], list[Doubts]] = {}
    for each in doubts:
        alike.setdefault((each.oracle, each.generator, each.kind, each.reason), []).append(each)
    for found in sorted(alike.values(), key=lambda found: -sum(each.count for each in found)):
        states = Counter[DoubtState]()
        for each in found:
            states.update(each.states)
        yield replace(
            found[0],
            count=sum(each.count for each in found),
            stored=tuple(f"{each.first}/{name}" for each in found for name in each.stored),
            states=states_of(states),
            found=tuple(dict.fromkeys(name for each in found for name in each.found)),
            last=found[-1].last,
        )


def _reported(run: CampaignRun, part: CampaignReport) -> ReportedRun:
    """Return a run with its sums. Later runs may show that its bugs are not new, so these are not counted yet."""
    return ReportedRun(
        number=run.number,
        revision=run.revision,
        seed=run.plan.seed,
        seconds=run.seconds,
        cases=run.cases,
        statements=run.statements,
        shapes=part.plans.shapes,
        doubts=part.counters.of_kind("unstable") + part.counters.of_kind("inconclusive"),
        new_bugs=0,
        replays=len(run.replays),
        size=size_of_run(run),
        ended=run.ended,
        began=part.began,
    )
