"""`pgduel doctor`: what is there, what is missing, what to do."""

from dataclasses import asdict

import typer

from fuzz.cli import options
from fuzz.cli.app import app, say, write_json
from fuzz.servers.doctor import State, examine


@app.command()
def doctor(json_file: options.JsonFile = None) -> None:
    """Look at all that pgduel needs: packages, compiler, cache, shared memory, builds. Changes nothing.

    Exit status 2 if something is missing; each line then says what to do.
    """
    checks = examine()
    for check in checks:
        say(f"{check.state:8}{check.name}: {check.found}")
        if check.remedy:
            say(f"{'':8}  -> {check.remedy}")
    write_json(json_file, [asdict(check) for check in checks])
    raise typer.Exit(2 if any(check.state is State.MISSING for check in checks) else 0)
