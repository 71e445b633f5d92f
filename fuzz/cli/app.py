"""The Typer application of all commands, and functions that several commands need."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from fuzz import __version__
from fuzz.errors import PgduelError
from fuzz.report.console import Console

app = typer.Typer(
    help="Differential fuzzing of PostgreSQL: builds of one base run the same statements, oracles compare the results, "
    "and each difference becomes a script that shows it.\n\n"
    "Exit status: 0 no finding, 1 findings, 2 could not run or proved too little, 3 an oracle missed its canary.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

console = Console()


def say(line: str) -> None:
    """Print one line."""
    console.say(line)


def _print_version(*, wanted: bool) -> None:
    if wanted:
        say(f"pgduel {__version__}")
        raise typer.Exit


@app.callback()
def _pgduel(
    *,
    _version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Print the version, if wanted, before any command."""


def write_json(file: Path | None, data: Any) -> None:
    """Write a result to the file of --json, if there is one. Raises PgduelError."""
    if file is None:
        return
    try:
        # JSON escapes all control characters except DEL, and the file may be a terminal.
        file.write_text(json.dumps(data, indent=2).replace("\x7f", "\\u007f") + "\n")
    except OSError as error:
        raise PgduelError(f"cannot write {file} ({error.strerror}); give --json a writable file") from error


def write_files(directory: Path, files: Mapping[str, str]) -> None:
    """Write texts by relative path to files below a directory, and print their paths. Raises PgduelError."""
    for name, text in files.items():
        path = directory / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise PgduelError(f"cannot write {path} ({error.strerror}); give --into a writable directory") from error
        say(str(path))
