"""JSON Lines for other programs, such as jq or a database: one object a line, whose first key is its kind."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, ClassVar

from fuzz import __version__
from fuzz.campaign.counters import ProgressPoint
from fuzz.campaign.edges import Reached, ReachedEdges
from fuzz.output import visible
from fuzz.report.bench_result import BenchResult, BenchRow
from fuzz.report.campaign_report import CampaignReport, Doubts, OracleVerdicts, ReportedRun, WorkloadResult
from fuzz.report.coverage_result import AddedLine, AddedLines, CoverageResult
from fuzz.report.formats.format import Format
from fuzz.report.reported_bug import ReportedBug, Side
from fuzz.report.summary import KINDS

_Object = Mapping[str, Any]


class JsonLines(Format):
    """The headline, then each fact of the report that there are several of, as a line."""

    name: ClassVar[str] = "jsonl"
    suffix: ClassVar[str] = "jsonl"

    def text(self, report: CampaignReport) -> str:
        """Return the lines. Control characters of texts are escapes, as in all formats."""
        return "".join(f"{json.dumps(_visible(each))}\n" for each in _objects(report))


def _visible(value: Any) -> Any:
    """Return a value with all of its texts visible."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {visible(key): _visible(each) for key, each in value.items()}
    return [_visible(each) for each in value] if isinstance(value, list | tuple) else value


def _objects(report: CampaignReport) -> Iterator[_Object]:
    """Yield the objects of all lines. Those of one kind have the same keys."""
    yield _headline(report)
    yield from _of_kind("arm", (_arm(name, facts) for name, facts in report.arms.items()))
    yield from _of_kind("problem", ({"problem": line} for line in report.problems))
    yield from _of_kind("remark", ({"remark": line} for line in report.remarks))
    yield from _of_kind("bug", map(_bug, report.bugs))
    yield from _of_kind("doubt", map(_doubt, report.doubts))
    yield from _of_kind("oracle", map(_oracle, report.oracles))
    yield from _of_kind("workload", map(_workload, report.workloads))
    yield from _of_kind("branch", _branches(report))
    yield from _of_kind("path", ({"path": name, "statements": count} for name, count in report.reach))
    if report.edges is not None:
        yield from _of_kind("edges", _edges(report.edges))
    yield from _of_kind("sample", map(_sample, report.samples))
    yield from _of_kind("run", map(_run, report.runs))
    yield from _of_kind("ratio", (_ratio(bench, row) for bench in report.benches for row in bench.rows))
    yield from _of_kind("patch", (patch for coverage in report.coverages for patch in _patches(coverage)))
    yield from _of_kind("line", (line for coverage in report.coverages for line in _lines(coverage)))


def _of_kind(kind: str, objects: Iterable[_Object]) -> Iterator[_Object]:
    return ({"kind": kind, **each} for each in objects)


def _headline(report: CampaignReport) -> _Object:
    counters, planted = report.counters, report.summary.canaries
    return {
        "kind": "headline",
        "campaign": report.name,
        "headline": report.headline,
        "trusted": not report.problems,
        "ended": report.summary.why or None,
        "began_utc": _iso(report.began),
        "last_sample_utc": _iso(report.until),
        "elapsed_seconds": round(counters.seconds, 1),
        "client_cpu_seconds": round(counters.client_cpu, 1),
        "server_cpu_seconds": round(counters.server_cpu, 1),
        "seed": report.summary.seed,
        "bugs": len(report.bugs),
        "known_faults": len(report.bugs) - len(report.new_bugs),
        "fixed_bugs": sum(bug.is_fixed for bug in report.new_bugs),
        "cases": counters.cases.total(),
        "statements_judged": counters.statements_judged,
        "valid_share": round(counters.valid_share, 5),
        "unstable_verdicts": counters.of_kind("unstable"),
        "inconclusive_verdicts": counters.of_kind("inconclusive"),
        "plan_shapes": report.plans.shapes,
        "statements_explained": report.plans.explained,
        "planted_bugs": planted["planted"],
        "planted_bugs_found": planted["caught"],
        "planted_bugs_found_in_a_later_try": planted["retried"],
        "pgduel_version": __version__,
    }


def _iso(time: datetime | None) -> str | None:
    return None if time is None else f"{time:%Y-%m-%dT%H:%M:%SZ}"


def _arm(name: str, facts: Mapping[str, Any]) -> _Object:
    return {
        "arm": name,
        "postgresql_version": facts["base"]["version"],
        "base": facts["base"]["name"],
        "flavor": facts["flavor"],
        "build": facts["build"],
        "source_tree": facts.get("tree"),
        "patches": facts["series"],
        "settings": [*facts.get("settings", ()), *facts.get("server_settings", ())],
    }


def _bug(bug: ReportedBug) -> _Object:
    reference, suspect = bug.arms
    return {
        "bug": bug.key,
        "difference": bug.title,
        "oracle": bug.oracle,
        "origin": bug.origin,
        "status": bug.state,
        "reduction": bug.status,
        "known_fault": str(bug.known) if bug.known else None,
        "reference_arm": reference,
        "suspect_arm": suspect,
        "vote": bug.suspect or None,
        "shown_by_all_arms": bug.shown_by_all,
        "cases": bug.cases,
        "cases_by_finding": dict(bug.findings),
        "first_case": bug.case_id,
        "modes": bug.modes,
        "occurrence": bug.how_often or None,
        "to_blame": bug.blame or None,
        "patches_to_blame": bug.patches,
        "expected": _side(bug.sides[0]),
        "actual": _side(bug.sides[1]),
        "evidence": [asdict(each) for each in bug.evidence],
        "statements": bug.statements,
        "reproducer": bug.script,
        "reproducer_file": str(bug.file) if bug.file else None,
        "replay_command": bug.replay,
        "over_runs": _over_runs(bug),
    }


