"""Plugin of pytest (docs/pytest.md): the fixtures `duel`, `scene` and `arm`, and the decorator `given_cases`.

This file runs in pytest's process, which belongs to the user's tests: they may import their own packages `fuzz` and
`oracles`, raise errors for warnings, or replace the clock. So it imports the standard library and pytest only, and
pgduel runs in a process of its own (service.py), which the first test with one of the fixtures starts. In a wheel,
this file is `pgduel.pytest_plugin`.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

_BESIDE: Final = Path(__file__).with_name("tree")  # in a wheel; see fuzz/wheel
TREE: Final = _BESIDE if _BESIDE.is_dir() else Path(__file__).parents[2]
_SERVICE: Final = "fuzz.pytest_plugin.service"
_SHOWN_AFTER: Final = 3  # seconds after which a line of progress is printed
_END_SECONDS: Final = 60
_OF_TESTS: Final = ("PYTHONWARNINGS", "COV_CORE_", "COVERAGE_PROCESS_")  # beginnings of variables that concern tests
_NO_HYPOTHESIS: Final = "given_cases needs Hypothesis; install it: pip install hypothesis"
_EXAMPLES: Final = 40
_OPTIONS: Final = {  # name -> metavar, action, help
    "base": ("BASE", "store", "PostgreSQL source: pg17, pg18, a directory, a tarball, or CHECKOUT@REVISION"),
    "series": (
        "PATH",
        "append",
        "patches of the arm 'patched': a directory of patches, a mail or mailbox, or patch files",
    ),
    "repo": ("DIR", "store", "git checkout of --pgduel-range"),
    "range": ("A..B", "store", "commits of --pgduel-repo as patches of the arm 'patched'"),
    "arm": ("NAME=SERIES", "append", "an arm (repeat the option; the first is the reference)"),
    "manifest": ("FILE", "store", "TOML file that describes the patches"),
    "flavor": ("NAME", "store", "flavor of the builds; default: assert"),
    "set": ("[ARM:]NAME=VALUE", "append", "a setting of all servers, or of one arm's (repeat the option)"),
    "timeout": ("SECONDS", "store", "time limit of a statement; default: 30"),
}


class Found(BaseException):
    """A failure on a generated case that Hypothesis is not to shrink: a finding, whose case was reduced, or a scene's.

    It is a BaseException, so Hypothesis ends at once and does not shrink the case. Reduction of SQL takes a minute at
    most, and gives smaller cases than thousands of examples on real servers.
    """


class ServiceProcess:
    """The process that runs pgduel, and the connection to it.

    Requests and replies have a number, because an exception, such as a timeout of pytest, may interrupt a request.
    """

    def __init__(self, directory: Path, show: Callable[[str], None]) -> None:
        """Start the process in a directory. `show` prints a line of progress."""
        from multiprocessing import Pipe  # not at the top: most runs of pytest need no service

        self._show = show
        self._number = 0
        self._connection, other = Pipe()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `close`
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(_OF_TESTS)}
        path = os.pathsep.join(filter(None, (str(TREE), os.environ.get("PYTHONPATH"))))
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", _SERVICE, str(other.fileno())],
            cwd=directory,
            env=inherited | {"PYTHONPATH": path, "PYTHONSAFEPATH": "1"},
            pass_fds=(other.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is pytest's; the end of the connection ends the process
        )
        other.close()

    def ask(self, method: str, *, draw: Callable[[int], int] = lambda below: 0, **arguments: Any) -> Any:
        """Return the service's result. `draw` returns random numbers below its argument for it.

        The test fails if an assertion fails in the service, or with one line about an error of pgduel.
        """
        __tracebackhide__ = True
        kind, value = self._answer(method, arguments, draw)
        if kind == "unshrunk":
            raise Found(value)
        if kind != "result":
            pytest.fail(value, pytrace=method not in ("open", "conclude"))  # no line of the user's calls these
        return value

    def _answer(self, method: str, arguments: Mapping[str, Any], draw: Callable[[int], int]) -> tuple[str, Any]:
        self._number += 1
        try:
            self._connection.send((self._number, method, arguments))
            while True:
                number, kind, value = self._received()
                if kind == "draw":
                    self._draw(draw if number == self._number else None, value)
                elif number == self._number:
                    return kind, value
        except (EOFError, OSError):
            return "error", f"pgduel's process ended: {self._last_line()}"

    def _draw(self, draw: Callable[[int], int] | None, below: int) -> None:
        """Send a random number, or None, which ends the request if it was interrupted."""
        drawn = None
        try:
            drawn = draw(below) if draw else None
        finally:
            self._connection.send(drawn)

    def _received(self) -> Any:
        """Return the next reply, and print the last line of progress if the service takes long."""
        line = ""
        while True:
            if line and not self._connection.poll(_SHOWN_AFTER):
                self._show(line)
                line = ""
            reply = self._connection.recv()
            if reply[1] != "progress":
                return reply
            line = reply[2]

    def _last_line(self) -> str:
        self._process.wait(_END_SECONDS)
        self._output.seek(0)
        lines = self._output.read().decode(errors="backslashreplace").strip().splitlines()
        return (lines or [f"exit status {self._process.returncode}"])[-1]

    def close(self) -> None:
        """End the process, which stops its servers."""
        self._connection.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()  # pgduel's watchdog stops the servers
            self._process.wait()
        self._output.close()


def _require_text(*given: object, settings: Mapping[str, str] | None = None) -> None:
    """Fail the test if an argument, or a name or value of the settings, is no text."""
    __tracebackhide__ = True
    for each in (*given, *(settings or {}), *(settings or {}).values()):
        if not isinstance(each, str):
            pytest.fail(f"{each!r} is no text; give statements, modes, settings and parameters as text")


class Scene:
    """Statements that run before those of each assertion, in the same session and an empty schema."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._own: int | None = None

    def __call__(self, *sql: str | Path) -> None:
        """Add statements, scripts for psql, or files with such scripts."""
        __tracebackhide__ = True
        texts = [each.read_text(encoding="utf-8") if isinstance(each, Path) else each for each in sql]
        _require_text(*texts)
        self.texts += texts

    def begin_example(self) -> None:
        """Remove what an earlier example of the same test added."""
        if self._own is None:
            self._own = len(self.texts)
        del self.texts[self._own :]


