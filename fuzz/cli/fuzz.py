"""`pgduel fuzz`: a campaign of generated cases."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from fuzz.campaign.catalog import campaign_named, opened, require_store
from fuzz.campaign.database import home
from fuzz.campaign.edges import reached_edges
from fuzz.campaign.known import SHIPPED, read_known
from fuzz.campaign.plan import Plan
from fuzz.campaign.pool import processors
from fuzz.campaign.user_files import SUFFIX, FileKind, load, load_recorded, read_and_load, read_file
from fuzz.cli import options
from fuzz.cli.app import app, console, say, write_json
from fuzz.cli.run_campaign import run_campaign
from fuzz.engines.engine import EngineName
from fuzz.errors import CanaryMissed, CaseError
from fuzz.report.summary import print_summary
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.flavor import DEFAULT_FLAVOR, GUIDED, flavor_named
from fuzz.sources.source import Source, UserInput
from fuzz.sources.workloads import require_workload, workload_named

DEFAULT_MINUTES = 5.0
FIRST_SEED = 1  # of campaigns on the same builds
_PANEL = "What runs"


@app.command()
def fuzz(
    *,
    minutes: options.Minutes = None,
    cases: options.Cases = None,
    seed: options.Seed = None,
    generator: options.GeneratorOption = None,
    engine: options.EngineOption = EngineName.SEEDED,
    oracle: options.OracleOption = None,
    sql: options.Sql = None,
    stop_at_first: Annotated[
        bool, typer.Option("--stop-at-first", help="End with the first finding.", rich_help_panel=_PANEL)
    ] = False,
    even: Annotated[
        bool,
        typer.Option(
            "--even",
            help="Give all generators equally many cases. Without this option and --generator, most of the time is for "
            "those that enter the functions which the patches change.",
            rich_help_panel=_PANEL,
        ),
    ] = False,
    known: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="TOML file of known faults (docs/findings.md). Their findings are counted and named, but not reduced; "
            "they neither end a run with --stop-at-first nor change the exit status.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(
            metavar="CAMPAIGN",
            help="Continue an interrupted campaign: its number, or 'last'. It keeps its arms, seed and cases. "
            "--minutes and --cases may change; they count from the start of the campaign.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of processes that run cases.", rich_help_panel=_PANEL)
    ] = processors(),
    dask: options.DaskOption = None,
    base: options.Base = None,
    series: options.SeriesOption = None,
    repo: options.Repo = None,
    commits: options.Range = None,
    arm: options.ArmOption = None,
    flavor: options.FlavorOption = DEFAULT_FLAVOR,
    manifest: options.Manifest = None,
    setting: options.SetOption = None,
    json_file: options.JsonFile = None,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Print all counts at the end."),
    ] = False,
) -> None:
    """Run generated cases on all arms, and report differences.

    Without options, compare the patched server with master for 5 minutes, after set-up. Each finding is stored at once,
    then reduced to a script that shows it with psql alone. Ctrl-C ends the campaign and loses nothing.
    """
    arms = ArmOptions.given(base, series, repo, commits, arm, flavor, manifest, setting)
    if resume is None:
        given = options.given(sql)
        directory = None
        plan = new_plan(
            arms,
            given,
            seed=seed,
            generators=generator,
            oracles=oracle,
            minutes=minutes,
            cases=cases,
            known=known,
            stop_at_first=stop_at_first,
            even=even,
            engine=engine,
        )
    elif (
        any((seed is not None, generator, oracle, sql, stop_at_first, even, known, engine != EngineName.SEEDED))
        or arms != ArmOptions()
    ):
        raise CaseError("a resumed campaign keeps its options; give only --minutes or --cases")
    else:
        directory = campaign_named(resume)
        with opened(directory) as store:
            plan = store.plan.extended(minutes, cases)
        for line in load_recorded(plan.files):
            say(line)
        for name in plan.generators:
            require_workload(name, plan.given)
    require_store()
    new_seed = resume is None and seed is None
    summary = run_campaign(directory, plan, workers, console, dask=dask, new_seed=new_seed)
    edges = reached_edges(home() / summary.campaign)
    if not summary.missed:
        print_summary(console, summary, verbose=verbose)
        if edges:
            say(str(edges))
    write_json(json_file, summary.to_json() | {"edges": edges and edges.to_json()})
    if summary.missed:
        raise CanaryMissed(summary.missed)
    raise typer.Exit(summary.exit_code)


def new_plan(
    arms: ArmOptions,
    given: UserInput,
    *,
    seed: int | None = None,
    generators: Sequence[str] | None = None,
    oracles: Sequence[str] | None = None,
    minutes: float | None = None,
    cases: int | None = None,
    known: Path | None = None,
    stop_at_first: bool = False,
    even: bool = False,
    engine: EngineName = EngineName.SEEDED,
) -> Plan:
    """Return the plan of the options and defaults, with the user's files loaded. Raises CaseError."""
    generators = generators or ()
    files = {each: read_file(FileKind.GENERATOR, each) for each in generators if each.endswith(SUFFIX)}
    judges = read_and_load(FileKind.ORACLE, oracles or ())
    chosen = (name for each in generators for name in (load(files[each]) if each in files else (each,)))
    names = [require_workload(name, given) for name in chosen]
    if len(set(names)) < len(names):
        raise CaseError("a generator is named twice; give each --generator once")
    if engine is EngineName.LIBFUZZER:
        arms = steerable(arms, names, given)
    if minutes is None and cases is None:
        minutes = DEFAULT_MINUTES
    seed = FIRST_SEED if seed is None else seed
    faults = (*read_known(SHIPPED), *(() if known is None else read_known(known)))
    return Plan(
        seed,
        dict.fromkeys(names, 1),
        minutes,
        cases,
        stop_at_first,
        arms.with_third_arm(say),
        given,
        faults,
        files=(*files.values(), *judges),
        even=even,
        engine=engine,
    )


def steerable(arms: ArmOptions, names: Sequence[str], given: UserInput) -> ArmOptions:
    """Return the arms in a flavor that counts edges. Raises CaseError if libFuzzer cannot steer these workloads."""
    sources = [name for name in names if isinstance(workload_named(name), Source)]
    if sources or given.sql:
        raise CaseError(f"--engine libfuzzer steers generators, but {sources[0] if sources else '--sql'} is a source")
    if arms.flavor == DEFAULT_FLAVOR:
        return replace(arms, flavor=GUIDED)
    if not flavor_named(arms.flavor).counts_edges:
        raise CaseError(f"--engine libfuzzer needs flavor {GUIDED}, which it selects itself; leave --flavor out")
    return arms
