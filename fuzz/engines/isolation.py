"""Isolation specs of PostgreSQL, run by each build's own isolationtester under various settings.

A spec has steps of several sessions and permutations of them. The tester's outputs on the arms are compared with each
other, because expected files do not hold under other settings. Rows of a result are sorted, because their order depends
on the plan.
"""

import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from fuzz.errors import CaseError, ServerError, first_line
from fuzz.execution.exchanges import never
from fuzz.execution.modes import composed
from fuzz.execution.serverlog import Entry, crash_of, deaths, located_errors, split
from fuzz.output import visible_line
from fuzz.servers import git
from fuzz.servers.account import server_account
from fuzz.servers.arm import Arm
from fuzz.servers.cluster import await_connections
from fuzz.servers.modules import FAULT_INJECTOR, ensure_module
from fuzz.servers.settings import start_options
from oracles.crash import crash_origin
from oracles.internal_error import is_fault, origin_of
from oracles.model.feature import Feature
from oracles.model.finding import Finding, as_all_do, pairs_of
from oracles.model.mode import Mode, settings_of
from oracles.model.observation import Message
from oracles.model.oracle import Unstable

CORE: Final = "src/test/isolation"
_PLACES: Final = (CORE, "contrib", "src/test/modules")
SETTINGS: Final = {"wal_level": "logical", "logical_decoding_work_mem": "64kB"}  # as in test_decoding's suite
DATABASE: Final = "isolation_regression"  # as in the suite
PERTURBED: Final = (
    *("plain", "small_memory", "hash_spilling", "merge_only", "loop_only", "no_loops", "indexes", "parallel"),
    *("partitionwise", "no_pruning", "prepared_generic", "hash_spilling+features_forced"),
)
NAME: Final = "isolation"  # detector name in findings, like an oracle's
# The fault injector's action -> whether it is detected only by comparison with another arm.
FAULTS: Final = {"drop_row": True, "segv": False, "change_sqlstate": False}
REPEATED: Final = 4  # times that all arms repeat a spec with different outputs
RARE: Final = 30  # runs of all arms until a difference that occurred once only is a doubt
# Runs of all arms until a difference that occurred in some of them is a finding. A legal output that each run of either
# arm prints with a probability of p becomes one with p (1 - (1 - p)^29) (1 - p)^89, below 1 in 650 for each p.
STEADY: Final = 90
_LOGGED: Final = {"log_error_verbosity": "verbose"}
_STEP_SECONDS: Final = "60"  # seconds after which the tester cancels a step that hangs
_SECONDS: Final = 900
_DEATH_SECONDS: Final = 10.0
_EXIT_SECONDS: Final = 30.0
_END_SESSIONS: Final = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
_PAUSE: Final = 0.03
_LOST: Final = "server closed the connection unexpectedly"  # message of libpq
# Prefix of the server's reason if it ends the session on purpose.
_FATAL: Final = "FATAL:  "
_SPEC: Final = re.compile(r"(.+)/specs/([\w-]+)\.spec")
_LIBRARY: Final = re.compile(r"shared_module\('(\w+)'")
_MODES: Final = re.compile(r"^# pgduel: modes (\S+)$", re.MULTILINE)
_RULER: Final = re.compile(r"^-+(\+-+)*$")
_COUNT: Final = re.compile(r"^\(\d+ rows?\)$")


@dataclass(frozen=True, slots=True)
class Spec:
    """A spec, the modes whose settings its sessions get (names joined by +), and the libraries of its module."""

    name: str
    text: str
    modes: str = "plain"
    libraries: tuple[str, ...] = ()
    features: tuple[Feature, ...] = ()  # of the arms

    @property
    def settings(self) -> tuple[Mode, ...]:
        """Return the modes. Raises CaseError."""
        return composed(self.modes, self.features)


@dataclass(frozen=True, slots=True)
class SpecResult:
    """The tester's output with sorted rows, the report of a crash, if any, and internal errors by origin."""

    output: str
    crash: str = ""
    errors: Mapping[str, Message] = field(default_factory=dict)


