"""The report of a campaign: all facts of its store that a report has. Each format shows this data."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Any

from fuzz import workdir
from fuzz.campaign.catalog import harness_replay, opened
from fuzz.campaign.counters import NO_PLANS, NOT_EXECUTED, Counters, Plans, ProgressPoint
from fuzz.campaign.doubt_outcome import DoubtState, found_in, state_of
from fuzz.campaign.edges import ReachedEdges, reached_edges
from fuzz.campaign.reach import EXPLAINED, FeatureReach, feature_reach
from fuzz.campaign.store import DoubtRecord, Store, harness_findings, spec_findings
from fuzz.report.bench_result import BenchResult
from fuzz.report.coverage_result import CoverageResult
from fuzz.report.reported_bug import ReportedBug, Status, reported_bug, reported_harness, reported_spec
from fuzz.report.summary import KINDS, Summary, numbered, summary_of
from fuzz.triage.findings import bugs
from oracles.model.case import generator_of


@dataclass(frozen=True, slots=True)
class OracleVerdicts:
    """An oracle's statements judged, and its verdicts by kind."""

    oracle: str
    statements: int
    verdicts: tuple[int, ...]  # in the order of KINDS


@dataclass(frozen=True, slots=True)
class WorkloadResult:
    """A generator or source, and the results of its cases."""

    name: str
    cases: int
    statements: int  # compared
    valid_share: float
    plans: Plans


@dataclass(frozen=True, slots=True)
class Doubts:
    """Verdicts that are unstable or inconclusive for one reason, and the outcomes of later tries of their cases."""

    oracle: str
    generator: str
    kind: str
    reason: str
    count: int
    stored: tuple[str, ...]  # names of those in the store
    states: Mapping[DoubtState, int]  # of those stored, in the order of DoubtState
    found: tuple[str, ...]  # fingerprints of findings that later tries showed
    first: str  # campaign, of all runs of a continuous campaign
    last: str

    @property
    def outcome(self) -> str:
        """Return the states with their numbers, as text; "" without a stored doubt."""
        return ", ".join(f"{count} {state}" for state, count in self.states.items())


def states_of(states: Counter[DoubtState]) -> Mapping[DoubtState, int]:
    """Return the states that occur, in the order of DoubtState."""
    return {state: states[state] for state in DoubtState if states[state]}


@dataclass(frozen=True, slots=True)
class ReportedRun:
    """A run of a continuous campaign."""

    number: str  # of its campaign
    revision: str
    seed: int
    seconds: float
    cases: int
    statements: int  # compared
    shapes: int  # distinct plan shapes
    doubts: int  # verdicts
    new_bugs: int
    replays: int  # of findings of earlier builds
    size: int  # bytes on disk
    ended: str  # reason; "" while it runs, or after it was killed
    began: datetime | None  # None if nothing is known of its progress


@dataclass(frozen=True, slots=True)
class CampaignReport:
    """A campaign's data, or the sums of all runs of a continuous campaign."""

    directory: Path
    summary: Summary
    bugs: tuple[ReportedBug, ...]  # new ones first
    doubts: tuple[Doubts, ...]  # the most frequent ones first
    oracles: tuple[OracleVerdicts, ...]
    workloads: tuple[WorkloadResult, ...]
    features: tuple[FeatureReach, ...]
    reach: tuple[tuple[str, int], ...]  # counters of no feature
    samples: tuple[ProgressPoint, ...]
    of_cases: bool  # False: only isolation specs or harnesses ran, for which nothing else is counted
    edges: ReachedEdges | None = None  # None if the builds count none
    benches: tuple[BenchResult, ...] = ()
    coverages: tuple[CoverageResult, ...] = ()
    runs: tuple[ReportedRun, ...] = ()  # of a continuous campaign, the oldest first

    @property
    def name(self) -> str:
        """Return the campaign's number, or the name of a continuous campaign."""
        return self.summary.campaign

    @property
    def counters(self) -> Counters:
        """Return the campaign's counters."""
        return self.summary.counters

    @property
    def arms(self) -> Mapping[str, Any]:
        """Return the arms' facts by name."""
        return self.summary.arms

    @property
    def new_bugs(self) -> list[ReportedBug]:
        """Return the bugs that are no known faults."""
        return [bug for bug in self.bugs if bug.status is not Status.KNOWN]

    @property
    def headline(self) -> str:
        """Return the result in one sentence."""
        if self.new_bugs:
            shared = sum(bug.shown_by_all for bug in self.new_bugs)
            alike = f", {shared} of them in all arms" if shared else ""
            fixed = sum(bug.is_fixed for bug in self.new_bugs)
            mended = f", {fixed} of them fixed" if fixed else ""
            return f"{numbered(len(self.new_bugs), 'distinct bug')}{alike}{mended}"
        return "No new bug" if self.bugs else "No bug"

    @property
    def problems(self) -> tuple[str, ...]:
        """Return the reasons not to trust the result, one line each; empty if it can be trusted."""
        planted, caught = self.summary.canaries["planted"], self.summary.canaries["caught"]
        found = [] if planted else ["no bug was planted to test the oracles"]
        if caught < planted:
            found.append(f"{planted - caught} of {planted} planted bugs were not found")
        if self.of_cases:
            found += self.summary.failed_checks
        return tuple(found)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return the limits of the result, one line each."""
        left_out = (f"{name} did not run: {why}" for name, why in self.summary.left_out.items())
        return (*self.summary.not_compared, *left_out)

    @property
    def began(self) -> datetime | None:
        """Return the time of the first sample."""
        return _time(self.samples[0]) if self.samples else None

    @property
    def until(self) -> datetime | None:
        """Return the time of the last sample."""
        return _time(self.samples[-1]) if self.samples else None

    def named(self, number: str) -> str:
        """Return a run by its campaign's number, with the day on which it began."""
        days = (f" ({run.began:%-d %B %Y})" for run in self.runs if run.number == number and run.began)
        return f"campaign {number}{next(days, '')}"

    @property
    def plans(self) -> Plans:
        """Return the diversity of plans of all generators."""
        counts = list(self.counters.shapes.values())
        return Plans(sum(counts), len(counts), counts.count(1))


