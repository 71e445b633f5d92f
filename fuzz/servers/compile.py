"""Compilation of a source tree with meson, ninja and ccache. Equal files compile once for all builds.

All programs run as the account of servers, because a patch may change build scripts, which must not run as root.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import IO, Final

from filelock import FileLock

from fuzz import workdir
from fuzz.errors import SHOWN, BuildError, CompileError, first_line, last_line
from fuzz.servers import Report
from fuzz.servers.account import Account, captured, server_account, within
from fuzz.servers.edges.compiling import edge_options
from fuzz.servers.flavor import Flavor
from fuzz.servers.objects import Workplace
from fuzz.servers.processes import kill_family
from fuzz.servers.timers import ended_after

_TOOLS = ("meson", "ninja", "ccache", "bison", "flex", "perl", "pkg-config")
_STATISTICS = "build/ccache.log"
_VERSION = re.compile(r"postgres \(PostgreSQL\) (\d\S*)")
_VERSION_SECONDS = 60
_PROGRESS = re.compile(r"^\[(\d+)/(\d+)\]")
_OVER_LIMIT = (
    *("out of memory", "bad_alloc", "MemoryError"),
    *("CPU time limit exceeded", "File size limit exceeded", "File too large"),
)
_ERRORS = ("error:", "undefined reference", *_OVER_LIMIT, "ERROR:", "FAILED:", "fatal:")  # the most informative first
_MESON_FAILED = "ninja: error: rebuilding 'build.ninja'"  # meson's output has the reason
_NO_SPACE = "No space left on device"
# Limits of each program. The largest file of PostgreSQL takes less than a minute and 1 GB, even with sanitizers.
_CPU_SECONDS: Final = 3600
_FILE_BYTES: Final = 4 << 30
_STEP_SECONDS: Final = 2 * 3600.0  # limit of all programs of a step, which takes some minutes
_OUTPUT: Final = 64 << 20  # characters of all programs
_LINE: Final = 1 << 16  # characters that are read at once
_KEPT_VARIABLES = ("PATH",)  # not CFLAGS and the like, which are not part of the key
# Of programs in bin, and of libraries in lib/postgresql, to lib. All of it is in the installation.
_RUN_PATH = "-Wl,-rpath,$ORIGIN/../lib:$ORIGIN/.."


@cache
def compiler_version(compiler: str) -> str:
    """Return a compiler's name and version. Raises BuildError with the names of all missing tools."""
    missing = [tool for tool in (compiler, *_TOOLS) if not shutil.which(tool)]
    if missing:
        raise BuildError(
            f"cannot compile without {', '.join(missing)}: run {workdir.COMMAND} doctor to see what to install"
        )
    return subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


def meson_build(place: Workplace, home: Path, options: Sequence[str], flavor: Flavor, report: Report) -> str:
    """Compile a workplace's source and install it into home/install; return PostgreSQL's version.

    Raises CompileError if the source is the reason, else BuildError.

    All paths in compiler commands are relative to the build directory, so that ccache finds equal files anywhere.
    Installed files contain no path of `home`: programs find each other by relative paths.
    """
    account = server_account()
    account.require_entry(home)
    (home / "install").mkdir()
    account.give(home / "install")
    run = _runner(place, home, flavor, report)
    _configure(place, options, flavor, run)
    run("ninja", "-C", "build", "all", "testprep")
    run("meson", "install", "-C", "build", "--no-rebuild", "--quiet")
    run("ninja", "-C", "build", "install-test-files")
    return version_of(home / "install/bin/postgres", _environment(place.home, home, flavor, account))


