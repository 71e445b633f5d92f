r"""The user's own SQL: the time of each file, executed by pgbench of the arm's own build.

pgbench executes plain SQL, and scripts with its own commands such as \set. There is one client, because more would
compete for the processors. The first measurement of a file takes the requested time, and determines its number of
executions. All others repeat that number with the same random numbers. So a file that changes data changes the same
data on all arms.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from fuzz.bench.bench import SQL_FILE, UNDISTURBED, Bench, BenchError, Point, connected
from fuzz.bench.measurement import TPS, run_pgbench
from fuzz.errors import text_of
from fuzz.servers.arm import Arm
from fuzz.sources.scripts.psql import BLANK, tokens

_EXECUTED = re.compile(r"^number of transactions actually processed: ([1-9]\d*)", re.MULTILINE)
_ERROR = re.compile(r"^psql:<stdin>:(.*)", re.MULTILINE)


class SqlBench(Bench):
    """Milliseconds of one execution of a file, so a ratio below 1 is a gain."""

    name = "sql"
    unit = "ms"
    axes = MappingProxyType({"file": ()})
    rounds = 16
    settings = MappingProxyType({**UNDISTURBED, "jit": "off", "fsync": "off"})

    # Raises BenchError for files that cannot be read, or have no statement.
    def __init__(self, files: Sequence[Path] = (), setup: Path | None = None) -> None:
        self._scripts = {str(file): text_of(file, BenchError, SQL_FILE) for file in files}
        for file, text in self._scripts.items():
            if all(token.kind in BLANK for token in tokens(text)):
                raise BenchError(f"{file} has no statement; {SQL_FILE}")
        self._setup = None if setup is None else (setup, text_of(setup, BenchError, SQL_FILE))
        self._executions: dict[Point, int] = {}
        self._measured: Counter[tuple[str, Point]] = Counter()

    def points(self, chosen: Mapping[str, Sequence[int]]) -> list[Point]:
        """Return the numbers of all files."""
        return [(number,) for number in range(len(self._scripts))]

    def label(self, point: Point) -> str:
        """Return the file's name."""
        return list(self._scripts)[point[0]]

    @property
    def parameters(self) -> str:
        """Return all files' text."""
        return f"{self._scripts} {self._setup}"

    def fill(self, arm: Arm, points: Sequence[Point]) -> None:
        """Run the setup, and analyze all tables."""
        if self._setup is not None:
            _run_psql(arm, *self._setup)
        with connected(arm) as connection:
            connection.execute("VACUUM ANALYZE")
            connection.execute("CHECKPOINT")

    def prepare(self, arm: Arm, points: Sequence[Point]) -> None:
        """Execute each file once."""
        for point in points:
            self._execute(arm, point, "-t", "1")

    def measure(self, arm: Arm, point: Point, seconds: int) -> float:
        """Return milliseconds: the mean of all executions. Raises BenchError."""
        known = self._executions.get(point)
        limit = ("-T", str(seconds)) if known is None else ("-t", str(known))
        printed = self._execute(arm, point, *limit)
        executed, tps = _EXECUTED.search(printed), TPS.search(printed)
        if executed is None or tps is None:
            raise BenchError(f"{self.label(point)}: no execution succeeded on arm {arm.name}")
        self._executions.setdefault(point, int(executed[1]))
        return 1000 / float(tps[1])

    def _execute(self, arm: Arm, point: Point, *limit: str) -> str:
        seed = self._measured[arm.name, point]
        self._measured[arm.name, point] += 1
        name = self.label(point)
        try:
            return run_pgbench(arm, "-n", "-f", "-", f"--random-seed={seed}", *limit, stdin=self._scripts[name])
        except BenchError as error:
            raise BenchError(f"{name}: {error}") from error


def _run_psql(arm: Arm, file: Path, script: str) -> None:
    """Run a script to its end or first error. Raises BenchError."""
    cluster = arm.cluster
    server = ("-h", str(cluster.socket_dir), "-p", str(cluster.port), "-U", "postgres", "-d", "postgres")
    command = ("-X", "-q", "-v", "ON_ERROR_STOP=1", *server, "-f", "-")
    done = cluster.run(arm.build.bindir / "psql", *command, stdin=script)
    if done.returncode:
        found = _ERROR.search(done.stderr)
        raise BenchError(f"{file} fails on arm {arm.name}: {f'line {found[1]}' if found else done.stderr.strip()}")
