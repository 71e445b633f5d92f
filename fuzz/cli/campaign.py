"""`pgduel campaign`: campaigns with a name, which run until they are stopped and continue later."""

import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.table import Table

from fuzz import store_url, workdir
from fuzz.campaign.bug_history import BugHistory, CampaignRun, history
from fuzz.campaign.catalog import require_store, warn
from fuzz.campaign.continuous import (
    RUN_MINUTES,
    claimed,
    discoveries_of,
    keep_plan,
    kept_plan,
    names,
    process_of,
    require_name,
    runner_of,
    runs_of,
    stop,
)
from fuzz.campaign.dask_pool import HTTP_ADDRESS, TCP_TIMEOUT, connected
from fuzz.campaign.database import home
from fuzz.campaign.disk import DISK, GB, size_of_campaign
from fuzz.campaign.notification import command_of
from fuzz.campaign.pool import processors
from fuzz.campaign.postgresql import has_password
from fuzz.campaign.user_files import load_recorded
from fuzz.cli import options
from fuzz.cli.app import app, console, say, write_files, write_json
from fuzz.cli.fuzz import new_plan
from fuzz.cli.report import Benches, Coverages, Formats, chosen_formats, with_measurements
from fuzz.cli.run_continuous import run_continuous
from fuzz.engines.engine import EngineName
from fuzz.errors import CaseError
from fuzz.output import write_exactly
from fuzz.report.console import plain
from fuzz.report.live import LivePage
from fuzz.report.runs_report import RunsReport
from fuzz.report.summary import numbered
from fuzz.report.terminal import clock
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.flavor import DEFAULT_FLAVOR

campaigns = typer.Typer(help="Campaigns with a name: they run until stopped, continue later, and keep a history.")
app.add_typer(campaigns, name="campaign")

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the campaign.", show_default=False)]
DaskOptions = Annotated[
    list[str] | None,
    typer.Argument(metavar="[-- OPTION...]", help="Options of Dask's own program.", show_default=False),
]

_LISTENING: Final = ("--host", "--interface", "--listen-address")  # Dask's options for the address of a worker

# SIGINT ends a run as Ctrl-C does: running cases end, and all is kept.
_UNIT: Final = """\
[Unit]
Description=pgduel campaign {name}

[Service]
{environment}ExecStart={command} campaign start {name}{arguments}
KillMode=mixed
KillSignal=SIGINT
TimeoutStopSec=600
Restart=on-failure
RestartSec=60
SuccessExitStatus=1 130
Nice=10

[Install]
WantedBy=default.target
"""


@campaigns.command()
def start(
    *,
    name: Name,
    minutes: Annotated[
        float | None, options.minutes_option("Minutes until it ends, for example in CI. Default: no limit.")
    ] = None,
    run_minutes: Annotated[
        float, options.minutes_option("Minutes of each run. A run has servers and a store of its own.")
    ] = RUN_MINUTES,
    disk: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            max=1e6,
            metavar="GB",
            help="Limit of the disk of all runs and builds of the campaign; details of old runs are deleted first. "
            f"The campaign keeps it. Default: {DISK:g}.",
            show_default=False,
        ),
    ] = None,
    notify: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Command that gets a line of JSON on stdin when a bug is new, fixed or back again, and when a run "
            "ends with an error. The campaign keeps it; '' ends it.",
            show_default=False,
        ),
    ] = None,
    generator: options.GeneratorOption = None,
    oracle: options.OracleOption = None,
    sql: options.Sql = None,
    known: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TOML file of known faults.", show_default=False)
    ] = None,
    dask: options.DaskOption = None,
    base: options.Base = None,
    series: options.SeriesOption = None,
    repo: options.Repo = None,
    commits: options.Range = None,
    arm: options.ArmOption = None,
    flavor: options.FlavorOption = DEFAULT_FLAVOR,
    manifest: options.Manifest = None,
    setting: options.SetOption = None,
    engine: options.EngineOption = EngineName.SEEDED,
) -> None:
    """Start a campaign, or continue it, until Ctrl-C, `stop` or --minutes. Without options, it keeps its own.

    It runs in the foreground. Each run is an ordinary campaign, whose number list, report, show and replay
    accept. Exit status 1 if a run showed a bug that is new, or back again.
    """
    arms = ArmOptions.given(base, series, repo, commits, arm, flavor, manifest, setting)
    called = None if notify is None else command_of(notify)
    with claimed(require_name(name)):
        given_options = any((generator, oracle, sql, known, arms != ArmOptions(), engine != EngineName.SEEDED))
        new_options = given_options or name not in names()
        former = kept_plan(name) if name in names() else None
        if former is None and not given_options and runs_of(name):
            raise CaseError(f"another machine has the options of campaign {name}; give them here, too")
        if former is None or new_options:
            given = options.given(sql)
            plan = new_plan(arms, given, generators=generator, oracles=oracle, known=known, engine=engine)
        else:
            plan = former
        if former is not None:
            disk, called = disk or former.disk, former.notify if called is None else called
        keep_plan(replace(plan, name=name, disk=disk, notify=called or ()))
        plan = kept_plan(name)
        for line in load_recorded(plan.files):
            say(line)
        require_store()
        raise typer.Exit(run_continuous(plan, minutes, run_minutes, dask=dask, new_options=new_options))


