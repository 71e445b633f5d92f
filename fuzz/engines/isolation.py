"""Engine: PostgreSQL's isolation specs, played by each build's own isolationtester under any settings.

A spec names steps of several sessions and permutations of them. What the tester prints of it is held against what it
prints on the other arm, since under other settings expected files would not hold. Rows of a result are sorted: their
order is the plan's affair.
"""

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from fuzz.errors import CaseError, ServerError
from fuzz.execution.modes import MODES
from fuzz.execution.serverlog import crash_of, deaths, split
from fuzz.servers import git
from fuzz.servers.arm import Arm
from fuzz.servers.recovery import await_connections
from fuzz.servers.settings import start_options
from oracles.mode import Mode, settings_of

CORE: Final = "src/test/isolation"
_PLACES: Final = (CORE, "contrib", "src/test/modules")
SETTINGS: Final = {"wal_level": "logical", "logical_decoding_work_mem": "64kB"}  # as test_decoding's suite has it
DATABASE: Final = "isolation_regression"  # as the suite has it
PERTURBED: Final = (
    *("plain", "small_memory", "hash_spilling", "merge_only", "loop_only", "no_loops", "indexes", "parallel"),
    *("partitionwise", "no_pruning", "prepared_generic", "hash_spilling+filter_forced"),
)
REPEATED: Final = 4  # times that both arms play again what differs
_STEP_SECONDS: Final = "60"  # that a step may hang until the tester cancels it
_SECONDS: Final = 900
_SPEC: Final = re.compile(r"(.+)/specs/([\w-]+)\.spec")
_LIBRARY: Final = re.compile(r"shared_module\('(\w+)'")
_MODES: Final = re.compile(r"^# pgduel: modes (\S+)$", re.MULTILINE)
_RULER: Final = re.compile(r"^-+(\+-+)*$")
_COUNT: Final = re.compile(r"^\(\d+ rows?\)$")


@dataclass(frozen=True, slots=True)
class Spec:
    """A spec to play, the modes whose settings its sessions have, joined by +, and the libraries of its module."""

    name: str
    text: str
    modes: str = "plain"
    libraries: tuple[str, ...] = ()

    @property
    def settings(self) -> tuple[Mode, ...]:
        """The modes."""
        return tuple(MODES[name] for name in self.modes.split("+"))


@dataclass(frozen=True, slots=True)
class Played:
    """What the tester printed, rows sorted, and the report of a crash, if there was any."""

    output: str
    crash: str = ""


def specs_of(tree: str) -> tuple[Spec, ...]:
    """Return the specs of a source tree, those of modules with the module's name in front. Raises CaseError."""
    listed = git.run("--git-dir", git.repository(), "ls-tree", "-r", "--name-only", tree, "--", *_PLACES).stdout
    places = [found.groups() for path in listed.decode().splitlines() if (found := _SPEC.fullmatch(path))]
    core = [_spec(tree, CORE, name) for directory, name in places if directory == CORE]
    if not core:
        raise CaseError(f"the source of the base has no {CORE}")
    return (*core, *(_spec(tree, directory, name) for directory, name in places if directory != CORE))


def _spec(tree: str, directory: str, name: str) -> Spec:
    text = git.show(tree, f"{directory}/specs/{name}.spec") or ""
    if directory == CORE:
        return Spec(name, text)
    libraries = _LIBRARY.findall(git.show(tree, f"{directory}/meson.build") or "")
    return Spec(f"{Path(directory).name}/{name}", text, libraries=tuple(libraries))


