"""`pgduel bench fuzzers` and `pgduel bench reduction`: pgduel beside other fuzzers, and beside other reducers.

Fuzzers are pgduel's generators, SQLsmith and SQLancer, each on a server of the same build.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from fuzz import workdir
from fuzz.bench.bench import BenchError
from fuzz.bench.fuzzers import Figures, Fuzzer, lancer, measure, smith
from fuzz.bench.reduction.comparison import ReducerResult, comparison
from fuzz.bench.reduction.reducer import Reducer, Task, all_reducers
from fuzz.campaign.catalog import campaign_named, find_finding, opened, opened_new
from fuzz.campaign.known import SHIPPED, read_known
from fuzz.campaign.plan import Plan
from fuzz.campaign.pool import processors
from fuzz.campaign.stop import INTERRUPTED
from fuzz.cli import options
from fuzz.cli.app import console, say, write_json
from fuzz.cli.run_campaign import Processes, run
from fuzz.errors import CaseError
from fuzz.generators.few_rows import FewRows
from fuzz.generators.partitioned_joins import PartitionedJoins
from fuzz.generators.rescanned_queries import RescannedQueries
from fuzz.generators.set_operations import SetOperations
from fuzz.generators.window_frames import WindowFrames
from fuzz.generators.writing_ctes import WritingCtes
from fuzz.report.comparison_tables import comparisons_json, figures_json, print_comparisons, print_figures
from fuzz.report.terminal import Display, display
from fuzz.servers.arm import Arm, ArmSpec, open_arms
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.flavor import COVERAGE
from fuzz.sources.qpg import Qpg
from fuzz.sources.source import UserInput
from fuzz.sources.sqlancer.running import class_path
from fuzz.sources.sqlancer.source import SqLancer
from fuzz.sources.sqlsmith import SqlSmith
from fuzz.sources.typed.source import Typed
from fuzz.triage.findings import StoredFinding
from fuzz.triage.interestingness import oracle_of, sampled_by_name
from fuzz.triage.reproducer.reproducer import render

# Generators of queries of all kinds, and relative numbers of their cases: the number of injected bugs that each found
# before any other, in the 103 directed searches of tests/injected_bugs/search_times.jsonl. Those of partitions, COPY,
# foreign tables, indexes or concurrency are left out.
_OWN: Final = {
    RescannedQueries.name: 8,
    FewRows.name: 6,
    Typed.name: 6,
    PartitionedJoins.name: 3,
    WritingCtes.name: 2,
    Qpg.name: 1,
    SetOperations.name: 1,
    WindowFrames.name: 1,
}


class FuzzerName(StrEnum):
    """A fuzzer of the comparison."""

    PGDUEL = "pgduel"
    SQLSMITH = "sqlsmith"
    SQLANCER = "sqlancer"


def fuzzers(
    *,
    fuzzer: Annotated[list[FuzzerName] | None, typer.Argument(help="Fuzzers. Default: all that are installed.")] = None,
    minutes: Annotated[float, options.minutes_option("Minutes for each fuzzer.", least=0.1)] = 10.0,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the cases, the scenes and the other fuzzers.")] = 1,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of all fuzzers, each with the next seed.")] = 1,
    jar: options.Jar = None,
    base: options.Base = None,
    series: options.SeriesOption = None,
    repo: options.Repo = None,
    commits: options.Range = None,
    arm: options.ArmOption = None,
    flavor: options.FlavorOption = COVERAGE,
    manifest: options.Manifest = None,
    setting: options.SetOption = None,
    json_file: options.JsonFile = None,
) -> None:
    """Run each fuzzer alone on a new server of the last arm, for the same time, and compare the results.

    The server counts for all fuzzers alike: statements over tables that succeed and fail, and shapes of plans. The
    flavor coverage adds the reached code of executor and planner, but makes all fuzzers slower. With several rounds,
    the table has means with 95 % confidence intervals.
    """
    wanted = ArmOptions.given(base, series, repo, commits, arm, flavor, manifest, setting)
    given = options.given(jar=jar)
    chosen = _chosen(fuzzer, given)
    faults = read_known(SHIPPED)
    interrupted = False
    with display(console, None) as shown:
        specs = wanted.specs(shown.progress)[-1:]
        measured: dict[str, list[Figures]] = {each: [] for each in chosen}
        try:
            for own, each in product(range(seed, seed + rounds), chosen):
                plan = Plan(own, _OWN, minutes, None, stop_at_first=False, arms=wanted, known=faults, reductions=0)
                run_alone = _fuzzer(each, plan, given, specs, shown)
                measured[each].append(measure(each, run_alone, specs[0], minutes * 60, shown.progress))
                write_json(json_file, _data(measured, seed))
        except KeyboardInterrupt:
            interrupted = True
    print_figures(console, {each: rows for each, rows in measured.items() if rows})
    seeds = f"seed {seed}" if rounds == 1 else f"seeds {seed} to {seed + rounds - 1}"
    say(f"{minutes:g} minutes each on {processors()} processors, arm {specs[0].name}, flavor {flavor}, {seeds}")
    if interrupted:
        raise BenchError("interrupted: the table has the finished measurements only")


def _data(measured: Mapping[str, Sequence[Figures]], seed: int) -> list[dict[str, Any]]:
    """Return the data of all measurements, with their seeds, for `--json`."""
    return [{"seed": own, **figures_json(each)} for rows in measured.values() for own, each in enumerate(rows, seed)]


def _chosen(names: Sequence[FuzzerName] | None, given: UserInput) -> list[FuzzerName]:
    """Return the named fuzzers, or all that can run, and print the others. Raises CaseError."""
    lacking = {FuzzerName.SQLSMITH: SqlSmith.lacks(given), FuzzerName.SQLANCER: SqLancer.lacks(given)}
    for each in names or ():
        if lacking.get(each):
            raise CaseError(f"{each} cannot run: {lacking[each]}")
    if names:
        return list(dict.fromkeys(names))
    for each, why in lacking.items():
        if why:
            say(f"{each} is left out: {why}")
    return [each for each in FuzzerName if not lacking.get(each)]


def _fuzzer(each: FuzzerName, plan: Plan, given: UserInput, specs: Sequence[ArmSpec], shown: Display) -> Fuzzer:
    seconds, workers = plan.limits.seconds or 0.0, processors()
    if each is FuzzerName.SQLSMITH:
        return smith(plan.seed, seconds, workers)
    if each is FuzzerName.SQLANCER:
        return lancer(class_path(given.sqlancer_jar), plan.seed, seconds, workers)

    def campaign(arm: Arm) -> int:
        with opened_new(shown.say) as store:
            store.begin(plan, options.facts_of(specs, [arm]))
            if run(store, plan, (arm,), Processes(workers), shown) == INTERRUPTED:
                raise KeyboardInterrupt
            return store.counters.compared.total()

    return campaign


def reduction(
    *,
    what: Annotated[
        list[str] | None,
        typer.Argument(metavar="WHAT", help="Campaigns, for all their findings, or findings, [CAMPAIGN/]FINGERPRINT."),
    ] = None,
    by: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Reducer (repeat the option). Default: all.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=1, max=1e6, help="Limit for each reducer and finding.")] = 300,
    json_file: options.JsonFile = None,
) -> None:
    """Reduce findings by pgduel, by picire on lines, by C-Vise on text, and by sqlreduce: sizes, tries and time.

    Each reducer starts with the original case and uses the same interestingness test on the same servers, one try at a
    time. Only sqlreduce has its own test: whether one statement raises one error. The results are tested again. Without
    WHAT, the findings of the last campaign are reduced.
    """
    reducers = _named(by)
    comparisons: dict[str, Sequence[ReducerResult]] = {}
    with display(console, None) as shown:
        for directory, findings in _chosen_findings(what or ["last"]).items():
            comparisons |= _comparisons(directory, findings, reducers, seconds, shown)
    print_comparisons(console, comparisons)
    write_json(json_file, comparisons_json(comparisons))


def _named(names: Sequence[str] | None) -> list[Reducer]:
    reducers = all_reducers()
    for name in names or ():
        if name not in reducers:
            raise CaseError(f"unknown reducer in --by {name}; give one of {', '.join(reducers)}")
    return [reducers[name] for name in names or reducers]


def _chosen_findings(what: Sequence[str]) -> dict[Path, dict[str, StoredFinding]]:
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
    shown: Display,
) -> dict[str, list[ReducerResult]]:
    """Compare the reducers on findings of one campaign, on its arms."""
    with opened(directory, shown.say) as store:
        given = store.plan.arms
        facts = store.arms
    comparisons = {}
    with open_arms(given.specs(shown.progress), shown.progress, allow_same_build=given.same_build_wanted) as arms:
        for fingerprint, as_found in findings.items():
            case = sampled_by_name(as_found.case, oracle_of(as_found.finding), alone=len(arms) == 1)
            found = replace(as_found, case=case)
            script = render(found.case, found.finding, facts, found.case_id, f"{workdir.COMMAND} replay {fingerprint}")
            name = f"{directory.name}/{fingerprint}, {found.finding.oracle}"
            comparisons[name] = comparison(Task(found, script, arms), reducers, seconds, shown.progress)
    return comparisons