def specs_of(tree: str) -> tuple[Spec, ...]:
    """Return the specs of a source tree. Specs of modules have the module's name as prefix. Raises CaseError."""
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
    try:
        composed(modes)
    except CaseError as error:
        raise CaseError(f"{path}: {error}") from error
    return Spec(path.stem, text, modes)


def reproducer(spec: Spec, about: Sequence[str]) -> str:
    """Return the text of a spec, with comments about the difference and its settings."""
    comments = [*about, "", *(f"settings: {name} = {value}" for name, value in settings_of(spec.settings).items())]
    without = _MODES.sub("", spec.text).lstrip("\n") if _MODES.search(spec.text) else spec.text
    head = [f"# pgduel: modes {spec.modes}", *(f"#   {visible_line(line)}".rstrip() for line in comments)]
    return "\n".join([*head, "", without])


@dataclass(frozen=True, slots=True)
class Judged:
    """The findings and doubts of a spec on all arms. A doubt is a difference that is not reproducible."""

    findings: tuple[Finding, ...] = ()
    doubts: tuple[Unstable, ...] = ()


# Planted faults act on the steps `read` and `divide`.
CANARY: Final = Spec(
    "canary",
    """\
setup { CREATE TABLE flock (n int, name text); INSERT INTO flock SELECT n, 'bird' FROM generate_series(1, 4) AS n; }
setup { CREATE VIEW canary AS TABLE flock; }
teardown { DROP VIEW canary; DROP TABLE flock; }
session reader
step begin { BEGIN ISOLATION LEVEL REPEATABLE READ; }
step count { SELECT count(*) FROM flock; }
step read { SELECT n, name FROM canary; }
step commit { COMMIT; }
step divide { SELECT 1 / (n - 2) FROM canary; }
session writer
step rename { UPDATE flock SET name = 'other bird'; }
step remove { DELETE FROM flock WHERE n = 1; }
permutation begin count rename read remove commit divide
""",
)


