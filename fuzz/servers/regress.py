"""PostgreSQL's own suites (regress, isolation, those of a module), run against a build."""

import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from fuzz import workdir
from fuzz.errors import ServerError, last_line
from fuzz.servers import git
from fuzz.servers.account import server_account
from fuzz.servers.arm_settings import Settings, configuration
from fuzz.servers.build import Build
from fuzz.servers.cluster import Cluster
from fuzz.servers.coverage import keep_counts
from fuzz.servers.settings import SUITES

_LINE = re.compile(r"^(?P<verdict>ok|not ok) \d+ +[-+] (?P<test>\S+) +\d+ ms")
_CONCURRENT = 20  # the largest group of a schedule
_ISOLATION = "pg_isolation_regress"
_EXTENSION = re.compile(r"'(--load-extension=\w+)'")


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """The result of a suite: `directory` has the tests' files until its next run, `output` is the driver's."""

    passed: tuple[str, ...]
    failed: tuple[str, ...]
    directory: Path
    output: str

    @property
    def diffs(self) -> Path:
        """Return the file of differences from the expected output, which exists only if a test failed."""
        return self.directory / "regression.diffs"

    def printed_by(self, test: str) -> str:
        """Return the output of a test. It is incomplete if the server crashed. Raises OSError."""
        with server_account().file_access():
            return (self.directory / "results" / f"{test}.out").read_text(encoding="utf-8", errors="backslashreplace")

    @property
    def summary(self) -> str:
        """Return the failed tests, and the file with their differences, in one line."""
        if self.failed:
            return f"{len(self.failed)} of {len(self.passed) + len(self.failed)} failed ({self.diffs}): " + ", ".join(
                self.failed
            )
        return f"all {len(self.passed)} passed"


def run_regress(
    build: Build, tests: Sequence[str] = (), counts: Path | None = None, settings: Settings = ()
) -> SuiteResult:
    """Run src/test/regress: some tests, or the parallel schedule (about a minute). Raises ServerError.

    A build in flavor `coverage` adds its counts to the directory `counts` of the account of servers. `settings` are
    lines of the server's configuration.
    """
    chosen = list(tests) or ["--schedule={source}/parallel_schedule", f"--max-concurrent-tests={_CONCURRENT}"]
    return _run(build, "src/test/regress", "pg_regress", chosen, counts, settings)


def run_isolation(
    build: Build, tests: Sequence[str] = (), counts: Path | None = None, settings: Settings = ()
) -> SuiteResult:
    """Run src/test/isolation: some tests, or its schedule (some minutes). Others as in `run_regress`.

    Raises ServerError.
    """
    chosen = list(tests) or ["--schedule={source}/isolation_schedule"]
    return _run(build, "src/test/isolation", _ISOLATION, chosen, counts, settings)


def run_module(build: Build, path: str, counts: Path | None = None, settings: Settings = ()) -> SuiteResult:
    """Run the SQL tests of a directory such as contrib/postgres_fdw or src/test/modules/NAME.

    `counts` and `settings` as in `run_regress`. Raises ServerError.
    """
    return _run(build, path, "pg_regress", _tests_of_module(build, path), counts, settings)


def run_specs_of_module(build: Build, path: str, settings: Settings = ()) -> SuiteResult | None:
    """Run the isolation specs of a module's directory, or return None if it has none.

    `settings` as in `run_regress`. Raises ServerError.
    """
    files = git.output(
        "--git-dir", git.repository(), "ls-tree", "--name-only", build.tree, f"{path}/specs/",
        failing=f"{build.tree[:12]} cannot be listed",
    )  # fmt: skip
    specs = [Path(line).stem for line in files.decode().splitlines() if line.endswith(".spec")]
    suite = (git.show(build.tree, f"{path}/meson.build") or "").partition("'isolation':")[2]
    extensions = _EXTENSION.findall(suite)  # the specs need them, and none creates them
    return _run(build, path, _ISOLATION, [*extensions, *specs], settings=settings) if specs else None


def _tests_of_module(build: Build, path: str) -> list[str]:
    """Return the tests in the order of the module's meson.build, because some depend on earlier ones."""
    files = git.output(
        "--git-dir", git.repository(), "ls-tree", "--name-only", f"{build.tree}:{path}/sql",
        failing=f"{build.tree[:12]} has no SQL tests in {path}",
    )  # fmt: skip
    names = [Path(line).stem for line in files.decode().splitlines() if line.endswith(".sql")]
    suite = (git.show(build.tree, f"{path}/meson.build") or "").partition("'regress':")[2]
    places = {name: suite.find(f"'{name}'") for name in names}
    return sorted((name for name in names if places[name] >= 0), key=places.__getitem__) or names