class GeneratedCase:
    """A case of a generator. Its text is SQL. It is no dataclass, whose fields Hypothesis would print."""

    def __init__(self, number: int, text: str) -> None:
        self.number = number
        self._text = text

    def __repr__(self) -> str:
        return self._text


class Ratio(NamedTuple):
    """Median ratio of two times, and the ends of its 95 % confidence interval."""

    ratio: float
    low: float
    high: float


class Duel:
    """Assertions about the arms. The first arm is the reference; the others are compared with it.

    `mode` is a composition of execution modes (docs/modes.md), joined by +. An arm that lacks one of the `settings`
    runs without it.
    """

    def __init__(self, service: ServiceProcess, scene: Scene) -> None:
        self._service = service
        self._scene = scene

    def same(
        self,
        *what: str | GeneratedCase,
        mode: str = "plain",
        settings: Mapping[str, str] | None = None,
        params: Sequence[str | None] = (),
        ordered: bool = False,
        may_fail: bool = False,
    ) -> None:
        """Require equal rows, errors, messages and stored data, and no crash, hang or internal error on any arm.

        `params` are the values of $1, $2 ... as text. Rows are compared as multisets, unless `ordered`. A statement
        that fails on every arm fails the test, unless `may_fail`.
        """
        __tracebackhide__ = True
        self._check("same", what, mode, settings, params, ordered=ordered, may_fail=may_fail)

    def same_plan(
        self,
        *queries: str | GeneratedCase,
        mode: str = "plain",
        settings: Mapping[str, str] | None = None,
        params: Sequence[str | None] = (),
    ) -> None:
        """Require equal plans with equal estimates and costs."""
        __tracebackhide__ = True
        self._check("same_plan", queries, mode, settings, params)

    def no_leak(
        self, *what: str | GeneratedCase, mode: str = "plain", settings: Mapping[str, str] | None = None
    ) -> None:
        """Require that nothing remains after these statements, or else after everything that the test ran so far.

        Each statement runs again in repetitions, which show growth.
        """
        __tracebackhide__ = True
        self._check("no_leak", what, mode, settings)

    def faster(
        self,
        query: str,
        *,
        than: str | None = None,
        arm: str | None = None,
        ratio: float = 1.0,
        rounds: int = 20,
        seconds: float = 0.1,
        flavor: str = "release",
        settings: Mapping[str, str] | None = None,
    ) -> Ratio:
        """Require that the query takes less than `ratio` times as long on `arm` as on the arm `than`, and return it.

        Both arms run the query alternately, `rounds` times for `seconds` each. The 95 % confidence interval of the
        median of the rounds' ratios must be below `ratio`. By default, the second arm is compared with the first.
        """
        __tracebackhide__ = True
        _require_text(query, settings=settings)
        measured = self._service.ask(
            "faster",
            scene=tuple(self._scene.texts),
            query=query,
            arms=(than, arm),
            limit=ratio,
            rounds=rounds,
            seconds=seconds,
            flavor=flavor,
            settings=dict(settings or {}),
        )
        return Ratio(*measured)

    def _check(
        self,
        method: str,
        what: Sequence[str | GeneratedCase],
        mode: str,
        settings: Mapping[str, str] | None,
        params: Sequence[str | None] = (),
        **options: Any,
    ) -> None:
        __tracebackhide__ = True
        texts = tuple(each for each in what if not isinstance(each, GeneratedCase))
        _require_text(*texts, mode, *(each for each in params if each is not None), settings=settings)
        cases = [each.number for each in what if isinstance(each, GeneratedCase)]
        shared: dict[str, Any] = {"scene": tuple(self._scene.texts), "mode": mode, "settings": dict(settings or {})}
        shared["params"] = tuple(params)
        for number in cases:
            self._service.ask(method, case=number, **shared, **options)
        if texts or not cases:
            self._service.ask(method, sql=texts, **shared, **options)


