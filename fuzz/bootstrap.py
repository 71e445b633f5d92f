"""Set-up: from python3 and nothing else to a running `pgduel` command. Standard library only."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fuzz import packages, workdir
from fuzz.environment import ensure_environment, environment_directory, is_complete
from fuzz.errors import PgduelError
from fuzz.servers import doctor

_HELP = """\
usage: ./pgduel COMMAND [ARGUMENTS]

  fuzz      duel the patched server against master, after setting up all that is needed
  test      run pgduel's own tests
  doctor    say what is there, what is missing, and what to do
  others:   bench, blame, build, corpus, isolation, list, replay, shell, show, sqlancer, sqlsmith

The full help of each command needs Python packages that cannot be installed yet:
"""


def main(arguments: list[str]) -> int:
    """Set up what the command needs, then become it. Returns an exit code only where it does not come to that."""
    try:
        if not _only_looks(arguments):
            python = set_up(packages.missing_packages(for_tests=arguments[0] == "test"))
        elif not is_complete(environment_directory()) and (answered := _look(arguments)) is not None:
            return answered
        else:
            python = ensure_environment()
    except PgduelError as error:
        print(f"pgduel: {error}", file=sys.stderr)  # noqa: T201
        return error.exit_code
    path = os.pathsep.join(filter(None, (str(workdir.CHECKOUT), os.environ.get("PYTHONPATH"))))
    # -P: a directory called fuzz where the user stands must not be taken for ours.
    os.execve(python, [str(python), "-P", "-m", "fuzz", *arguments], os.environ | {"PYTHONPATH": path})


def set_up(absent: list[packages.Package]) -> Path:
    """Return the Python of the environment, made beside the packages that it does not need. Raises PgduelError."""
    if not absent:
        return ensure_environment()
    packages.require_installable(absent)
    if first := [package for package in absent if package.first]:
        packages.install(first)
    others = [package for package in absent if not package.first]
    with ThreadPoolExecutor(1) as beside:
        installing = beside.submit(packages.install, others) if others else None
        try:
            python = ensure_environment()
        except PgduelError:  # a library that has to be compiled may lack the compiler yet
            python = None
        if installing is not None:
            installing.result()
    return python or ensure_environment()


def _asks_for_help(arguments: list[str]) -> bool:
    return not arguments or bool({"-h", "--help"} & set(arguments))


def _only_looks(arguments: list[str]) -> bool:
    """Tell whether the command is one that must not install system packages."""
    return _asks_for_help(arguments) or arguments[0] == "doctor"


def _look(arguments: list[str]) -> int | None:
    """Answer, as well as it goes, without Python packages; return an exit code, or None if they can be installed."""
    if arguments == ["doctor"]:
        return doctor.main()
    absent = [p for p in packages.missing_packages(for_tests=False) if p.name == "python3-venv"]
    if not absent:
        return None
    print(f"{_HELP}  {packages.install_line(absent)}")  # noqa: T201
    return 0 if _asks_for_help(arguments) else 2
