"""`pgduel bench engines`: a plain seed and libFuzzer, with the same generators and the same CPU time."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from itertools import product
from typing import Annotated

import typer

from fuzz import documents
from fuzz.bench.bench import BenchError
from fuzz.bench.engines import EngineFigures, figures_of, without_corpus
from fuzz.campaign.catalog import opened_new
from fuzz.campaign.direction.direction import directed_workloads, patches_between
from fuzz.campaign.edges import reached_edges
from fuzz.campaign.known import SHIPPED, read_known
from fuzz.campaign.plan import Plan
from fuzz.campaign.pool import processors
from fuzz.campaign.stop import INTERRUPTED
from fuzz.cli import options
from fuzz.cli.app import console, say, write_json
from fuzz.cli.run_campaign import Processes, run
from fuzz.engines.engine import EngineName
from fuzz.execution.source_database import SourceDatabase
from fuzz.generators.generator import all_generators
from fuzz.report.comparison_tables import print_engines
from fuzz.report.terminal import Display, display
from fuzz.servers.arm import Arm, open_arms
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.flavor import GUIDED
from fuzz.sources.source import UserInput


def engines(
    *,
    cpu_minutes: Annotated[
        float, options.minutes_option("Minutes of CPU time for each engine, of pgduel and the servers.", least=0.1)
    ] = 60.0,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of both engines.")] = 1,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of both engines, each with the next seed.")] = 1,
    base: options.Base = None,
    series: options.SeriesOption = None,
    repo: options.Repo = None,
    commits: options.Range = None,
    arm: options.ArmOption = None,
    manifest: options.Manifest = None,
    setting: options.SetOption = None,
    json_file: options.JsonFile = None,
) -> None:
    """Compare the engines: edges that they reach in the server, plan shapes, and findings.

    All generators run, and no sources, in flavor guided. libFuzzer begins without a corpus. No findings are reduced.
    With several rounds, the table has means with 95 % confidence intervals.
    """
    wanted = ArmOptions.given(base, series, repo, commits, arm, GUIDED, manifest, setting)
    faults = read_known(SHIPPED)
    plan = Plan(
        seed,
        {},
        None,
        None,
        stop_at_first=False,
        arms=wanted,
        known=faults,
        reductions=0,
        cpu_minutes=cpu_minutes,
    )
    measured: list[EngineFigures] = []
    interrupted = False
    with display(console, None) as shown:
        try:
            for own, engine in product(range(seed, seed + rounds), EngineName):
                measured.append(_measure(replace(plan, seed=own, engine=engine), shown))
                write_json(json_file, documents.to_data(measured))
        except KeyboardInterrupt:
            interrupted = True
    print_engines(console, measured)
    say(f"{cpu_minutes:g} minutes of CPU time each, {processors()} workers, seeds from {seed}")
    if interrupted:
        raise BenchError("interrupted: the table has the finished measurements only")


def _measure(plan: Plan, shown: Display) -> EngineFigures:
    """Run a campaign on new servers. Raises KeyboardInterrupt if the user ends it, and PgduelError."""
    specs = plan.arms.specs(shown.progress)
    same = plan.arms.same_build_wanted
    with (
        open_arms(specs, shown.progress, allow_same_build=same) as arms,
        without_corpus(plan.engine, plan.seed) as directory,
        opened_new(shown.say) as store,
    ):
        shown.say(f"{plan.engine}, seed {plan.seed}, in {directory}")
        store.begin(replace(plan, generators=_weights(arms)), options.facts_of(specs, arms))
        if run(store, store.plan, arms, Processes(processors()), shown) == INTERRUPTED:
            raise KeyboardInterrupt
        edges = reached_edges(store.directory)
        assert edges is not None  # the flavor counts them
        return figures_of(plan.engine, store, edges)


def _weights(arms: Sequence[Arm]) -> dict[str, int]:
    """Return the relative numbers of the generators' cases, as in a run without options."""
    with closing(SourceDatabase(arms[0], "engines", UserInput())) as target:
        direction, _ = directed_workloads(target, patches_between(arms), all_generators())
    return dict(direction.cases)
