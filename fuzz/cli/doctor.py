"""`pgduel doctor`: requirements that are met and missing."""

from dataclasses import asdict

import typer

from fuzz.cli import options
from fuzz.cli.app import app, say, write_json
from fuzz.servers.doctor import describe, examine, exit_code


@app.command()
def doctor(json_file: options.JsonFile = None) -> None:
    """Check all requirements: packages, compiler, cache, shared memory, builds.

    It changes nothing, but creates the directories of the cache.

    Exit status 2 if something is missing. Each missing item has a remedy in the line below it.
    """
    checks = examine()
    for check in checks:
        for line in describe(check):
            say(line)
    write_json(json_file, [asdict(check) for check in checks])
    raise typer.Exit(exit_code(checks))
