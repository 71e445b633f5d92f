"""`pgduel test`: the project's own tests, by tox."""

import subprocess
import sys
from typing import Any

import typer
from typer.core import TyperCommand

from fuzz import workdir
from fuzz.cli.app import app


class _Verbatim(TyperCommand):
    """Passes its arguments on as they are; click would swallow the `--` that tox has to see."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args == ["--help"]:
            return super().parse_args(ctx, args)
        ctx.args = list(args)
        return []


@app.command(cls=_Verbatim)
def test(context: typer.Context) -> None:
    """Run the tests of pgduel itself: style, types, units, real servers, PostgreSQL's own suites, libFuzzer.

    All arguments are tox's: `pgduel test list`, `pgduel test -e lint,unit`, `pgduel test -e unit -- -k name`.
    """
    done = subprocess.run([sys.executable, "-m", "tox", *context.args], cwd=workdir.CHECKOUT)
    raise typer.Exit(done.returncode)