@campaigns.command()
def status(name: Name, json_file: options.JsonFile = None) -> None:
    """Print a campaign's runs and bugs: which are new, still there, fixed, back again, or not seen again."""
    plan = kept_plan(name)
    runs, runner = runs_of(name, warn), runner_of(name)
    bugs = history(runs)
    say(f"campaign {name}: {f'runs, {runner}' if runner else 'does not run'}")
    if runs:
        seconds, statements = sum(run.seconds for run in runs), sum(run.statements for run in runs)
        say(
            f"{numbered(len(runs), 'run')}, {clock(seconds)}, {sum(run.cases for run in runs)} cases, "
            f"{statements} statements judged; the last one is campaign {runs[-1].number}, seed {runs[-1].plan.seed}, "
            f"revision {runs[-1].revision}"
        )
    say(f"{size_of_campaign(name, runs) / GB:.2f} of {plan.disk or DISK:g} GB on disk")
    say(f"{numbered(len(bugs), 'bug')}{':' if bugs else ''}")
    if bugs:
        console.print_whole(_table(bugs))
    if json_file is not None:  # its discoveries take a reading of the last run's counters
        write_json(json_file, _json(name, runs, bugs, process_of(name)))


@campaigns.command("stop")
def stop_(name: Name) -> None:
    """Have a running campaign end its run, and keep all. `start` continues it later."""
    kept_plan(name)
    stop(name)
    say(f"campaign {name} ends when its running cases have ended")