def count_suites(build: Build, counts: Path) -> Iterator[tuple[str, SuiteResult]]:
    """Run all suites on a build in flavor `coverage`; yield the name and the result of each.

    These are regress, isolation, and the SQL tests of the modules that the build has. Some fail, because they need
    settings of their own. `counts` as in `run_regress`. Raises ServerError.
    """
    yield "regress", run_regress(build, counts=counts)
    yield "isolation", run_isolation(build, counts=counts)
    for path in _modules(build):
        yield path, run_module(build, path, counts)


def _modules(build: Build) -> list[str]:
    """Return the directories of the modules of a build that have SQL tests."""
    listing = ("--git-dir", git.repository(), "ls-tree", "-r", "-d", "--name-only", build.tree)
    listed = git.output(*listing, "contrib", "src/test/modules", failing=f"no tree {build.tree}").decode().splitlines()
    paths = [line.removesuffix("/sql") for line in listed if line.endswith("/sql")]
    installed = {file.stem for kind in ("control", "so") for file in build.prefix.glob(f"**/*.{kind}")}
    return [path for path in paths if Path(path).name in installed]


def run_script(build: Build, name: str, script: str, settings: Settings = ()) -> str:
    """Run one script on a new server, with an arm's settings, as a test of pg_regress; return its output.

    That is the test's expected output, if it is right. If the server crashes, the output ends there. Raises
    ServerError.
    """
    top, output = _directories(build, name)
    (top / "sql").mkdir()
    (top / "expected").mkdir()
    (top / "sql" / f"{name}.sql").write_text(script, encoding="utf-8")
    (top / "expected" / f"{name}.out").touch()
    return _result(_drive(build, "pg_regress", top, output, [name], settings), output).printed_by(name)


def discard_results(build: Build) -> None:
    """Delete the directories and locks of all suites that ran against a build. None may run."""
    for path in workdir.tests().glob(f"{build.key}-*"):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


def _run(
    build: Build,
    path: str,
    driver: str,
    chosen: Sequence[str],
    counts: Path | None = None,
    settings: Settings = (),
) -> SuiteResult:
    name = Path(path).name
    with FileLock(f"{_top(build, name)}.lock"):  # another process may test the same build
        top, output = _directories(build, name)
        git.extract(build.tree, top, path)
        return _result(_drive(build, driver, top / path, output, chosen, settings, counts), output)


def _top(build: Build, name: str) -> Path:
    return workdir.tests() / f"{build.key}-{name}"


def _directories(build: Build, name: str) -> tuple[Path, Path]:
    """Return a new directory for a suite, and a directory in it that the driver can write to."""
    account = server_account()
    top = _top(build, name)
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir()
    output = account.make_private(top / "output")
    account.require_entry(output)
    return top, output


def _drive(
    build: Build,
    driver: str,
    source: Path,
    output: Path,
    chosen: Sequence[str],
    settings: Settings = (),
    counts: Path | None = None,
) -> str:
    with Cluster(build, source.name, settings=configuration(settings, SUITES)) as cluster:
        done = cluster.run(
            _driver(build, driver),
            f"--host={cluster.socket_dir}",
            f"--port={cluster.port}",
            "--user=postgres",
            f"--bindir={build.bindir}",
            f"--dlpath={build.prefix / 'lib' / 'postgresql'}",
            f"--inputdir={source}",
            f"--expecteddir={source}",
            f"--outputdir={output}",
            *(choice.replace("{source}", str(source)) for choice in chosen),  # names of tests may have braces
            variables=build.library_path,
            directory=source,  # modules read their data relative to it
        )
        if counts is not None:
            keep_counts(cluster.coverage, counts, source.name)
    return done.stdout + done.stderr


def _driver(build: Build, name: str) -> Path:
    found = sorted((build.prefix / "lib").glob(f"**/{name}"))
    if not found:
        raise ServerError(f"build {build.key} has no {name}; delete it (pgduel build --prune) to rebuild it")
    return found[0]


def _result(output: str, directory: Path) -> SuiteResult:
    verdicts = [found for line in output.splitlines() if (found := _LINE.match(line))]
    if not verdicts:
        raise ServerError(f"no test ran: {last_line(output, 'no output')}")
    passed, failed = (
        tuple(found["test"] for found in verdicts if found["verdict"] == verdict) for verdict in ("ok", "not ok")
    )
    return SuiteResult(passed, failed, directory, output)
