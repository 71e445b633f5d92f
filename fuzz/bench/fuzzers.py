"""A comparison of fuzzers: each on one server, for the same time and on the same processors.

Only the number of a fuzzer's own judgements comes from the fuzzer. The server measures everything else, by one module
for all fuzzers (`pgduel_recorder.c`) and, in flavor `coverage`, by its own counters.
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
from fuzz.servers.cluster import await_connections
from fuzz.servers.coverage import Covered, covered
from fuzz.servers.flavor import PROFILE_FILE
from fuzz.servers.modules import ensure_module
from fuzz.sources.source import UserInput
from fuzz.sources.sqlancer.options import ANSWERS, REPORTS, SqlancerRun
from fuzz.sources.sqlancer.running import Server
from fuzz.sources.sqlancer.running import run as run_sqlancer
from fuzz.sources.sqlsmith import SEEDS

DIRECTORIES: Final = ("src/backend/executor", "src/backend/optimizer")  # directories of the coverage figures
_RECORDER: Final = "pgduel_recorder"
_RECORDS: Final = "statements"  # in the data directory
_SETTINGS: Final = {
    "shared_preload_libraries": f"pgduel_probe,{_RECORDER}",
    f"{_RECORDER}.file": _RECORDS,
}
_ROUND: Final = 60.0  # seconds of SQLsmith on one scene
_SMITH_QUERIES: Final = 100_000  # limit on one scene, more than it generates in that time

Result = TypeVar("Result")
Fuzzer = Callable[[Arm], int]  # fuzzes an arm; returns the number of answers that it compared


@dataclass(frozen=True, slots=True)
class Figures:
    """The results of a fuzzer."""

    fuzzer: str
    seconds: float
    judged: int  # answers that were compared, so that a wrong one is found
    succeeded: int  # statements; a crash of any of them is found
    failed: int
    shapes: int  # number of different shapes of plans
    reached: Mapping[str, Covered]  # by directory; empty without flavor coverage

    @property
    def valid_share(self) -> float:
        """Return the share of statements that succeeded."""
        return self.succeeded / max(1, self.succeeded + self.failed)


def measure(name: str, fuzzer: Fuzzer, spec: ArmSpec, seconds: float, report: Report) -> Figures:
    """Run a fuzzer on a new server of an arm for about `seconds`; return its figures.

    Raises PgduelError.
    """
    ((build, _),) = build_arms([spec], report)
    ensure_module(build, _RECORDER)
    with open_arms([spec], report, settings=dict(_SETTINGS)) as (arm,):
        report(f"{name}, for {seconds:.0f} s")
        began = time.monotonic()
        judged = fuzzer(arm)
        passed = time.monotonic() - began
        with server_account().file_access():
            counts, shapes = _recorded(arm.cluster.data / _RECORDS)
        counts_itself = PROFILE_FILE in build.flavor.environment
        program = build.bindir / "postgres"
        reached = covered(program, arm.cluster.coverage, DIRECTORIES) if counts_itself else {}
    succeeded = counts["S"] + counts["U"]
    return Figures(name, passed, judged, succeeded, counts["E"], len(shapes), reached)


def _recorded(file: Path) -> tuple[Counter[str], set[str]]:
    """Return the number of records of each kind, and the shapes of plans; both empty if no statement ended."""
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
    """Return SQLsmith alone, which finds crashes: one process per worker, over scenes of the generators."""

    def work(arm: Arm, worker: int, over: Event) -> None:
        rng = random.Random(f"{seed}/sqlsmith/worker {worker}")
        until = time.monotonic() + seconds
        with closing(SourceDatabase(arm, f"smith{worker}", UserInput())) as target:
            while not over.is_set() and (left := until - time.monotonic()) > 0:
                smith_on_scene(arm, target, rng, _SMITH_QUERIES, min(_ROUND, left))

    def fuzz(arm: Arm) -> int:
        together(partial(work, arm), workers)
        return 0

    return fuzz


def smith_on_scene(arm: Arm, target: SourceDatabase, rng: random.Random, queries: int, seconds: float) -> None:
    """Run SQLsmith on a scene of a generator, for a number of queries or for `seconds`."""
    scene = small_scene(rng, Scale())
    with target.session(scene) as connection:
        database = connection.info.dbname
    sqlsmith.execute(sqlsmith.Smith(rng.randrange(SEEDS), queries), arm.cluster, database, seconds)
    await_connections(arm.cluster)


def lancer(class_path: str, seed: int, seconds: float, workers: int) -> Fuzzer:
    """Return SQLancer alone, one process per worker. Its oracles that compare answers have equal times, in turn."""
    oracles = [name for name, answers in ANSWERS.items() if answers]
    turn = seconds / len(oracles)

    def work(arm: Arm, worker: int, over: Event) -> int:
        judged = 0
        first = seed + worker * SEEDS // workers
        began = time.monotonic()
        server = Server(str(arm.cluster.socket_dir), arm.cluster.port)
        while not over.is_set() and (passed := time.monotonic() - began) <= seconds - 1:
            number, of_turn = divmod(passed, turn)
            oracle = oracles[(int(number) + worker) % len(oracles)]
            call = SqlancerRun.search(oracle, first, max(1, round(turn - of_turn)))
            judged += ANSWERS[oracle] * run_sqlancer(server, class_path, call, f"lancer{worker}_").queries
            await_connections(arm.cluster)
            first += REPORTS
        return judged

    return lambda arm: sum(together(partial(work, arm), workers))


def together(work: Callable[[int, Event], Result], workers: int) -> list[Result]:
    """Return the results of all workers. An error of one, or the user's interrupt, stops all."""
    over = Event()
    with ThreadPoolExecutor(workers) as pool:
        parts = [pool.submit(work, worker, over) for worker in range(workers)]
        try:
            wait(parts, return_when=FIRST_EXCEPTION)
        finally:
            over.set()
    return [part.result() for part in parts]