class Tester:
    """A runner of specs on an arm. Each spec gets a new database."""

    def __init__(self, arm: Arm, fault: str = "") -> None:
        """Locate the tester. All sessions run under `fault`, an action of the fault injector, if given.

        Raises ServerError if the build has no tester, BuildError.
        """
        self.arm = arm
        self._fault = {}
        if fault:
            ensure_module(arm.build, FAULT_INJECTOR)
            self._fault = {"session_preload_libraries": FAULT_INJECTOR, f"{FAULT_INJECTOR}.action": fault}
        found = sorted((arm.build.prefix / "lib").glob("**/isolationtester"))
        if not found:
            raise ServerError(f"build {arm.build.key} has no isolationtester: have it built again (build --prune)")
        self._program = found[0]
        with closing(self._connection()) as connection:
            self._known = {name for (name,) in connection.execute("SELECT lower(name) FROM pg_settings")}

    def lacks(self, spec: Spec) -> bool:
        """Return whether the build lacks the module that the spec tests."""
        built = self.arm.build.prefix / "lib" / "postgresql"
        return not all((built / f"{library}.so").exists() for library in spec.libraries)

    def _connection(self) -> psycopg.Connection[Any]:
        return psycopg.connect(**self.arm.cluster.connect_kwargs, autocommit=True)  # type: ignore[arg-type]

    def execute(self, spec: Spec) -> SpecResult:
        """Run a spec. Raises ServerError."""
        cluster = self.arm.cluster
        await_connections(cluster)
        self._renew()
        offset = cluster.log_size()
        output = self._run(spec)
        entries = split(cluster.log_since(offset))
        if _LOST in output and _FATAL not in output:
            entries = self._after_death(offset)
        crashes = [crash_of(pid, entries, self.arm.build.bindir / "postgres") for pid in deaths(entries).lines]
        errors = {origin_of(error): error for error in located_errors(entries) if is_fault(error)}
        return SpecResult(normalised(output), "\n".join(filter(None, crashes)), errors)

    def _after_death(self, offset: int) -> list[Entry]:
        """Return the log after the postmaster has logged a death, which happens shortly after the session is lost."""
        until = time.monotonic() + _DEATH_SECONDS
        entries: list[Entry] = []
        while not deaths(entries).lines and time.monotonic() < until:
            time.sleep(_PAUSE)
            entries = split(self.arm.cluster.log_since(offset))
        return entries

    def _renew(self) -> None:
        """Create the database again. Raises ServerError.

        After the tester has ended, one of its sessions may hold a replication slot for a while. WITH (FORCE) does not
        end that one.
        """
        name = sql.Identifier(DATABASE)
        until = time.monotonic() + _EXIT_SECONDS
        while True:
            try:
                with closing(self._connection()) as connection:
                    connection.execute(_END_SESSIONS, (DATABASE,))
                    connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))
                    connection.execute(sql.SQL("CREATE DATABASE {}").format(name))
                return
            except psycopg.Error as error:
                if not isinstance(error, psycopg.errors.ObjectInUse) or time.monotonic() > until:
                    reason = first_line(str(error))
                    raise ServerError(f"cannot make database {DATABASE} on arm {self.arm.name}: {reason}") from error
            time.sleep(_PAUSE)

    def _run(self, spec: Spec) -> str:
        optional = settings_of(mode for mode in spec.settings if mode.optional)
        lacking = {name for name in optional if name.lower() not in self._known}
        settings = {name: value for name, value in settings_of(spec.settings).items() if name not in lacking}
        server = make_conninfo(
            host=str(self.arm.cluster.socket_dir),
            port=self.arm.cluster.port,
            user="postgres",
            dbname=DATABASE,
            options=start_options(settings | _LOGGED | self._fault),
        )
        variables = {"PG_TEST_TIMEOUT_DEFAULT": _STEP_SECONDS} | self.arm.build.library_path
        try:
            done = subprocess.run(
                [self._program, server],
                input=spec.text.encode(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_SECONDS,
                env=self.arm.cluster.environment() | variables,
                **server_account().options(),
            )
        except subprocess.TimeoutExpired as error:
            return f"{(error.stdout or b'').decode(errors='replace')}\nnot done after {_SECONDS} s"
        return done.stdout.decode(errors="replace")


def normalised(output: str) -> str:
    """Return the tester's output with the rows of each result sorted."""
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


def judge(spec: Spec, testers: Sequence[Tester], pool: Executor, stop: Callable[[], bool] = never) -> Judged:
    """Run a spec on all arms concurrently, repeat it if outputs differ, and return the result. Raises ServerError.

    Repetitions end as soon as `stop` returns true, or a server is lost.
    """
    names = [tester.arm.name for tester in testers]
    seen: list[list[SpecResult]] = [[] for _ in testers]
    while not seen[0] or (_is_undecided(seen) and not stop()):
        try:
            results = list(pool.map(lambda tester: tester.execute(spec), testers))
        except ServerError:
            if not seen[0]:
                raise
            break
        for of_arm, result in zip(seen, results, strict=True):
            of_arm.append(result)
    reference, *others = map(_outputs, seen)
    compared = [
        _compared(spec, (names[0], name), reference, each) for name, each in zip(names[1:], others, strict=True)
    ]
    faults = (*_crashes(names, seen), *_internal_errors(names, seen))
    differences = (each for each in compared if isinstance(each, Finding))
    return Judged((*faults, *differences), tuple(each for each in compared if isinstance(each, Unstable)))


def _outputs(results: Sequence[SpecResult]) -> list[str]:
    """Return the outputs of an arm without those that a crash cut off."""
    return [result.output for result in results if not result.crash]


def _is_undecided(seen: Sequence[Sequence[SpecResult]]) -> bool:
    """Return whether the spec has to run again. `seen` has the results of each arm.

    There is no further run after a crash, because the server may not start again, or if the reference differs from
    itself.
    """
    rounds = len(seen[0])
    reference, *others = map(_outputs, seen)
    if any(result.crash for of_arm in seen for result in of_arm) or len(set(reference)) > 1:
        return False
    counts = [_differing(reference, suspect) for suspect in others]
    if rounds <= REPEATED:
        return any(counts)
    least = 1 if rounds < RARE else 2
    return rounds < STEADY and any(least <= count < rounds for count in counts)


def _differing(reference: Sequence[str], suspect: Sequence[str]) -> int:
    return sum(output != reference[0] for output in suspect)


def _compared(
    spec: Spec, arms: tuple[str, str], reference: Sequence[str], suspect: Sequence[str]
) -> Finding | Unstable | None:
    """Return the finding or doubt about a suspect, given the outputs of both arms; None without a difference."""
    if not reference or suspect == reference[: len(suspect)] or not _differing(reference, suspect):
        return None
    if not is_reproducible(reference, suspect):
        return _doubt(arms, reference, suspect)
    count = _differing(reference, suspect)
    often = "" if count == len(suspect) else f" (in {count} of {len(suspect)} runs)"
    summary = f"{arms[1]} prints another result of {spec.name} than {arms[0]}{often}"
    return Finding(NAME, arms, spec.name, None, summary, reference[0], _other(reference[0], suspect))


def is_reproducible(reference: Sequence[str], suspect: Sequence[str]) -> bool:
    """Return whether the suspect differs from a steady reference in each run, or repeatedly.

    In the latter case, the output may depend on timing. So the reference has to be steady in many runs.
    """
    count = _differing(reference, suspect)
    always = count == len(suspect) > REPEATED
    return len(set(reference)) == 1 and (always or (count > 1 and len(reference) >= STEADY))


def _doubt(arms: tuple[str, str], reference: Sequence[str], suspect: Sequence[str]) -> Unstable:
    """Return the doubt about a suspect, with both outputs of the reference if that differs from itself."""
    if len(set(reference)) > 1:
        return Unstable(
            f"{arms[1]} differs from {arms[0]}, which differs from itself",
            sides=(reference[0], _other(reference[0], reference)),
        )
    rare = _differing(reference, suspect) == 1 and len(suspect) >= RARE
    how = "once and never again" if rare else "until repetitions were cut short"
    return Unstable(f"{arms[1]} differed from {arms[0]} {how}", sides=(reference[0], _other(reference[0], suspect)))


def _other(first: str, outputs: Sequence[str]) -> str:
    return next(output for output in outputs if output != first)


def _crashes(names: Sequence[str], seen: Sequence[Sequence[SpecResult]]) -> Iterator[Finding]:
    """Yield a finding for each suspect that crashed in any run."""
    reports = zip(names, (next((each.crash for each in of_arm if each.crash), "") for of_arm in seen), strict=True)
    crashes = {name: report for name, report in reports if report}
    for pair in pairs_of(names, crashes):
        origin = crash_origin(crashes[pair[1]])
        yield Finding(NAME, pair, origin, None, f"{pair[1]} crashes: {origin}", "no crash", crashes[pair[1]])


def _internal_errors(names: Sequence[str], seen: Sequence[Sequence[SpecResult]]) -> Iterator[Finding]:
    """Yield a finding for each origin of internal errors in any run, and each suspect."""
    raised = {
        name: {origin: error for result in reversed(of_arm) for origin, error in result.errors.items()}
        for name, of_arm in zip(names, seen, strict=True)
    }
    for origin in dict.fromkeys(origin for errors in raised.values() for origin in errors):
        examples = {name: errors[origin] for name, errors in raised.items() if origin in errors}
        for pair in pairs_of(names, examples):
            error = examples[pair[1]]
            summary = f"{pair[1]} raises an internal error: {origin}{as_all_do(pair)}"
            actual = f"{error.severity}: {error.sqlstate}: {error.text}"
            yield Finding(NAME, pair, origin, None, summary, "no error of SQLSTATE class XX", actual)