def version_of(server: Path, environment: Mapping[str, str]) -> str:
    """Return PostgreSQL's version. Raises CompileError if the server does not print it."""
    try:
        shown = captured([server, "--version"], env=environment, timeout=_VERSION_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise CompileError("the new server does not run: postgres --version does not end") from error
    if shown.returncode:
        reason = first_line(shown.stderr or shown.stdout)[:SHOWN]
        raise CompileError(f"the new server does not run: {reason}")
    found = _VERSION.match(shown.stdout)
    if found is None:
        raise CompileError(
            f"the new server does not print its version, but {first_line(shown.stdout, 'nothing')[:SHOWN]!r}"
        )
    return found[1]


def meson_objects(place: Workplace, home: Path, options: Sequence[str], flavor: Flavor, report: Report) -> None:
    """Compile a workplace's source, and move it to home/source; copy its object files to home/build.

    Raises CompileError if the source is the reason, else BuildError.
    """
    account = server_account()
    account.require_entry(home)
    (home / "build").mkdir()
    account.give(home / "build")
    run = _runner(place, home, flavor, report)
    _configure(place, options, flavor, run)
    run("ninja", "-C", "build", "all")
    run("cp", "--archive", "--reflink=auto", "build/.", str(home / "build"))
    (place.home / "source").rename(home / "source")


def _runner(place: Workplace, home: Path, flavor: Flavor, report: Report) -> Callable[..., None]:
    """Return a function that runs a command in a workplace, for a build in `home`, with a new log."""
    build_log(home.name).unlink(missing_ok=True)
    environment = _environment(place.home, home, flavor, server_account())
    limits = {"cpu": _CPU_SECONDS, "fsize": _FILE_BYTES} | ({"as": flavor.memory} if flavor.memory else {})
    limiting = within(limits)  # a patch may include /dev/zero, or have a script that loops
    return lambda *command: run_step((*limiting, *command), place.home, environment, build_log(home.name), report)


def _configure(place: Workplace, options: Sequence[str], flavor: Flavor, run: Callable[..., None]) -> None:
    counting, counted = "", ""
    if flavor.counts_edges:
        counting, counted = edge_options(flavor.compiler, sanitized="-fsanitize=" in flavor.compiler_flags)
    if not place.configured:
        compiling = f"{flavor.compiler_flags} {counting}".strip()
        linking = f"{flavor.compiler_flags} {_RUN_PATH} {counted}".strip()
        flags = [f"-Dc_link_args={linking}", *([f"-Dc_args={compiling}"] if compiling else [])]
        run("meson", "setup", "build", "source", "--prefix=/install", "--libdir=lib", *options, *flags)


def build_log(key: str) -> Path:
    """Return the file with the compilers' output of a build."""
    return workdir.logs() / f"build-{key}.log"


def compile_file(command: list[str], product: Path, directory: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a compiler as the account of servers, in `directory`; if it succeeds, move its output to `product`.

    `-o` is added to the command. The account needs a writable directory, and root must not write there.
    """
    account = server_account()
    with tempfile.TemporaryDirectory(prefix="compiling-", dir=product.parent) as temporary:
        Path(temporary).chmod(0o755)
        made = account.make_private(Path(temporary, "out")) / product.name
        whole = [*command, "-o", str(made)]
        done = subprocess.run(whole, cwd=directory, capture_output=True, text=True, **account.options())
        if not done.returncode:
            with account.file_access():
                content = made.read_bytes()
            draft = Path(temporary, product.name)
            draft.write_bytes(content)
            draft.chmod(0o755)
            draft.replace(product)
    return done


def first_fault(stderr: str) -> str:
    """Return the first line of a compiler's or linker's errors, else the last line."""
    faults = (line for line in stderr.splitlines() if "error" in line or "undefined" in line)
    return next(faults, last_line(stderr, "no output")).strip()


def compiled_files(place: Workplace) -> tuple[int, int]:
    """Return the number of files from the compiler's cache, and the number of compiled files, of a build.

    This ends the count: builds that start from these object files do not continue it.
    """
    statistics = place.home / _STATISTICS
    try:
        with server_account().file_access():
            events = statistics.read_text().split()
            statistics.unlink()
    except FileNotFoundError:
        return 0, 0
    return sum(event.endswith("_cache_hit") for event in events), events.count("cache_miss")


def _compiler_cache(account: Account) -> Path:
    """Return ccache's directory, which belongs to the account. A directory of another account is replaced."""
    path = workdir.compiler_cache()
    with FileLock(f"{path}.lock"):
        if path.stat().st_uid != account.uid:
            shutil.rmtree(path)
            account.make_private(path)
    return path


def _environment(place: Path, home: Path, flavor: Flavor, account: Account) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    caching = {
        "CCACHE_DIR": str(_compiler_cache(account)),
        "CCACHE_BASEDIR": str(place),
        "CCACHE_NOHASHDIR": "1",
        "CCACHE_DEPEND": "1",  # the compiler lists included files, so ccache need not preprocess
        "CCACHE_MAXSIZE": "5G",
        "CCACHE_STATSLOG": str(place / _STATISTICS),
        # Sources are unpacked for each build, so ccache would reject all headers as too new.
        "CCACHE_SLOPPINESS": "include_file_mtime,include_file_ctime",
    }
    own = {"HOME": str(place / "build"), "CC": f"ccache {flavor.compiler}", "DESTDIR": str(home), "LC_ALL": "C"}
    return kept | caching | flavor.environment | own


def run_step(command: Sequence[str], place: Path, environment: Mapping[str, str], log: Path, report: Report) -> None:
    """Run one step as the account of servers, with its output in the log and its progress in `report`.

    Raises BuildError.
    """
    with (
        log.open("a") as output,
        subprocess.Popen(
            command,
            cwd=place,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            **server_account().options(),
        ) as process,
    ):
        output.write(f"$ {' '.join(command)}\n")
        try:
            with ended_after(_STEP_SECONDS, partial(kill_family, process.pid)) as over:  # a script may wait for ever
                _follow(process.stdout or output, output, report)
        except BaseException:  # on an interrupt, the compilers must end too
            process.terminate()
            raise
    if over.is_set():
        raise CompileError(f"the source does not compile: it takes over {_STEP_SECONDS:g} s; see {log}")
    if process.returncode:
        raise _failure(log)


def _follow(output: IO[str], log: IO[str], report: Report) -> None:
    """Copy lines to the log, and report the progress in steps of 5%. Raises CompileError if they do not end."""
    shown = -1
    written = 0
    for line in iter(partial(output.readline, _LINE), ""):
        written += log.write(line)
        if written > _OUTPUT:
            raise CompileError(f"the source does not compile: its build prints over {_OUTPUT >> 20} MB; see {log.name}")
        progress = _PROGRESS.match(line)
        if progress and (share := 100 * int(progress[1]) // int(progress[2]) // 5 * 5) > shown:
            shown = share
            report(f"{share}%")


def _failure(log: Path) -> BuildError:
    text = log.read_text(errors="replace")
    if _NO_SPACE in text:
        room = "make room or set PGDUEL_HOME"
        return BuildError(f"no space left on the disk of {workdir.builds()} during a build; {room}")
    lines = [line for line in text.splitlines() if not line.startswith(_MESON_FAILED)]
    errors = (line for sign in _ERRORS for line in lines if sign in line)
    first = next(errors, lines[-1])
    return CompileError(f"the source does not compile: {first.strip()}; see {log}")
