"""`pgduel test`: the project's own tests, by tox."""

import subprocess
import sys

import typer

from fuzz import workdir
from fuzz.cli.app import app


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def test(context: typer.Context) -> None:
    """Run the tests of pgduel itself: style, types, units, real servers, PostgreSQL's own suites, libFuzzer.

    All arguments are tox's: `pgduel test list`, `pgduel test -e lint,unit`, `pgduel test -e unit -- -k name`.
    """
    done = subprocess.run([sys.executable, "-m", "tox", *context.args], cwd=workdir.CHECKOUT)
    raise typer.Exit(done.returncode)
