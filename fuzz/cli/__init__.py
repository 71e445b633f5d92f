"""The `pgduel` command, one file per command. Errors that users can cause end as one line and an exit status."""

import errno
import importlib
import sys
from itertools import pairwise
from typing import Any

from fuzz import packages, store_url, workdir
from fuzz.errors import PgduelError
from fuzz.output import discard_output, guard, note

COMMANDS = {  # name -> module, in the order that --help has them
    "fuzz": "fuzz",
    "campaign": "campaign",
    "sqlsmith": "sqlsmith",
    "sqlancer": "sqlancer",
    "isolation": "isolation",
    "harness": "harness",
    "coverage": "coverage",
    "mutate": "mutate",
    "report": "report",
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


# Errors that are not pgduel's, whatever file they concern, and what to do.
_OF_ENVIRONMENT = {
    errno.ENAMETOOLONG: "give a shorter name",
    errno.EACCES: "give pgduel the permission",
    errno.EPERM: "give pgduel the permission",
    errno.EROFS: "give pgduel a writable place",
    errno.ENOSPC: "make room there",
    errno.EDQUOT: "make room there",
}
_OF_OUTPUT = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # if they name no file
_WITHOUT_SERVERS = ("doctor", "list", "report", "test")


def main() -> None:
    """Run the command line and exit."""
    guard()
    store_url.hide()
    if not workdir.IS_CHECKOUT and _needs_programs(sys.argv[1:]):  # in a checkout, the launcher installs programs
        _require_programs()
    from fuzz.cli.app import app  # not at the top: worker processes import this module, but not the commands

    named = [COMMANDS[word] for word in sys.argv[1:2] if word in COMMANDS]
    for module in named or COMMANDS.values():  # some import large libraries
        importlib.import_module(f"fuzz.cli.{module}")
    if named:
        app.callback()(lambda: None)  # without it, Typer treats a single command as the whole program
    sys.exit(_exit_code(app))


def _needs_programs(arguments: list[str]) -> bool:
    """Return whether a command may compile or start servers."""
    helping = not arguments or bool({"-h", "--help", "--version"} & set(arguments))
    return not helping and arguments[0] not in _WITHOUT_SERVERS


def _require_values(words: list[str]) -> None:
    """Raise PgduelError for an empty value. As a path, it would be the working directory."""
    if words[:1] in (["shell"], ["test"]):  # they pass arguments on to other programs
        return
    for before, word in pairwise(("pgduel", *words)):
        option, equals, value = word.partition("=")
        if not word and not before.startswith("-"):
            raise PgduelError(f"the argument after {before} is empty; give a value, or leave it out")
        if not word or (option.startswith("--") and equals and not value):
            raise PgduelError(f"the value of {option or before} is empty; give one, or leave the option out")


def _require_programs() -> None:
    try:
        packages.require_programs()
    except PgduelError as error:
        note(str(error))
        sys.exit(error.exit_code)


def _error_in_file(error: Exception) -> str:
    """Return file, line and text of an error in a file of the user; "" for others."""
    module = sys.modules.get("fuzz.campaign.user_files")  # only commands that read such files import it
    return "" if module is None else str(module.error_in_file(error))


def _exit_code(app: Any) -> int:
    """Run the command and return its exit code. Print errors of pgduel and of Typer as one line."""
    try:
        _require_values(sys.argv[1:])
        return app(prog_name="pgduel", standalone_mode=False) or 0
    except PgduelError as error:
        note(str(error))
        return error.exit_code
    except OSError as error:
        if error.errno in _OF_OUTPUT and error.filename is None:
            discard_output()
            note(f"cannot write the output ({error.strerror}); make room there")
            return PgduelError.exit_code
        if error.errno not in _OF_ENVIRONMENT or error.filename is None:
            raise
        note(f"cannot use {error.filename} ({error.strerror}); {_OF_ENVIRONMENT[error.errno]}")
        return PgduelError.exit_code
    except Exception as error:
        message_of = getattr(error, "format_message", None)  # click's errors; Typer does not export their class
        if message_of is None:
            if line := _error_in_file(error):
                note(line)
                return PgduelError.exit_code
            raise
        context: Any = getattr(error, "ctx", None)
        if message := message_of():  # if there is none, the help was printed
            message = message.replace("Value error, ", "").rstrip(".")  # pydantic's words
            note(f"{message}; see {'pgduel' if context is None else context.command_path} --help")
        return int(getattr(error, "exit_code", 2))