def report_of(directory: Path) -> CampaignReport:
    """Return the report of the campaign in a directory. Raises StoreError, CaseError."""
    with opened(directory) as store:
        summary = summary_of(store)
        return _report(store, summary, _bugs(store, summary))


def report_without_bugs(directory: Path) -> CampaignReport:
    """Return the report of the campaign in a directory without its bugs. Raises StoreError, CaseError."""
    with opened(directory) as store:
        return _report(store, summary_of(store), ())


def _report(store: Store, summary: Summary, found: tuple[ReportedBug, ...]) -> CampaignReport:
    features = tuple(feature_reach(summary.counters.reach, feature) for feature in store.features)
    return CampaignReport(
        directory=store.directory,
        summary=summary,
        bugs=found,
        doubts=_doubts(store, summary.counters),
        oracles=tuple(oracles_of(summary.counters)),
        workloads=tuple(workloads_of(summary.counters)),
        features=features,
        reach=reach_besides(summary.counters, [each.feature.name for each in features]),
        samples=store.samples(),
        of_cases=next(iter(store.plan.generators), "") not in ("harness", "isolation"),
        edges=reached_edges(store.directory),
    )


def _bugs(store: Store, summary: Summary) -> tuple[ReportedBug, ...]:
    found = [reported_bug(bug, summary.known, summary.replay_command) for bug in bugs(summary.findings)]
    for each in spec_findings(store):
        command = f"{workdir.COMMAND} isolation {quote(str(each.spec))}{summary.replay_options}"
        found.append(reported_spec(each, summary.known, command))
    found += [
        reported_harness(each, summary.known, harness_replay(each, store.plan)) for each in harness_findings(store)
    ]
    return tuple(sorted(found, key=lambda bug: bug.status is Status.KNOWN))


def _doubts(store: Store, counters: Counters) -> tuple[Doubts, ...]:
    stored: dict[tuple[str, ...], list[DoubtRecord]] = {}
    for doubt in store.doubt_records():
        stored.setdefault((doubt.oracle, generator_of(doubt.case_id), doubt.kind, doubt.reason), []).append(doubt)
    return tuple(
        _alike(key, count, stored.get(key, ()), store.directory.name) for key, count in counters.reasons.most_common()
    )


def _alike(key: tuple[str, str, str, str], count: int, stored: Sequence[DoubtRecord], campaign: str) -> Doubts:
    return Doubts(
        *key,
        count=count,
        stored=tuple(doubt.name for doubt in stored),
        states=states_of(Counter(state_of(doubt.outcome) for doubt in stored)),
        found=tuple(dict.fromkeys(name for doubt in stored for name in found_in(doubt.outcome))),
        first=campaign,
        last=campaign,
    )


def oracles_of(counters: Counters) -> Sequence[OracleVerdicts]:
    """Return statements judged and verdicts of each oracle."""
    judged: Counter[str] = Counter()
    for (oracle, _), count in counters.judged_by.items():
        judged[oracle] += count
    verdicts: Counter[tuple[str, str]] = Counter()
    for (oracle, _, kind), count in counters.verdicts.items():
        verdicts[oracle, kind] += count
    names = sorted({oracle for oracle, _ in verdicts} - {NOT_EXECUTED})
    return [OracleVerdicts(name, judged[name], tuple(verdicts[name, kind] for kind in KINDS)) for name in names]


def workloads_of(counters: Counters) -> Sequence[WorkloadResult]:
    """Return the results of the cases of each generator and source."""
    plans = counters.all_plans()
    return [
        WorkloadResult(
            name,
            counters.cases[name],
            counters.judged[name],
            counters.valid[name] / counters.steps[name] if counters.steps[name] else 1.0,
            plans.get(name, NO_PLANS),
        )
        for name in sorted(counters.cases)
    ]


def reach_besides(counters: Counters, features: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Return the counters of no feature, without the number of explained statements."""
    left_out = {*features, EXPLAINED}
    return tuple(sorted((name, n) for name, n in counters.reach.items() if name.partition(".")[0] not in left_out))


def _time(sample: ProgressPoint) -> datetime:
    return datetime.fromtimestamp(sample.at, UTC)
