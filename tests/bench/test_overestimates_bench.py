"""Tests of the bench of overestimated inner sides, on a real server: few rows are hashed, though many are expected."""

from collections.abc import Iterator

import pytest

from fuzz.bench.bench import all_benches
from fuzz.bench.overestimates import OverestimatedBloomBench, OverestimatedBucketsBench
from fuzz.bench.run import Limits, Row, run_bench
from fuzz.servers.arm import Arm
from fuzz.servers.build import Build
from fuzz.servers.cluster import Cluster

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]


@pytest.fixture(scope="module", params=[OverestimatedBucketsBench, OverestimatedBloomBench])
def rows(build: Build, request: pytest.FixtureRequest) -> Iterator[dict[str, Row]]:
    bench = request.param(outer=20_000)
    settings = dict(bench.settings)
    with Cluster(build, "one", settings=settings) as one, Cluster(build, "two", settings=settings) as two:
        arms = (Arm("one", build, one, ()), Arm("two", build, two, ()))
        points = bench.points({"rows": [1_000], "expected": [10**4, 10**8]})
        found = run_bench(bench, arms, points, limits=Limits(2), seconds=0, report=lambda _: None)
        yield {row.case: row for row in found}


def test_each_estimate_is_measured_with_one_hash_table_and_with_a_shared_one(rows: dict[str, Row]) -> None:
    labels = [f"1000 rows, {expected} expected" for expected in (10**4, 10**8)]
    assert list(rows) == [f"{label}{shared}" for label in labels for shared in ("", ", 3 processes")]


def test_batches_follow_the_estimate(rows: dict[str, Row]) -> None:
    batches = {case: (row.extras["batches"], row.extras["one batches"]) for case, row in rows.items()}
    for case, (mine, theirs) in batches.items():
        assert mine == theirs
        assert (mine > 1) == ("100000000" in case)


def test_memory_of_equal_arms_is_nearly_equal(rows: dict[str, Row]) -> None:
    for case, row in rows.items():
        assert row.extras["table"] == pytest.approx(1, abs=0.1)
        assert ("peak" in row.extras) == ("processes" not in case)
        if "peak" in row.extras:
            assert row.extras["peak"] == row.extras["peak kB"] / row.extras["one peak kB"]
            assert row.extras["peak"] == pytest.approx(1, abs=0.1)
            assert row.extras["peak kB"] > row.extras["table kB"] > 0


def test_the_mails_benches_have_no_figures_for_overestimates() -> None:
    benches = all_benches()
    for name in ("bloom", "buckets"):
        mail = benches[f"overestimated_{name}"].mail
        assert (mail.message_id, dict(mail.ratios)) == (benches[name].mail.message_id, {})
