"""Fuzzers side by side: what each does with one server, in the same time and on the same processors.

All but what a fuzzer says of its own judgements is measured in the server, by one module for all
(`pgduel_recorder.c`), and, in flavor `coverage`, by the server's own counters.
"""

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event
from typing import Final, TypeVar

from fuzz.engines import sqlsmith
from fuzz.execution.source_database import SourceDatabase
from fuzz.generators.generator import Scale, small_scene
from fuzz.servers import Report
from fuzz.servers.account import server_account
from fuzz.servers.arm import Arm, ArmSpec, build_arms, open_arms
from fuzz.servers.coverage import Covered, covered
from fuzz.servers.flavor import PROFILE_FILE
from fuzz.servers.modules import ensure_module
from fuzz.servers.recovery import await_connections
from fuzz.sources.context import UserInput
from fuzz.sources.sqlancer.options import REPORTS, Call
from fuzz.sources.sqlancer.running import Server
from fuzz.sources.sqlancer.running import run as run_sqlancer
from fuzz.sources.sqlsmith import SEEDS

DIRECTORIES: Final = ("src/backend/executor", "src/backend/optimizer")  # whose coverage is told
_RECORDER: Final = "pgduel_recorder"
_RECORDS: Final = "statements"  # in the data directory
_SETTINGS: Final = {
    "shared_preload_libraries": f"pgduel_probe,{_RECORDER}",
    f"{_RECORDER}.file": _RECORDS,
}
_ROUND: Final = 60.0  # seconds after which SQLsmith gets another scene
_SMITH_QUERIES: Final = 100_000  # on one scene: more than it draws in that time

Result = TypeVar("Result")
Fuzzer = Callable[[Arm], int]  # fuzzes an arm; returns how many answers it held against others
_COMPARED: Final = 2  # answers in a check of SQLancer: a query's, and that of its parts together


@dataclass(frozen=True, slots=True)
class Figures:
    """What a fuzzer did in so many seconds."""

    fuzzer: str
    seconds: float
    judged: int  # answers that were held against others, which would have told of a wrong one
    succeeded: int  # statements: all of them would have told of a crash
    failed: int
    shapes: int  # of plans, different ones
    reached: Mapping[str, Covered]  # by directory; empty where the build does not count

    @property
    def valid_share(self) -> float:
        """Return which share of the statements succeeded."""
        return self.succeeded / max(1, self.succeeded + self.failed)


def measure(name: str, fuzzer: Fuzzer, spec: ArmSpec, seconds: float, report: Report) -> Figures:
    """Return what a fuzzer does with a new server of an arm; `seconds` is what it was told to take.

    Raises PgduelError.
    """
    ((build, _),) = build_arms([spec], report)
    ensure_module(build, _RECORDER)
    with open_arms([spec], report, settings=dict(_SETTINGS)) as (arm,):
        report(f"{name}, for {seconds:.0f} s")
        judged = fuzzer(arm)
        with server_account().file_access():
            counts, shapes = _recorded(arm.cluster.data / _RECORDS)
        counts_itself = PROFILE_FILE in build.flavor.environment
        program = build.bindir / "postgres"
        reached = covered(program, arm.cluster.coverage, DIRECTORIES) if counts_itself else {}
    succeeded = counts["S"] + counts["U"]
    return Figures(name, seconds, judged, succeeded, counts["E"], len(shapes), reached)


def _recorded(file: Path) -> tuple[Counter[str], set[str]]:
    """Return how many records there are of each kind, and the shapes of plans: none where nothing came to its end."""
    counts: Counter[str] = Counter()
    shapes: set[str] = set()
    if not file.exists():
        return counts, shapes
    with file.open() as lines:
        for line in lines:
            kind, _, shape = line.strip().partition(" ")
            counts[kind] += 1
            if shape:
                shapes.add(shape)
    return counts, shapes


def smith(seed: int, seconds: float, workers: int) -> Fuzzer:
    """Return SQLsmith alone, which looks for crashes: one process a worker, over scenes of the generators."""

    def work(arm: Arm, worker: int, over: Event) -> None:
        rng = random.Random(f"{seed}/sqlsmith/worker {worker}")
        until = time.monotonic() + seconds
        with closing(SourceDatabase(arm, f"smith{worker}", UserInput())) as target:
            while not over.is_set() and (left := until - time.monotonic()) > 0:
                scene = small_scene(rng, Scale())
                with target.session(scene) as connection:
                    database = connection.info.dbname
                drawn = sqlsmith.Smith(rng.randrange(SEEDS), _SMITH_QUERIES)
                sqlsmith.execute(drawn, arm.cluster, database, min(_ROUND, left))
                await_connections(arm.cluster)

    def fuzz(arm: Arm) -> int:
        together(partial(work, arm), workers)
        return 0

    return fuzz


def lancer(class_path: str, oracle: str, seed: int, seconds: float, workers: int) -> Fuzzer:
    """Return SQLancer alone, one process a worker, with one of its oracles."""

    def work(arm: Arm, worker: int, over: Event) -> int:
        judged = 0
        first = seed + worker * SEEDS // workers
        until = time.monotonic() + seconds
        server = Server(str(arm.cluster.socket_dir), arm.cluster.port)
        while not over.is_set() and (left := until - time.monotonic()) >= 1:
            call = Call.search(oracle, first, round(left))
            judged += _COMPARED * run_sqlancer(server, class_path, call, f"lancer{worker}_").queries
            await_connections(arm.cluster)
            first += REPORTS
        return judged

    return lambda arm: sum(together(partial(work, arm), workers))


def together(work: Callable[[int, Event], Result], workers: int) -> list[Result]:
    """Return what came of each worker's part. All are told that it is over once one fails, or the user ends it."""
    over = Event()
    with ThreadPoolExecutor(workers) as pool:
        parts = [pool.submit(work, worker, over) for worker in range(workers)]
        try:
            wait(parts, return_when=FIRST_EXCEPTION)
        finally:
            over.set()
    return [part.result() for part in parts]
