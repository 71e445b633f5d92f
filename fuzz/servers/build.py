"""Build: a tree compiled in one flavor, installed once in a cache under a key of all its inputs."""

import filecmp
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock, Timeout

from fuzz import documents, workdir
from fuzz.documents import DocumentError
from fuzz.errors import BuildError, first_line
from fuzz.servers import Report
from fuzz.servers.compile import build_log, compile_file, compiled_files, compiler_version, meson_build, meson_objects
from fuzz.servers.edges.compiling import edges_digest
from fuzz.servers.flavor import FLAVORS, Flavor
from fuzz.servers.objects import workplace, workplace_home
from fuzz.servers.processes import runs_from
from fuzz.servers.trial_compiler import TrialCompiler

# All other features are off, so that the machine's libraries do not influence the build.
_OPTIONS = (
    "-Dauto_features=disabled",
    "-Dicu=enabled",
    "-Dreadline=enabled",
    "-Dtap_tests=disabled",
    "-Ddocs=disabled",
)
_RECIPE = 3  # raise it when the content of builds changes
_NOTE = "build.json"
_STRIP = ("strip", "--strip-all", "--remove-section=.note.gnu.build-id")


@dataclass(frozen=True, slots=True)
class Build:
    """An installed build. Only builds with equal `configure` are comparable."""

    key: str
    prefix: Path
    tree: str
    flavor: Flavor
    configure: tuple[str, ...]  # options of meson, compiler flags and the compiler
    version: str
    label: str = field(default="", compare=False)  # of the arm for which it was compiled; others may share it

    @property
    def bindir(self) -> Path:
        """Return the directory of postgres, initdb, psql ..."""
        return self.prefix / "bin"

    @property
    def source(self) -> Path:
        """Return the directory of the source during the compilation, which its debug information names."""
        return workplace_home((str(_RECIPE), *self.configure)) / "source"

    @property
    def library_path(self) -> dict[str, str]:
        """Return the environment in which isolationtester finds libpq, which its run path does not reach."""
        return {"LD_LIBRARY_PATH": str(self.prefix / "lib")}


@dataclass(frozen=True, slots=True)
class _Note:
    """The record of a complete build, in its directory. `fuzz/servers/doctor.py` reads it without this class."""

    version: str
    tree: str
    flavor: str
    configure: tuple[str, ...]
    prefix: str  # its original place: a copy elsewhere is no build
    label: str = ""  # notes of earlier versions have none
    seconds: int = 0  # duration of the compilation
    cached: int = 0  # files from the compiler's cache
    compiled: int = 0  # other files


def ensure_build(tree: str, flavor: Flavor, report: Report, *, label: str = "") -> Build:
    """Return the build of a tree, from the cache or by compiling it (minutes). Raises BuildError.

    `label` names the arm that needs it. A build that was killed starts again. Object files of a similar tree and ccache
    make that fast.
    """
    configure = _configure(flavor)
    home = _home(tree, configure)
    name = f"{label or tree[:12]} ({flavor.name})"
    with FileLock(f"{home}.lock"):
        found = _load(home)
        if found is not None:
            with suppress(PermissionError):  # another user's
                os.utime(home)
            return found
        _clear(home)
        report(f"compiling {name}")
        _compile(home, tree, flavor, configure, label, lambda line: report(f"compiling {name}: {line}"))
        made = _load(home)
    if made is None:
        raise BuildError(f"the build in {home} disappeared during the compilation; run the command again")
    return made


def find_build(tree: str, flavor: Flavor) -> Build | None:
    """Return the build of a tree if it is in the cache."""
    return _load(_home(tree, _configure(flavor)))


def build_by_key(key: str) -> Build | None:
    """Return the build with a key if it is in the cache."""
    return _load(workdir.builds() / key)


def last_use(key: str) -> float:
    """Return the time of the last `ensure_build` that returned the build, in seconds since 1970; 0 without one."""
    with suppress(FileNotFoundError):
        return (workdir.builds() / key).stat().st_mtime
    return 0.0


def build_key(tree: str, flavor: Flavor) -> str:
    """Return the key of the build of a tree, whether or not it is in the cache."""
    return _home(tree, _configure(flavor)).name


def _configure(flavor: Flavor) -> tuple[str, ...]:
    options = (*_OPTIONS, *flavor.options, flavor.compiler_flags, compiler_version(flavor.compiler))
    return (*options, f"edges {edges_digest()}") if flavor.counts_edges else options


def _home(tree: str, configure: tuple[str, ...]) -> Path:
    return workdir.builds() / hashlib.sha256("\0".join((str(_RECIPE), tree, *configure)).encode()).hexdigest()[:12]


def _clear(home: Path) -> None:
    """Delete the remains of a killed build. The caller holds the lock, so no other process uses them.

    Raises BuildError for a link, because its target belongs to another user.
    """
    if home.is_symlink():
        raise BuildError(
            f"{home} is a link to {home.resolve()}, but builds work only in their original place; remove it"
        )
    shutil.rmtree(home, ignore_errors=True)


