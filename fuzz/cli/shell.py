"""`pgduel shell ARM`: psql on an arm's server."""

import signal
import subprocess
from contextlib import ExitStack
from dataclasses import replace
from typing import Annotated

import typer

from fuzz.cli import options
from fuzz.cli.app import app, console
from fuzz.errors import CaseError
from fuzz.report.terminal import display
from fuzz.servers.account import server_account
from fuzz.servers.arm import SHIPPED, Arm, open_arms
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.flavor import DEFAULT_FLAVOR


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def shell(
    *,
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="ARM", help="master, patched, or an arm named with --arm.")],
    base: options.Base = None,
    series: options.SeriesOption = None,
    repo: options.Repo = None,
    commits: options.Range = None,
    arm: options.ArmOption = None,
    flavor: options.FlavorOption = DEFAULT_FLAVOR,
    manifest: options.Manifest = None,
    setting: options.SetOption = None,
) -> None:
    """Compile and start one arm, run psql on it, and stop it. Further arguments are psql's.

    The server is new and empty: `pgduel shell patched < reproducer.sql`. psql has the rights of the servers, so it
    cannot open files of root.
    """
    wanted = ArmOptions.given(base, series, repo, commits, arm, flavor, manifest, setting)
    if not wanted.arms and not wanted.series and wanted.range is None and name in SHIPPED:
        wanted = replace(wanted, arms=(name,))
    with ExitStack() as stack:
        with display(console, None) as shown:
            specs = {spec.name: spec for spec in wanted.specs(shown.progress)}
            if name not in specs:
                raise CaseError(f"no arm is called {name!r}; give one of {', '.join(specs)}")
            (opened,) = stack.enter_context(open_arms([specs[name]], shown.progress))
        signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is for psql: it cancels a statement
        status = _psql(opened, context.args)
    raise typer.Exit(status)


def _psql(arm: Arm, arguments: list[str]) -> int:
    server = arm.cluster.connect_kwargs
    command = [str(arm.build.bindir / "psql"), "-X", "-h", str(server["host"]), "-p", str(server["port"])]
    command += ["-U", str(server["user"]), "-d", str(server["dbname"]), *arguments]
    terminal = server_account().options() | {"start_new_session": False}  # psql needs the user's terminal
    return subprocess.run(command, **terminal).returncode
