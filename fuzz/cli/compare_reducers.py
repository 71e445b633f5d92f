"""`pgduel bench reduction`: pgduel's reducer and others, compared on findings of campaigns."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from fuzz import workdir
from fuzz.bench.reduction.comparison import Outcome, comparison
from fuzz.bench.reduction.reducer import Reducer, Task, all_reducers
from fuzz.campaign.catalog import campaign_named, find_finding, opened
from fuzz.cli import options
from fuzz.cli.app import console, write_json
from fuzz.errors import CaseError
from fuzz.report.comparison_tables import comparisons_json, print_comparisons
from fuzz.report.terminal import display
from fuzz.servers import Report
from fuzz.servers.arm import open_arms
from fuzz.triage.interestingness import oracle_of, sampled_by_name
from fuzz.triage.reproducer.reproducer import render
from fuzz.triage.stored_finding import StoredFinding


def reduction(
    *,
    what: Annotated[
        list[str] | None,
        typer.Argument(metavar="WHAT", help="Campaigns, for all their findings, or findings, [CAMPAIGN/]FINGERPRINT."),
    ] = None,
    by: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Reducer (repeat the option). Default: all.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=1, help="Limit for each reducer and finding.")] = 300,
    json_file: options.JsonFile = None,
) -> None:
    """Reduce findings by pgduel, by picire on lines, by C-Vise on text, and by sqlreduce: sizes, tries and time.

    Each reducer starts with the original case and uses the same interestingness test on the same servers, one try at a
    time. Only sqlreduce has its own test: whether one statement raises one error. The results are tested again. Without
    WHAT, the findings of the last campaign are reduced.
    """
    reducers = _named(by)
    comparisons: dict[str, Sequence[Outcome]] = {}
    with display(console, None) as shown:
        for directory, findings in _chosen(what or ["last"]).items():
            comparisons |= _comparisons(directory, findings, reducers, seconds, shown.progress)
    print_comparisons(console, comparisons)
    write_json(json_file, comparisons_json(comparisons))


def _named(names: Sequence[str] | None) -> list[Reducer]:
    reducers = all_reducers()
    for name in names or ():
        if name not in reducers:
            raise CaseError(f"unknown reducer in --by {name}; give one of {', '.join(reducers)}")
    return [reducers[name] for name in names or reducers]


def _chosen(what: Sequence[str]) -> dict[Path, dict[str, StoredFinding]]:
    """Return campaign directories with their chosen findings by fingerprint. Raises CaseError."""
    chosen: dict[Path, dict[str, StoredFinding]] = {}
    for name in what:
        if name == "last" or (name.isdigit() and len(name) < 12):
            directory = campaign_named(name)
            with opened(directory) as store:
                found = store.findings()
        else:
            directory, one = find_finding(name)
            found = (one,)
        for each in found:
            chosen.setdefault(directory, {})[each.finding.fingerprint] = each
    if not chosen:
        raise CaseError(f"there is no finding to reduce in {', '.join(what)}; see pgduel list campaigns")
    return chosen


def _comparisons(
    directory: Path,
    findings: dict[str, StoredFinding],
    reducers: Sequence[Reducer],
    seconds: float,
    report: Report,
) -> dict[str, list[Outcome]]:
    """Compare the reducers on findings of one campaign, on its arms."""
    with opened(directory) as store:
        given = store.plan.arms
        facts = store.arms
    comparisons = {}
    with open_arms(given.specs(report), report, allow_same_build=given.same_build_wanted) as arms:
        for fingerprint, as_found in findings.items():
            case = sampled_by_name(as_found.case, oracle_of(as_found.finding), alone=len(arms) == 1)
            found = replace(as_found, case=case)
            script = render(found.case, found.finding, facts, found.case_id, f"{workdir.COMMAND} replay {fingerprint}")
            name = f"{directory.name}/{fingerprint}, {found.finding.oracle}"
            comparisons[name] = comparison(Task(found, script, arms), reducers, seconds, report)
    return comparisons
