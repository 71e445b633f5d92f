"""`pgduel bench fuzzers`: pgduel's generators, SQLsmith and SQLancer, each on a server of the same build."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Final

import typer

from fuzz.bench.fuzzers import Fuzzer, lancer, measure, smith
from fuzz.campaign.catalog import new_campaign, opened
from fuzz.campaign.plan import Plan
from fuzz.campaign.pool import processors
from fuzz.cli import options
from fuzz.cli.app import console, say, write_json
from fuzz.cli.run_campaign import run
from fuzz.errors import CaseError
from fuzz.generators.partitioned_joins import PartitionedJoins
from fuzz.report.comparison_tables import figures_json, print_figures
from fuzz.report.terminal import Display, display
from fuzz.servers.arm import Arm, ArmSpec
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.flavor import COVERAGE
from fuzz.sources.context import UserInput
from fuzz.sources.qpg import Qpg
from fuzz.sources.sqlancer.running import class_path
from fuzz.sources.sqlancer.source import SqLancer
from fuzz.sources.sqlsmith import SqlSmith
from fuzz.sources.typed.source import Typed

_ORACLE: Final = "QUERY_PARTITIONING"  # SQLancer's oracle
# Generators that are not made for one feature; sources have statements from elsewhere.
_OWN: Final = (PartitionedJoins.name, Qpg.name, Typed.name)


class Entrant(StrEnum):
    """A fuzzer of the comparison."""

    PGDUEL = "pgduel"
    SQLSMITH = "sqlsmith"
    SQLANCER = "sqlancer"


def fuzzers(
    *,
    fuzzer: Annotated[list[Entrant] | None, typer.Argument(help="Fuzzers. Default: all that are installed.")] = None,
    minutes: Annotated[float, typer.Option(min=0.1, metavar="N", help="Minutes for each fuzzer.")] = 10.0,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the cases, the scenes and the other fuzzers.")] = 1,
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
    flavor coverage adds the reached code of executor and planner, but makes all fuzzers slower.
    """
    wanted = ArmOptions.given(base, series, repo, commits, arm, flavor, manifest, setting)
    given = options.given(jar=jar)
    chosen = _chosen(fuzzer, given)
    with display(console, None) as shown:
        specs = wanted.specs(shown.progress)[-1:]
        plan = Plan(seed, dict.fromkeys(_OWN, 1), minutes, None, stop_at_first=False, arms=wanted)
        entrants = {each: _fuzzer(each, plan, given, specs, shown) for each in chosen}
        measured = [measure(name, each, specs[0], minutes * 60, shown.progress) for name, each in entrants.items()]
    print_figures(console, measured)
    say(f"{minutes:g} minutes each on {processors()} processors, arm {specs[0].name}, flavor {flavor}, seed {seed}")
    write_json(json_file, [figures_json(each) for each in measured])


def _chosen(names: Sequence[Entrant] | None, given: UserInput) -> list[Entrant]:
    """Return the named fuzzers, or all that can run, and print the others. Raises CaseError."""
    lacking = {Entrant.SQLSMITH: SqlSmith.lacks(given), Entrant.SQLANCER: SqLancer.lacks(given)}
    for each in names or ():
        if lacking.get(each):
            raise CaseError(f"{each} cannot run: {lacking[each]}")
    if names:
        return list(dict.fromkeys(names))
    for each, why in lacking.items():
        if why:
            say(f"{each} is left out: {why}")
    return [each for each in Entrant if not lacking.get(each)]


def _fuzzer(each: Entrant, plan: Plan, given: UserInput, specs: Sequence[ArmSpec], shown: Display) -> Fuzzer:
    seconds, workers = plan.limits.seconds or 0.0, processors()
    if each is Entrant.SQLSMITH:
        return smith(plan.seed, seconds, workers)
    if each is Entrant.SQLANCER:
        return lancer(class_path(given.sqlancer_jar), _ORACLE, plan.seed, seconds, workers)

    def campaign(arm: Arm) -> int:
        with opened(new_campaign()) as store:
            store.begin(plan, options.facts_of(specs, [arm]))
            run(store, plan, (arm,), workers, shown)
            return store.counters.compared.total()

    return campaign
