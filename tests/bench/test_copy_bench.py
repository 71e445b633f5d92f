"""Tests of the COPY bench on a real server: measurements, empty tables, and errors of pgbench."""

from collections.abc import Iterator

import psycopg
import pytest

from fuzz.bench.bench import BenchError
from fuzz.bench.copying import CopyBench, DefaultAllocatorBench, LoggedTableBench
from fuzz.bench.run import Limits, run_bench
from fuzz.servers.arm import Arm, open_arms, parse_arm
from fuzz.servers.base import Base
from fuzz.servers.build import Build
from fuzz.servers.cluster import Cluster
from fuzz.servers.flavor import FLAVORS

pytestmark = pytest.mark.servers

BENCH = CopyBench()
POINTS = BENCH.points({"rows": [10, 1000], "clients": [2]})


@pytest.fixture
def arms(build: Build) -> Iterator[tuple[Arm, ...]]:
    settings = dict(BENCH.settings) | {"shared_buffers": "64MB"}
    handicap = {"debug_discard_caches": "1"}
    with Cluster(build, "one", settings=settings) as one, Cluster(build, "two", settings=settings | handicap) as two:
        yield Arm("one", build, one, ()), Arm("two", build, two, ())


def rows_left(arm: Arm) -> int:
    with psycopg.connect(**arm.cluster.connect_kwargs) as connection:  # type: ignore[arg-type]  # host is a str
        found = connection.execute("SELECT count(*) FROM bench_copy").fetchone()
    assert found is not None
    count: int = found[0]
    return count


def test_arms_are_measured_and_compared(arms: tuple[Arm, ...]) -> None:
    lines: list[str] = []
    rows = run_bench(BENCH, arms, POINTS, limits=Limits(2), seconds=1, report=lines.append)
    assert [(row.case, row.arm, row.against, row.mail) for row in rows] == [
        ("10 rows, 2 clients", "two", "one", None),
        ("1000 rows, 2 clients", "two", "one", None),
    ]
    assert all(row.low <= row.ratio <= row.high < 1 for row in rows)  # the handicapped arm is the slower one
    assert all(row.median > 0 and len(row.samples) == len(row.samples_against) == 2 for row in rows)
    assert "round 2 of 2: 1000 rows, 2 clients, two" in lines


def test_each_measurement_starts_and_ends_with_an_empty_table(arms: tuple[Arm, ...]) -> None:
    arm = arms[0]
    BENCH.fill(arm, POINTS)
    BENCH.prepare(arm, POINTS)
    assert rows_left(arm) == 0
    assert BENCH.measure(arm, (1000, 1), 1) > 0
    assert rows_left(arm) == 0


def test_the_second_bench_has_the_allocators_defaults(base: Base) -> None:
    specs = [parse_arm("only=", base, FLAVORS["release"], print)]
    for bench, kept in ((CopyBench, True), (DefaultAllocatorBench, False)):
        with open_arms(specs, print, environment=bench.environment) as (arm,):
            environment = arm.cluster.environment()
        assert ("MALLOC_TRIM_THRESHOLD_" in environment, "PATH" in environment) == (kept, True)


@pytest.mark.parametrize(("bench", "persistence"), [(CopyBench(), "u"), (LoggedTableBench(), "p")])
def test_the_third_bench_has_a_logged_table(arms: tuple[Arm, ...], bench: CopyBench, persistence: str) -> None:
    bench.fill(arms[0], POINTS)
    with psycopg.connect(**arms[0].cluster.connect_kwargs) as connection:  # type: ignore[arg-type]  # host is a str
        query = "SELECT relpersistence::text FROM pg_class WHERE relname = 'bench_copy'"
        assert connection.execute(query).fetchone() == (persistence,)


def test_errors_of_pgbench_are_reported(arms: tuple[Arm, ...]) -> None:
    BENCH.fill(arms[0], [])
    with pytest.raises(BenchError, match=r"pgbench failed on arm one: .*"):
        BENCH.measure(arms[0], (77, 1), 1)