def _load(home: Path) -> Build | None:
    """Return the build in a directory, if it is complete and in its original place. A link may lead to that place."""
    try:
        note = documents.loads((home / _NOTE).read_text(), _Note)
    except (OSError, UnicodeDecodeError, DocumentError):
        return None
    if Path(note.prefix).resolve() != (home / "install").resolve() or note.flavor not in FLAVORS:
        return None
    flavor = FLAVORS[note.flavor]
    return Build(home.name, Path(note.prefix), note.tree, flavor, note.configure, note.version, note.label)


def _compile(home: Path, tree: str, flavor: Flavor, configure: tuple[str, ...], label: str, report: Report) -> None:
    free = shutil.disk_usage(workdir.builds()).free
    if free < flavor.space:
        raise BuildError(
            f"a build in flavor {flavor.name} needs {flavor.space >> 20} MB in {workdir.builds()}, "
            f"where {free >> 20} MB are free; make room (pgduel build --prune) or set PGDUEL_HOME"
        )
    started = time.monotonic()
    home.mkdir()
    with workplace(tree, (str(_RECIPE), *configure)) as place:
        version = meson_build(place, home, (*_OPTIONS, *flavor.options), flavor, report)
        cached, compiled = compiled_files(place)
    seconds = round(time.monotonic() - started)
    note = _Note(version, tree, flavor.name, configure, str(home / "install"), label, seconds, cached, compiled)
    draft = home / f"{_NOTE}.new"
    draft.write_text(documents.dumps(note))
    os.replace(draft, home / _NOTE)


@contextmanager
def trial_compiler(build: Build, report: Report) -> Iterator[TrialCompiler]:
    """Yield a compiler of single changed files of a build, with object files of its own. Raises BuildError."""
    home = workdir.builds() / f"trial-{build.key}"
    with FileLock(f"{home}.lock"):
        _clear(home)
        home.mkdir()
        try:
            with workplace(build.tree, (str(_RECIPE), *build.configure)) as place:
                meson_objects(place, home, (*_OPTIONS, *build.flavor.options), build.flavor, report)
                compiled_files(place)
            yield TrialCompiler(home)
        finally:
            _clear(home)


def discard_build(tree: str, flavor: Flavor) -> None:
    """Delete the build of a tree and its log, also after a failure. No program of it may run."""
    home = _home(tree, _configure(flavor))
    with FileLock(f"{home}.lock"):
        shutil.rmtree(home, ignore_errors=True)
    build_log(home.name).unlink(missing_ok=True)


def list_builds() -> tuple[Build, ...]:
    """Return all complete builds, oldest first."""
    found = [build for home in workdir.builds().iterdir() if (build := _load(home)) is not None]
    return tuple(sorted(found, key=lambda build: ((workdir.builds() / build.key / _NOTE).stat().st_mtime, build.key)))


def prune_builds(keep: int = 0) -> tuple[Build, ...]:
    """Delete all but the newest `keep` builds, object files, and remains of killed builds. Return the deleted builds.

    Builds in progress, and builds whose programs run, stay.
    """
    complete = list_builds()
    kept = {build.key for build in complete[len(complete) - keep :]} if keep else set()
    homes = [path for path in workdir.builds().iterdir() if path.is_dir() and path.name not in kept]
    deleted = {home.name for home in homes if _deleted(home)}
    return tuple(build for build in complete if build.key in deleted)


def delete_build(key: str) -> bool:
    """Delete a build, unless it is in progress or its programs run. Return whether it was deleted.

    The log of a build that failed stays, because the error names it.
    """
    home = workdir.builds() / key
    complete = _load(home) is not None
    if not home.is_dir() or not _deleted(home):
        return False
    if complete:
        build_log(key).unlink(missing_ok=True)
    return True


def _deleted(home: Path) -> bool:
    with suppress(Timeout), FileLock(f"{home}.lock", timeout=0):
        if home.is_dir() and not runs_from(home.resolve()):
            shutil.rmtree(home)
            return True
    return False


def have_equal_programs(one: Build, other: Build) -> bool:
    """Return whether two builds have the same programs and libraries, and their machine code and data are equal.

    Then no input distinguishes them. The reverse need not hold. Raises BuildError.
    """
    programs = _programs(one)
    return programs == _programs(other) and all(
        _are_equal(one.prefix / program, other.prefix / program) for program in programs
    )


def _programs(build: Build) -> list[Path]:
    found = (*build.prefix.glob("bin/*"), *build.prefix.glob("lib/**/*.so*"))
    return sorted(path.relative_to(build.prefix) for path in found if path.is_file() and not path.is_symlink())


def _are_equal(one: Path, other: Path) -> bool:
    if filecmp.cmp(one, other, shallow=False):
        return True
    with tempfile.TemporaryDirectory(prefix="pgduel-stripped-") as directory:
        Path(directory).chmod(0o755)  # the account of servers enters it
        return _stripped(one, Path(directory, "one")) == _stripped(other, Path(directory, "other"))


def _stripped(program: Path, product: Path) -> bytes:
    """Return a program without debug information, which has columns of the source. Raises BuildError."""
    done = compile_file([*_STRIP, str(program)], product)
    if done.returncode:
        raise BuildError(f"cannot compare {program}: {first_line(done.stderr)}")
    return product.read_bytes()
