"""The imports of all commands, which the process of `tests.forking` does once for all that it forks."""

import contextlib
import importlib
import io

from fuzz.cli import COMMANDS
from fuzz.cli.app import app
from fuzz.generators.generator import all_generators
from fuzz.sources.source import all_sources
from oracles.model.oracle import all_oracles

for command in COMMANDS.values():
    importlib.import_module(f"fuzz.cli.{command}")
all_generators()
all_sources()
all_oracles()
with contextlib.redirect_stdout(io.StringIO()):
    app(["list", "--help"], standalone_mode=False)  # Typer imports much when it is first used