@campaigns.command()
def report(
    name: Name,
    formats: Formats = None,
    bench: Benches = None,
    coverage: Coverages = None,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File of the report. Default: print a single format, or write into the directory of campaigns.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Report all runs of a campaign: sums, bugs with their history, plots over all runs. It may be running."""
    chosen = chosen_formats(formats)
    if output is not None and len(chosen) > 1:
        raise CaseError("--output is one file, but --as names several formats; give one --as, or no --output")
    found = with_measurements(RunsReport(name).present(), bench, coverage)
    if output is not None:
        write_files(output.parent, {output.name: chosen[0].text(found)})
    elif len(chosen) == 1 and chosen[0].printed:
        write_exactly(chosen[0].text(found))
    else:
        write_files(home(), {f"pgduel-{name}.{each.suffix}": each.text(found) for each in chosen})


@campaigns.command()
def serve(name: Name) -> None:
    """Serve the page of all runs to a browser on this machine, renewed with each request, until Ctrl-C."""
    (page,) = chosen_formats(None)
    report = RunsReport(name)
    page.text(report.present())  # now, so that an error ends the command
    with LivePage(lambda: page.text(report.present())) as server:
        say(f"campaign {name}: {server.address}")
        with suppress(KeyboardInterrupt):
            server.serve_forever()


@campaigns.command()
def unit(name: Name, dask: options.DaskOption = None) -> None:
    """Print a systemd unit that runs a campaign, for ~/.config/systemd/user/pgduel-NAME.service."""
    kept_plan(name)
    command = workdir.PROJECT / "pgduel" if workdir.IS_CHECKOUT else Path(shutil.which("pgduel") or "pgduel")
    own = {key: value for key, value in os.environ.items() if _is_kept(key)} | store_url.variables()
    if has_password(store_url.store_url()):
        raise CaseError(f"the unit would show the password in {store_url.VARIABLE}; write it to ~/.pgpass instead")
    environment = "".join(f"Environment={_quoted(f'{key}={value}')}\n" for key, value in sorted(own.items()))
    arguments = "" if dask is None else f" --dask {_quoted(dask)}"
    write_exactly(_UNIT.format(name=name, command=_quoted(str(command)), arguments=arguments, environment=environment))


def _is_kept(variable: str) -> bool:
    """Return whether a unit keeps a variable: pgduel's own, those that name its directories, and libpq's files."""
    return variable.startswith("PGDUEL_") or variable in ("XDG_CACHE_HOME", "PGPASSFILE", "PGSERVICEFILE")


@campaigns.command()
def scheduler(own: DaskOptions = None) -> None:
    """Run a Dask scheduler for campaigns on many machines, until Ctrl-C. It prints its address."""
    _run_dask("dask_scheduler", "--no-dashboard", "--dashboard-address", HTTP_ADDRESS, *(own or ()))


@campaigns.command()
def worker(
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="Address of the scheduler.", show_default=False)],
    own: DaskOptions = None,
    *,
    workers: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of processes, each with servers of its own.")
    ] = processors(),
) -> None:
    """Run cases of campaigns with `--dask` on this machine, until Ctrl-C.

    It listens at the address by which this machine reaches the scheduler.
    """
    options.with_dask(address)
    if not any(word.startswith("--tls") for word in own or ()):
        with connected(address, 0):  # Dask prints pages if it cannot
            pass
    ours = ("--nworkers", str(workers), "--nthreads", "1", "--memory-limit", "0", *_listening(address, own or ()))
    _run_dask("dask_worker", address, *ours, "--no-dashboard", "--dashboard-address", HTTP_ADDRESS, *(own or ()))


def _listening(scheduler: str, own: Sequence[str]) -> tuple[str, ...]:
    """Return the options with which a worker does not listen on all interfaces. Raises PgduelError."""
    if any(word.partition("=")[0] in _LISTENING for word in own):
        return ()
    distributed: Any = import_module("distributed")  # not at the top, because Dask is not always installed
    try:
        own_address = distributed.utils.get_ip(distributed.comm.get_address_host(scheduler))
        return ("--host", distributed.comm.unparse_host_port(own_address))
    except (OSError, ValueError) as error:
        raise CaseError(f"cannot find {scheduler} ({error}); give the address that the scheduler printed") from error


def _run_dask(program: str, *arguments: str) -> None:
    """Replace this process by a program of Dask, which receives signals itself. Raises PgduelError."""
    options.with_dask(program)
    command = (sys.executable, "-P", "-m", f"distributed.cli.{program}", *arguments)
    settings = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": TCP_TIMEOUT}
    os.execve(sys.executable, command, settings | os.environ | {"PYTHONPATH": str(workdir.PROJECT)})


def _quoted(text: str) -> str:
    """Return text as one word of a unit file (systemd.syntax(7))."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _table(bugs: Sequence[BugHistory]) -> Table:
    table = Table(box=None, pad_edge=False)
    titles = ("bug", "status", "revisions", "first", "last", "cases", "oracle", "summary", "to blame", "reproducer")
    for title in titles:
        table.add_column(title, overflow="fold")
    for bug in bugs:
        found = bug.finding
        status, revisions = _status(bug), ", ".join(f"{each.status} {each.revision}" for each in bug.revisions)
        told = (found.finding.oracle, found.finding.summary, str(found.blame or ""), str(found.reproducer or ""))
        table.add_row(bug.key, status, revisions, bug.first, bug.last, str(bug.cases), *map(plain, told))
    return table


def _status(bug: BugHistory) -> str:
    return f"{bug.status}, in the base" if bug.of_base else bug.status


def _json(name: str, runs: Sequence[CampaignRun], bugs: Sequence[BugHistory], process: int | None) -> dict[str, Any]:
    return {
        "campaign": name,
        "process": process,
        "runs": [
            {
                "campaign": run.number,
                "seed": run.plan.seed,
                "revision": run.revision,
                "builds": dict(run.builds),
                "seconds": round(run.seconds, 1),
                "cases": run.cases,
                "statements_judged": run.statements,
                "ended": run.ended,
                "weights": dict(run.plan.generators),
            }
            for run in runs
        ],
        "discoveries": discoveries_of(runs).to_json(),
        "bugs": [bug.to_json() for bug in bugs],
    }
