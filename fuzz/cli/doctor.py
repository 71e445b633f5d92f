"""`pgduel doctor`: what is there, what is missing, what to do."""

from dataclasses import asdict

import typer

from fuzz.cli import options
from fuzz.cli.app import app, say, write_json
from fuzz.servers.doctor import describe, examine, exit_code


@app.command()
def doctor(json_file: options.JsonFile = None) -> None:
    """Look at all that pgduel needs: packages, compiler, cache, shared memory, builds. Changes nothing.

    Exit status 2 if something is missing; each line then says what to do.
    """
    checks = examine()
    for check in checks:
        for line in describe(check):
            say(line)
    write_json(json_file, [asdict(check) for check in checks])
    raise typer.Exit(exit_code(checks))