@dataclass(frozen=True)
class Arm:
    """One arm: its name, PostgreSQL's version, and the address of its server for psql and libpq."""

    name: str
    version: str
    conninfo: str
    _service: ServiceProcess
    _scene: Scene

    def query(
        self, sql: str, *, mode: str = "plain", settings: Mapping[str, str] | None = None
    ) -> list[tuple[str | None, ...]]:
        """Run scene and statement on this arm alone; return the rows, with values as text and NULL as None."""
        __tracebackhide__ = True
        _require_text(sql, mode, settings=settings)
        shared: dict[str, Any] = {"scene": tuple(self._scene.texts), "mode": mode, "settings": dict(settings or {})}
        found: list[tuple[str | None, ...]] = self._service.ask("query", arm=self.name, sql=(sql,), **shared)
        return found


class _Session:
    """The state of a run of pytest: the service, if a test needed it, and the scene of the current test."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.service: ServiceProcess | None = None
        self.arms: list[tuple[str, str, str]] = []  # names, versions and addresses
        self.scene = Scene()
        self.has_examples = False  # whether the current test has generated cases

    def open(self, directory: Path) -> ServiceProcess:
        """Start the service and its servers; reproducers go to the directory. Fails with one line."""
        self.service = ServiceProcess(self.config.invocation_params.dir, self._show)
        options = {name: self.config.getoption(f"pgduel_{name}") for name in _OPTIONS}
        self.arms = self.service.ask("open", options=options, directory=str(directory))
        return self.service

    def _show(self, line: str) -> None:
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        capture = self.config.pluginmanager.get_plugin("capturemanager")
        if reporter is not None and capture is not None:  # there are none in a process of pytest-xdist
            with capture.global_and_fixture_disabled():
                reporter.ensure_newline()
                reporter.write_line(f"pgduel: {line}")

    def begin_example(self, generator: str, draw: Callable[[int], int]) -> GeneratedCase:
        """Return a case, of which nothing has run, and restore the scene."""
        __tracebackhide__ = True
        assert self.service is not None
        self.has_examples = True
        self.scene.begin_example()
        return GeneratedCase(*self.service.ask("draw", generator=generator, draw=draw))

    def conclude(self) -> None:
        """End a test that passed. It fails if it has generated cases of which none proves anything."""
        __tracebackhide__ = True
        if self.service is not None and self.has_examples:
            self.service.ask("conclude")

    def close(self) -> None:
        """End the service."""
        if self.service is not None:
            self.service.close()
            self.service = None


_sessions: Final[list[_Session]] = []  # the last is current; a test of plugins runs pytest within pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, which correspond to those of `pgduel fuzz`."""
    group = parser.getgroup("pgduel", "pgduel: differential tests of PostgreSQL patches")
    for name, (metavar, action, text) in _OPTIONS.items():
        group.addoption(f"--pgduel-{name}", metavar=metavar, action=action, help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Begin a run."""
    _sessions.append(_Session(config))


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the run, and its servers. It may not have begun, if another plugin refused an option."""
    if _sessions and _sessions[-1].config is config:
        _sessions.pop().close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Run a test, and conclude it if it passes."""
    __tracebackhide__ = True
    session = _sessions[-1]
    session.has_examples = False
    result = yield
    session.conclude()
    return result


@pytest.fixture(scope="session")
def _pgduel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """Start the service once per process of pytest."""
    session = _sessions[-1]
    yield session.open(tmp_path_factory.getbasetemp() / "pgduel")
    session.close()


@pytest.fixture
def scene(_pgduel: ServiceProcess, request: pytest.FixtureRequest) -> Scene:
    """Return the test's scene, which is empty: call it with statements."""
    _pgduel.ask("begin", test=request.node.nodeid)
    _sessions[-1].scene = Scene()
    return _sessions[-1].scene


@pytest.fixture
def duel(_pgduel: ServiceProcess, scene: Scene) -> Duel:
    """Return the assertions about the arms."""
    return Duel(_pgduel, scene)


@pytest.fixture
def arm(_pgduel: ServiceProcess, scene: Scene) -> Callable[..., Arm]:
    """Return a function from an arm's name to the arm; without a name, the second arm, or the only one."""
    arms = {name: Arm(name, version, conninfo, _pgduel, scene) for name, version, conninfo in _sessions[-1].arms}

    def named(name: str | None = None) -> Arm:
        __tracebackhide__ = True
        if name is not None and name not in arms:
            pytest.fail(f"no arm is called {name!r}; give one of {', '.join(arms)}")
        return list(arms.values())[:2][-1] if name is None else arms[name]

    return named


def given_cases(generator: str, **settings: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test on cases of a generator (docs/generators.md), as its argument `case`; a failing case is shrunk.

    `settings` are those of `hypothesis.settings`. By default, 40 examples run, the same ones each time.
    """

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        try:
            from hypothesis import HealthCheck, given
            from hypothesis import settings as settings_of
            from hypothesis import strategies as st
        except ImportError:
            return _failing(test)

        @st.composite
        def cases(draw: Callable[[Any], Any]) -> GeneratedCase:
            __tracebackhide__ = True
            return _sessions[-1].begin_example(generator, draw(st.randoms(use_true_random=False)).randrange)

        slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
        unchecked = [*slow, HealthCheck.function_scoped_fixture]
        ours = {"max_examples": _EXAMPLES, "derandomize": True, "deadline": None, "suppress_health_check": unchecked}
        applied: Callable[..., None] = settings_of(**ours | settings)(given(case=cases())(test))
        with_duel: Callable[..., None] = pytest.mark.usefixtures("duel")(applied)
        return with_duel

    return decorated


def _failing(test: Callable[..., None]) -> Callable[..., None]:
    """Return a test of the same name that fails with one line."""

    def without_hypothesis(*_self: object) -> None:
        pytest.fail(_NO_HYPOTHESIS, pytrace=False)

    without_hypothesis.__name__ = without_hypothesis.__qualname__ = test.__name__
    return without_hypothesis
