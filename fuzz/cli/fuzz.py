"""`pgduel fuzz`: a campaign of generated cases."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from fuzz.campaign.catalog import campaign_named, opened
from fuzz.campaign.known import read_known
from fuzz.campaign.plan import Plan
from fuzz.campaign.pool import processors
from fuzz.cli import options
from fuzz.cli.app import app, console, write_json
from fuzz.cli.run_campaign import run_campaign
from fuzz.errors import CanaryMissed, CaseError
from fuzz.report.summary import print_summary
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.flavor import DEFAULT_FLAVOR
from fuzz.sources.context import UserInput
from fuzz.sources.workloads import require_workload

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
    sql: options.Sql = None,
    stop_at_first: Annotated[
        bool, typer.Option("--stop-at-first", help="End with the first finding.", rich_help_panel=_PANEL)
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
        directory, plan = (
            None,
            new_plan(seed, generator or (), minutes, cases, arms, given, known, stop_at_first=stop_at_first),
        )
    elif seed is not None or generator or sql or stop_at_first or known or arms != ArmOptions():
        raise CaseError("a resumed campaign keeps its options; give only --minutes or --cases")
    else:
        directory = campaign_named(resume)
        with opened(directory) as store:
            plan = store.plan.extended(minutes, cases)
        for name in plan.generators:
            require_workload(name, plan.given)
    summary = run_campaign(directory, plan, workers, console, new_seed=resume is None and seed is None)
    write_json(json_file, summary.to_json())
    if summary.missed:
        raise CanaryMissed(summary.missed)
    print_summary(console, summary, verbose=verbose)
    raise typer.Exit(summary.exit_code)


def new_plan(
    seed: int | None,
    generators: Sequence[str],
    minutes: float | None,
    cases: int | None,
    arms: ArmOptions,
    given: UserInput,
    known: Path | None,
    *,
    stop_at_first: bool,
) -> Plan:
    """Return the plan of the options and defaults. Raises CaseError."""
    names = [require_workload(name, given) for name in generators]
    if len(set(names)) < len(names):
        raise CaseError("a generator is named twice; give each --generator once")
    if minutes is None and cases is None:
        minutes = DEFAULT_MINUTES
    seed = FIRST_SEED if seed is None else seed
    faults = () if known is None else read_known(known)
    return Plan(seed, dict.fromkeys(names, 1), minutes, cases, stop_at_first, arms.with_referee(), given, faults)