def _side(side: Side) -> _Object:
    return {"title": side.title, "text": side.text, "plan": [f"{'  ' * line.depth}{line.node}" for line in side.plan]}


def _over_runs(bug: ReportedBug) -> _Object | None:
    if bug.over_runs is None:
        return None
    return {
        "first_campaign": bug.over_runs.first,
        "last_campaign": bug.over_runs.last,
        "campaign_of_reduction": bug.over_runs.run,
        "revisions": [
            {
                "revision": each.revision,
                "status": each.status,
                "first_campaign": each.first,
                "last_campaign": each.last,
                "shown_by_all_arms": each.of_base,
            }
            for each in bug.over_runs.revisions
        ],
    }


def _doubt(doubt: Doubts) -> _Object:
    return {
        "oracle": doubt.oracle,
        "workload": doubt.generator,
        "verdict": doubt.kind,
        "reason": doubt.reason,
        "verdicts": doubt.count,
        "stored_doubts": doubt.stored,
        "stored_doubts_by_outcome": doubt.states,
        "findings_of_later_tries": doubt.found,
        "first_campaign": doubt.first,
        "last_campaign": doubt.last,
    }


def _oracle(judged: OracleVerdicts) -> _Object:
    verdicts = dict(zip(KINDS, judged.verdicts, strict=True))
    return {"oracle": judged.oracle, "statements_judged": judged.statements, "verdicts": verdicts}


def _workload(result: WorkloadResult) -> _Object:
    return {
        "workload": result.name,
        "cases": result.cases,
        "statements_judged": result.statements,
        "valid_share": round(result.valid_share, 5),
        "plan_shapes": result.plans.shapes,
        "plan_shapes_of_one_statement": result.plans.once,
        "statements_explained": result.plans.explained,
    }


def _branches(report: CampaignReport) -> Iterator[_Object]:
    """Yield the branches and counters of the features that a statement can take or raise."""
    for reached in report.features:
        feature = {"feature": reached.feature.name, "title": reached.feature.title}
        for join, counts in reached.rows:
            for branch, count in zip(reached.branches, counts, strict=True):
                if count is not None:
                    yield {**feature, "join": join or None, "branch": branch, "statements": count}
        for name, count in reached.counters:
            yield {**feature, "join": None, "branch": name, "statements": count}


def _edges(edges: ReachedEdges) -> Iterator[_Object]:
    """Yield the edges of the server, of the functions that patches change, and of each file."""
    yield _counts("server", None, edges.edges)
    yield _counts("changed functions", None, edges.changed)
    for file, counts in edges.files.items():
        yield _counts("file", file, counts)


def _counts(place: str, file: str | None, counts: Reached) -> _Object:
    return {"place": place, "file": file, "edges_reached": counts.reached, "edges_counted": counts.counted}


def _sample(sample: ProgressPoint) -> _Object:
    return {
        "cases": sample.cases,
        "at_utc": _iso(datetime.fromtimestamp(sample.at, UTC)),
        "elapsed_seconds": round(sample.seconds, 1),
        "statements_judged": sample.statements,
        "plan_shapes": sample.shapes,
        "findings": sample.findings,
        "unstable_verdicts": sample.unstable,
        "inconclusive_verdicts": sample.inconclusive,
        "memory_bytes": sample.memory,
        "disk_bytes": sample.disk,
        "open_files": sample.files,
        "edges_reached": sample.edges,
    }


def _run(run: ReportedRun) -> _Object:
    return {
        "campaign": run.number,
        "revision": run.revision,
        "seed": run.seed,
        "began_utc": _iso(run.began),
        "elapsed_seconds": round(run.seconds, 1),
        "cases": run.cases,
        "statements_judged": run.statements,
        "plan_shapes": run.shapes,
        "undecided_verdicts": run.doubts,
        "new_bugs": run.new_bugs,
        "replays": run.replays,
        "disk_bytes": run.size,
        "ended": run.ended or None,
    }


def _ratio(bench: BenchResult, row: BenchRow) -> _Object:
    against, arm = row.arms
    return {
        "bench": bench.bench,
        "case": row.case,
        "arm": arm,
        "against_arm": against,
        "ratio": row.ratio,
        "interval": [row.low, row.high],
        "ratio_of_mail": row.mail,
        "medians": row.medians,
        "unit_of_medians": bench.unit,
        "rounds": bench.rounds,
        "seconds_of_a_round": bench.seconds,
        "processors": bench.processors,
    }


def _patches(coverage: CoverageResult) -> Iterator[_Object]:
    for patch in coverage.patches:
        yield {"arm": coverage.arm, "patch": patch.patch, **_covered(patch.whole, with_suites=coverage.with_suites)}


def _covered(lines: AddedLines, *, with_suites: bool) -> _Object:
    return {
        **asdict(lines.covered),
        "lines_reached_with_suites": lines.covered_with_suites.lines_reached if with_suites else None,
        "branches_reached_with_suites": lines.covered_with_suites.branches_reached if with_suites else None,
    }


def _lines(coverage: CoverageResult) -> Iterator[_Object]:
    for patch in coverage.patches:
        for file, lines in patch.files.items():
            for line in lines.added:
                yield {"arm": coverage.arm, "patch": patch.patch, "file": file, **_line(line)}


def _line(line: AddedLine) -> _Object:
    return {
        "line": line.line,
        "text": line.text,
        "reach": line.reach,
        "executions": None if line.cases is None else line.cases.executions,
        "executions_of_branches": None if line.cases is None else line.cases.branches,
        "executions_by_suites": None if line.suites is None else line.suites.executions,
        "executions_of_branches_by_suites": None if line.suites is None else line.suites.branches,
    }