def read_spec(path: Path) -> Spec:
    """Return the spec in a file, with the modes that a reproducer names. Raises CaseError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CaseError(f"{path} cannot be read ({error})") from error
    found = _MODES.search(text)
    modes = found[1] if found else "plain"
    if unknown := [name for name in modes.split("+") if name not in MODES]:
        raise CaseError(f"{path}: no mode is called {unknown[0]!r}; there are: {', '.join(MODES)}")
    return Spec(path.stem, text, modes)


def reproducer(spec: Spec, said: Sequence[str]) -> str:
    """Return the text of a spec that says how it differs, and under which settings."""
    comments = [*said, "", *(f"settings: {name} = {value}" for name, value in settings_of(spec.settings).items())]
    without = _MODES.sub("", spec.text).lstrip("\n") if _MODES.search(spec.text) else spec.text
    return "\n".join([f"# pgduel: modes {spec.modes}", *(f"#   {line}".rstrip() for line in comments), "", without])


class Tester:
    """Plays specs on an arm, each in a new database."""

    def __init__(self, arm: Arm) -> None:
        """Look for the tester. Raises ServerError where the build has none."""
        self.arm = arm
        found = sorted((arm.build.prefix / "lib").glob("**/isolationtester"))
        if not found:
            raise ServerError(f"build {arm.build.key} has no isolationtester: have it built again (build --prune)")
        self._program = found[0]
        with closing(self._connection()) as connection:
            self._known = {name for (name,) in connection.execute("SELECT lower(name) FROM pg_settings")}

    def lacks(self, spec: Spec) -> bool:
        """Tell whether the build lacks what the spec is a test of."""
        built = self.arm.build.prefix / "lib" / "postgresql"
        return not all((built / f"{library}.so").exists() for library in spec.libraries)

    def _connection(self) -> psycopg.Connection[Any]:
        return psycopg.connect(**self.arm.cluster.connect_kwargs, autocommit=True)  # type: ignore[arg-type]

    def play(self, spec: Spec) -> Played:
        """Play a spec. Raises ServerError."""
        cluster = self.arm.cluster
        await_connections(cluster)
        self._renew()
        offset = cluster.log_size()
        output = self._run(spec)
        entries = split(cluster.log_since(offset))
        crashes = [crash_of(pid, entries, self.arm.build.bindir / "postgres") for pid in deaths(entries).lines]
        return Played(normalised(output), "\n".join(filter(None, crashes)))

    def _renew(self) -> None:
        name = sql.Identifier(DATABASE)
        with closing(self._connection()) as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))
            connection.execute(sql.SQL("CREATE DATABASE {}").format(name))

    def _run(self, spec: Spec) -> str:
        modes = [mode for mode in spec.settings if not mode.optional or self._knows(mode)]
        server = make_conninfo(
            host=str(self.arm.cluster.socket_dir),
            port=self.arm.cluster.port,
            user="postgres",
            dbname=DATABASE,
            options=start_options(settings_of(modes)),
        )
        environment = os.environ | self.arm.cluster.environment() | {"PG_TEST_TIMEOUT_DEFAULT": _STEP_SECONDS}
        try:
            done = subprocess.run(
                [self._program, server],
                input=spec.text.encode(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_SECONDS,
                env=environment,
            )
        except subprocess.TimeoutExpired as error:
            return f"{(error.stdout or b'').decode(errors='replace')}\nnot done after {_SECONDS} s"
        return done.stdout.decode(errors="replace")

    def _knows(self, mode: Mode) -> bool:
        return all(name.lower() in self._known for name, _ in mode.settings)


def normalised(output: str) -> str:
    """Return what the tester printed, with the rows of each result sorted."""
    return "\n".join(_sorted(output.splitlines()))


def _sorted(lines: Sequence[str]) -> Iterator[str]:
    rows: list[str] | None = None
    for line in lines:
        if rows is None:
            yield line
            rows = [] if _RULER.match(line) else None
        elif _COUNT.match(line):
            yield from sorted(rows)
            yield line
            rows = None
        else:
            rows.append(line)
    yield from rows or ()


def settled(reference: Sequence[str], suspect: Sequence[str]) -> bool:
    """Tell whether what both printed, each time that they played, shows that they differ: each agrees with itself."""
    return len(set(reference)) == 1 and len(set(suspect)) == 1 and reference[0] != suspect[0]
