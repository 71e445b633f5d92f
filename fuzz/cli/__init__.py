"""The `pgduel` command, one file a command. What the user can cause ends as one line and its exit status."""

import importlib
import sys

from fuzz.errors import PgduelError

COMMANDS = ("fuzz", "replay", "listing", "build", "shell", "bench", "doctor", "test")  # in the order --help has them


def main() -> None:
    """Run the command line and exit."""
    from fuzz.cli.app import app  # not at the top: worker processes import this module too, and need none of it

    for command in COMMANDS:
        importlib.import_module(f"fuzz.cli.{command}")
    try:
        app(prog_name="pgduel")
    except PgduelError as error:
        sys.stderr.write(f"pgduel: {error}\n")
        sys.exit(error.exit_code)
