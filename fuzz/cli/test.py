"""`pgduel test`: the project's own tests, by tox."""

import os
import re
import signal
import sys
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand

from fuzz import workdir
from fuzz.cli.app import app, say
from fuzz.errors import PgduelError
from fuzz.output import run_visibly
from fuzz.servers import git

PARTS: Final = 39  # number of parts of the long tests
_PART: Final = re.compile(r"[1-9]\d*/[1-9]\d*")


class _Verbatim(TyperCommand):
    """A command that passes unknown arguments on unchanged; click would remove the `--` that tox needs."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        super().parse_args(ctx, args[:at])
        ctx.args += args[at:]
        return []


@app.command("test", cls=_Verbatim, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def run_tests(
    context: typer.Context,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Run all tests, and one part of the long ones.")] = False,
    rest: Annotated[bool, typer.Option("--rest", help="Run the tests of --all that are not quick.")] = False,
    part: Annotated[
        str | None, typer.Option("--part", metavar="N/M", help="Part of the long tests. Default: set by the commit.")
    ] = None,
) -> None:
    """Run the tests of pgduel itself.

    Without options, in a quarter of an hour once the servers are built: style, types, units, each generator, source and
    oracle on real servers, a few injected bugs, PostgreSQL's own suites on the patched server. All other arguments are
    tox's: `pgduel test list`, `pgduel test -e lint,unit`, `pgduel test -e unit -- -k name`.
    """
    if not workdir.IS_CHECKOUT:
        raise PgduelError("the tests are not installed; clone pgduel's repository, and run ./pgduel test there")
    if not (everything or rest):
        if part:
            raise typer.BadParameter("--part is for --all and --rest; others take it as `-e long -- --part N/M`")
        raise typer.Exit(_tox(context.args))
    if part and not _PART.fullmatch(part):
        raise typer.BadParameter(f"cannot read --part {part}; give N/M, such as 3/{PARTS}")
    part, why = (part, "as requested") if part else part_of_commit()
    environments = ["rest"] if rest else ["lint", "types", "quick", "rest"]
    at = context.args.index("--") if "--" in context.args else len(context.args)
    own, passed = context.args[:at], context.args[at + 1 :]
    line = f"Of the long tests, this is part {part} ({why}). Again: ./pgduel test --rest --part {part}"
    say(line)
    status = _tox(["run", "-e", ",".join(environments), *own, "--", "--part", part, *passed])
    say(line)
    raise typer.Exit(status)


def _tox(arguments: list[str]) -> int:
    # virtualenv would sometimes fetch a newer pip without a check of its hash.
    variables = os.environ | {"VIRTUALENV_NO_PERIODIC_UPDATE": "1"}
    signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is for tox, which ends the tests and reports on them
    return run_visibly([sys.executable, "-m", "tox", *arguments], cwd=workdir.PROJECT, env=variables)


def part_of_commit() -> tuple[str, str]:
    """Return the part of the long tests for the checked out commit, and the reason for it.

    Successive commits take turns. If their number is unknown, as in a shallow clone, the commit's name decides.
    """
    counted = git.run("rev-list", "--count", "HEAD", cwd=workdir.PROJECT)
    if counted.returncode:
        return f"1/{PARTS}", "this is no git checkout"
    shallow, name = git.run("rev-parse", "--is-shallow-repository", "HEAD", cwd=workdir.PROJECT).stdout.decode().split()
    number = int(name, 16) if shallow == "true" else int(counted.stdout)
    return f"{number % PARTS + 1}/{PARTS}", f"by commit {name[:12]}"
