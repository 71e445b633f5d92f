"""Set-up of a running `pgduel` command on a machine that has python3 alone. Standard library only."""

import os
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from fuzz import __version__, packages, store_url, workdir
from fuzz.environment import ensure_environment, ensure_extra, environment_directory, is_complete
from fuzz.errors import PgduelError
from fuzz.output import guard, note, tell
from fuzz.servers import doctor

_HELP = """\
usage: ./pgduel COMMAND [ARGUMENTS]

  fuzz      compare the patched server with master, after set-up of everything needed
  test      run pgduel's own tests
  doctor    list the requirements that are met and missing, with a remedy for each
  others:   bench, blame, build, campaign, corpus, coverage, harness, isolation, list,
            mutate, replay, report, shell, show, sqlancer, sqlsmith

The full help of a command needs Python packages, which need this first:
"""
# Commands for which set-up downloads the base.
_BUILDING = (
    *("bench", "build", "campaign", "coverage", "fuzz", "harness"),
    *("isolation", "mutate", "sqlancer", "sqlsmith", "test"),
)
_WITH_CLANG = ("coverage", "harness", "test")


def main(arguments: list[str]) -> int:
    """Set up the requirements of the command, then replace this process by it. Return an exit code if set-up fails."""
    guard()
    store_url.hide()
    try:
        if not _only_prints(arguments):
            python = set_up(packages.missing_packages(with_clang=_wants_clang(arguments)), arguments)
            if extra := extra_wanted(arguments):
                ensure_extra(extra)
        elif not is_complete(environment_directory()) and (answered := _print_without_packages(arguments)) is not None:
            return answered
        else:
            python = ensure_environment()
    except PgduelError as error:
        note(str(error))
        return error.exit_code
    path = os.pathsep.join(filter(None, (str(workdir.PROJECT), os.environ.get("PYTHONPATH"))))
    # -P: Python must not import a package `fuzz` from the user's working directory.
    os.execve(
        python, [str(python), "-P", "-m", "fuzz", *arguments], os.environ | {"PYTHONPATH": path} | store_url.variables()
    )


def set_up(absent: list[packages.Package], arguments: list[str]) -> Path:
    """Return the Python of the environment. Raises PgduelError.

    System packages, Python packages and the source that the command compiles are fetched concurrently.
    """
    if not absent and is_complete(environment_directory()):
        return ensure_environment()
    if absent:
        packages.require_installable(absent)
        packages.update_lists(absent)
    with ThreadPoolExecutor(2) as pool:
        if (source := source_wanted(arguments)) is not None:
            pool.submit(fetch, source)
        if first := [package for package in absent if package.first]:
            packages.install(first)
        others = [package for package in absent if not package.first]
        return _environment_during(pool.submit(packages.install, others) if others else None)


def _environment_during(installing: Future[None] | None) -> Path:
    """Return the Python of the environment when it and the system packages are installed. Raises PgduelError."""
    try:
        python = ensure_environment()
    except PgduelError:  # a library may need the compiler, which is not installed yet
        python = None
    if installing is not None:
        installing.result()
    return python or ensure_environment()


def source_wanted(arguments: list[str]) -> str | None:
    """Return the release that the command compiles, or None if its arguments name another base."""
    from fuzz.servers.release import DEFAULT, RELEASES

    words = _words(arguments)
    if words[0] not in _BUILDING or {"--repo", "--resume"} & set(words):
        return None
    base = _value_of(words, "--base", DEFAULT)
    return base if base in RELEASES else None


def _wants_clang(arguments: list[str]) -> bool:
    from fuzz.servers.flavor import COVERAGE, DEFAULT_FLAVOR, FLAVORS

    words = _words(arguments)
    default = COVERAGE if words[:2] == ["bench", "fuzzers"] else DEFAULT_FLAVOR
    flavor = FLAVORS.get(_value_of(words, "--flavor", default))
    by_clang = flavor is not None and flavor.compiler.startswith("clang")
    return by_clang or words[0] in _WITH_CLANG or _value_of(words, "--engine", "") == "libfuzzer"


def extra_wanted(arguments: list[str]) -> str | None:
    """Return the extra of pyproject.toml that the command needs: for a report's page, mutants, or many machines."""
    words = _words(arguments)
    if "--dask" in words or words[:2] in (["campaign", "worker"], ["campaign", "scheduler"]):
        return "dask"
    if words[0] == "mutate":
        return "mutate"
    if words[:2] == ["campaign", "serve"]:
        return "report"
    reports = words[0] == "report" or words[:2] == ["campaign", "report"]
    return "report" if reports and ("--as" not in words or "html" in words) else None


def _words(arguments: list[str]) -> list[str]:
    """Return the arguments, with --option=value as two words."""
    return [word for argument in arguments for word in argument.split("=", 1)]


def _value_of(words: list[str], option: str, default: str) -> str:
    return words[words.index(option) + 1] if option in words[:-1] else default


def fetch(source: str) -> None:
    """Download a release and store its tree. Errors are left to the command, which tries again."""
    from fuzz.servers.base import resolve_base

    with suppress(PgduelError, OSError):
        resolve_base(source, note)


def _is_help(arguments: list[str]) -> bool:
    return not arguments or bool({"-h", "--help", "--version"} & set(arguments))


def _only_prints(arguments: list[str]) -> bool:
    """Return whether the command must not install system packages."""
    return _is_help(arguments) or arguments[0] == "doctor"


def _print_without_packages(arguments: list[str]) -> int | None:
    """Print what can be printed without Python packages. Return an exit code, or None if they can be installed."""
    if arguments == ["doctor"]:
        return doctor.main()
    if arguments == ["--version"]:
        tell(f"pgduel {__version__}")
        return 0
    absent = [p for p in packages.missing_packages(with_clang=False) if p.name == "python3-venv"]
    if not absent:
        return None
    tell(f"{_HELP}  {packages.install_line(absent)}")
    return 0 if _is_help(arguments) else 2
