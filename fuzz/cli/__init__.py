"""The `pgduel` command, one file a command. What the user can cause ends as one line and its exit status."""

import importlib
import sys

from fuzz.errors import PgduelError

COMMANDS = {  # name -> module, in the order that --help has them
    "fuzz": "fuzz",
    "sqlsmith": "sqlsmith",
    "sqlancer": "sqlancer",
    "isolation": "isolation",
    "replay": "replay",
    "show": "show",
    "blame": "blame",
    "corpus": "corpus",
    "list": "listing",
    "build": "build",
    "shell": "shell",
    "bench": "bench",
    "doctor": "doctor",
    "test": "test",
}


def main() -> None:
    """Run the command line and exit."""
    from fuzz.cli.app import app  # not at the top: worker processes import this module too, and need none of it

    named = [COMMANDS[word] for word in sys.argv[1:2] if word in COMMANDS]
    for module in named or COMMANDS.values():  # some bring large libraries: only what is needed is imported
        importlib.import_module(f"fuzz.cli.{module}")
    if named:
        app.callback()(lambda: None)  # without it Typer takes the only command for the whole program
    try:
        app(prog_name="pgduel")
    except PgduelError as error:
        sys.stderr.write(f"pgduel: {error}\n")
        sys.exit(error.exit_code)
