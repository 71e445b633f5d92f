"""Tests of the benches of remote sampling on real servers, one of which has no sampling."""

from collections.abc import Iterator

import pytest

from fuzz.bench.fdw import ANALYZE_METHODS, FdwAnalyzeBench, FdwSamplingBench
from fuzz.bench.run import Limits, run_bench
from fuzz.servers.arm import Arm, shipped_series
from fuzz.servers.base import Base
from fuzz.servers.build import Build, ensure_build
from fuzz.servers.cluster import Cluster
from fuzz.servers.flavor import FLAVORS
from fuzz.servers.series import apply_series

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

SETTINGS = dict(FdwAnalyzeBench.settings) | {"shared_buffers": "64MB"}


@pytest.fixture
def arms(base: Base, build: Build) -> Iterator[tuple[Arm, ...]]:
    """Return an arm that has no option for sampling, and one that samples."""
    tree = apply_series(base.tree, shipped_series("master", base))[-1]
    reading = ensure_build(tree, FLAVORS["assert"], print)
    with Cluster(reading, "reads", settings=SETTINGS) as one, Cluster(build, "samples", settings=SETTINGS) as two:
        yield Arm("reads", reading, one, ()), Arm("samples", build, two, ())


def test_each_method_is_compared_with_reading_everything(arms: tuple[Arm, ...]) -> None:
    bench = FdwAnalyzeBench()
    points = bench.points({"rows": [20_000], "target": [10], "method": []})
    rows = run_bench(bench, arms, points, limits=Limits(2), seconds=0, report=lambda _: None)
    assert [row.case for row in rows] == [f"20000 rows, target 10, {method}" for method in ANALYZE_METHODS]
    off = next(row for row in rows if row.case.endswith("off"))
    assert off.extras["to off"] == 1
    assert all(row.extras["to off"] > 0 and row.extras["to local"] > 0 for row in rows)


def test_costs_per_row_are_measured(arms: tuple[Arm, ...]) -> None:
    bench = FdwSamplingBench()
    points = bench.points({"rows": [20_000], "percent": [10, 90]})
    assert len(points) == 2 + 3 * 2 * 2  # reading everything has no percentage
    rows = {row.case: row for row in run_bench(bench, arms, points, limits=Limits(2), seconds=0, report=lambda _: None)}
    direct, foreign = (rows[f"20000 rows, bernoulli 10 %, {through}"] for through in ("direct", "foreign"))
    assert direct.extras["us/row read"] == pytest.approx(direct.median * 1000 / 20_000)
    assert direct.extras["mail us/row read"] == 0.2
    assert foreign.extras["to full"] > 0
    assert {"us/row sent", "mail us/row sent"} < foreign.extras.keys()
