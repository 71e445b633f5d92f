"""`pgduel campaign`: campaigns with a name, which run until they are stopped and continue later."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.table import Table

from fuzz import workdir
from fuzz.campaign.continuous import (
    RUN_MINUTES,
    BugHistory,
    Run,
    claimed,
    history,
    keep_plan,
    kept_plan,
    names,
    next_plan,
    process_of,
    require_name,
    runs_of,
    stop,
)
from fuzz.campaign.plan import Plan
from fuzz.campaign.pool import processors
from fuzz.campaign.stop import INTERRUPTED
from fuzz.campaign.user_files import load_recorded
from fuzz.cli import options
from fuzz.cli.app import app, console, say, write_json
from fuzz.cli.fuzz import new_plan
from fuzz.cli.run_campaign import run_campaign
from fuzz.errors import CanaryMissed
from fuzz.output import write_exactly
from fuzz.report.console import plain
from fuzz.report.summary import numbered, print_summary
from fuzz.report.terminal import clock
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.flavor import DEFAULT_FLAVOR

campaigns = typer.Typer(help="Campaigns with a name: they run until stopped, continue later, and keep a history.")
app.add_typer(campaigns, name="campaign")

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the campaign.", show_default=False)]

# SIGINT ends a run as Ctrl-C does: running cases end, and all is kept.
_UNIT: Final = """\
[Unit]
Description=pgduel campaign {name}

[Service]
{environment}ExecStart={command} campaign start {name}
KillMode=mixed
KillSignal=SIGINT
TimeoutStopSec=600
Restart=on-failure
RestartSec=60
SuccessExitStatus=1
Nice=10

[Install]
WantedBy=default.target
"""


@campaigns.command()
def start(
    *,
    name: Name,
    minutes: Annotated[
        float | None,
        typer.Option(min=0.01, metavar="N", help="Minutes until it ends, for example in CI. Default: no limit."),
    ] = None,
    run_minutes: Annotated[
        float,
        typer.Option(min=0.01, metavar="N", help="Minutes of each run. A run has servers and a store of its own."),
    ] = RUN_MINUTES,
    generator: options.GeneratorOption = None,
    oracle: options.OracleOption = None,
    sql: options.Sql = None,
    known: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TOML file of known faults.", show_default=False)
    ] = None,
    base: options.Base = None,
    series: options.SeriesOption = None,
    repo: options.Repo = None,
    commits: options.Range = None,
    arm: options.ArmOption = None,
    flavor: options.FlavorOption = DEFAULT_FLAVOR,
    manifest: options.Manifest = None,
    setting: options.SetOption = None,
) -> None:
    """Start a campaign, or continue it, until Ctrl-C, `stop` or --minutes. Without options, it keeps its own.

    It runs in the foreground. Each run is an ordinary campaign, which list, report, show and replay know by its number.
    Exit status 1 if this command found a bug that no earlier run had found.
    """
    arms = ArmOptions.given(base, series, repo, commits, arm, flavor, manifest, setting)
    with claimed(require_name(name)):
        if name not in names() or generator or oracle or sql or known or arms != ArmOptions():
            given = options.given(sql)
            plan = new_plan(arms, given, generators=generator, oracles=oracle, known=known)
            keep_plan(replace(plan, name=name))
        plan = kept_plan(name)
        for line in load_recorded(plan.files):
            say(line)
        raise typer.Exit(_run_until_stopped(plan, minutes, run_minutes))


def _run_until_stopped(plan: Plan, minutes: float | None, run_minutes: float) -> int:
    """Run until the time is up, or the user ends it. Return the exit status: 1 if a run found a new bug."""
    left = inf if minutes is None else minutes
    codes = {0}
    while left > 0:
        following = next_plan(plan, runs_of(plan.name), min(left, run_minutes))
        summary = run_campaign(None, following, processors(), console)
        if summary.missed:
            raise CanaryMissed(summary.missed)
        print_summary(console, summary)
        codes.add(summary.exit_code)
        left -= summary.counters.seconds / 60
        if summary.why == INTERRUPTED:
            break
    return 1 if 1 in codes else max(codes)


@campaigns.command()
def status(name: Name, json_file: options.JsonFile = None) -> None:
    """Print a campaign's runs and bugs: which are new, still there, or not seen again."""
    kept_plan(name)
    runs, process = runs_of(name), process_of(name)
    bugs = history(runs)
    say(f"campaign {name}: {f'runs, process {process}' if process else 'does not run'}")
    if runs:
        seconds, statements = sum(run.seconds for run in runs), sum(run.statements for run in runs)
        say(
            f"{numbered(len(runs), 'run')}, {clock(seconds)}, {sum(run.cases for run in runs)} cases, "
            f"{statements} statements judged; the last one is campaign {runs[-1].number}, seed {runs[-1].plan.seed}"
        )
    say(f"{numbered(len(bugs), 'bug')}{':' if bugs else ''}")
    if bugs:
        console.print_whole(_table(bugs))
    write_json(json_file, _json(name, runs, bugs, process))


@campaigns.command("stop")
def stop_(name: Name) -> None:
    """Have a running campaign end its run, and keep all. `start` continues it later."""
    kept_plan(name)
    stop(name)
    say(f"campaign {name} ends when its running cases have ended")


@campaigns.command()
def unit(name: Name) -> None:
    """Print a systemd unit that runs a campaign, for ~/.config/systemd/user/pgduel-NAME.service."""
    kept_plan(name)
    command = workdir.PROJECT / "pgduel" if workdir.IS_CHECKOUT else Path(shutil.which("pgduel") or "pgduel")
    kept = {key: value for key, value in sorted(os.environ.items()) if key.startswith("PGDUEL_")}
    environment = "".join(f"Environment={_quoted(f'{key}={value}')}\n" for key, value in kept.items())
    write_exactly(_UNIT.format(name=name, command=_quoted(str(command)), environment=environment))


def _quoted(text: str) -> str:
    """Return text as one word of a unit file (systemd.syntax(7))."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _table(bugs: Sequence[BugHistory]) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("bug", "status", "first", "last", "cases", "oracle", "summary", "to blame", "reproducer"):
        table.add_column(title, overflow="fold")
    for bug in bugs:
        found = bug.finding
        told = (found.finding.oracle, found.finding.summary, str(found.blame or ""), str(found.reproducer or ""))
        table.add_row(bug.key, bug.status, bug.first, bug.last, str(bug.cases), *map(plain, told))
    return table


def _json(name: str, runs: Sequence[Run], bugs: Sequence[BugHistory], process: int | None) -> dict[str, Any]:
    return {
        "campaign": name,
        "process": process,
        "runs": [
            {
                "campaign": run.number,
                "seed": run.plan.seed,
                "seconds": round(run.seconds, 1),
                "cases": run.cases,
                "statements_judged": run.statements,
                "ended": run.ended,
            }
            for run in runs
        ],
        "bugs": [
            {
                "bug": bug.key,
                "status": bug.status,
                "first": bug.first,
                "last": bug.last,
                "cases": bug.cases,
                "oracle": bug.finding.finding.oracle,
                "summary": bug.finding.finding.summary,
                "blame": str(bug.finding.blame or ""),
                "reproducer": None if bug.finding.reproducer is None else str(bug.finding.reproducer),
            }
            for bug in bugs
        ],
    }
