"""Tests of the Bloom filter bench on a real server: its queries join in batches, with separate figures of spills."""

from collections.abc import Iterator

import pytest

from fuzz.bench.bloom import FLOOR, BloomBench, Join
from fuzz.bench.run import Limits, Row, run_bench
from fuzz.servers.arm import Arm
from fuzz.servers.build import Build
from fuzz.servers.cluster import Cluster

pytestmark = pytest.mark.servers

SCALE = 0.003  # 30,000 rows joined to 300,000
FACT = 300_000


@pytest.fixture(scope="module", params=list(Join))
def rows(build: Build, request: pytest.FixtureRequest) -> Iterator[list[Row]]:
    bench = BloomBench(request.param, SCALE)
    settings = dict(bench.settings) | {"shared_buffers": "64MB"}
    with Cluster(build, "one", settings=settings) as one, Cluster(build, "two", settings=settings) as two:
        arms = (Arm("one", build, one, ()), Arm("two", build, two, ()))
        points = bench.points({"work_mem": [64, FLOOR], "limit": [8]})
        yield run_bench(bench, arms, points, limits=Limits(2), seconds=0, report=lambda _: None)


def test_equal_arms_spill_equally_and_only_in_little_memory(rows: list[Row]) -> None:
    spilling, floor = rows
    batches = spilling.extras["batches"]
    assert batches > 1
    assert spilling.extras["temp"] == spilling.extras["outer temp"] == 1
    assert spilling.extras["rows spilled"] == pytest.approx(FACT * (1 - 1 / batches), rel=0.02)
    assert spilling.extras["to floor"] == pytest.approx(spilling.median / floor.median_against)
    assert (floor.extras["batches"], floor.extras["rows spilled"], floor.extras["to floor"] > 0) == (1, 0, True)
