"""Tests of the bench of hash buckets on real servers, one of which has a setting for rows per bucket."""

from collections.abc import Iterator

import pytest

from fuzz.bench.bench import BenchError
from fuzz.bench.buckets import BucketsBench
from fuzz.bench.run import Limits, Row, run_bench
from fuzz.servers.arm import ArmSpec, open_arms, shipped_series
from fuzz.servers.base import Base
from fuzz.servers.flavor import FLAVORS

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

BENCH = BucketsBench(scale=0.001)
SIZE = 1407  # kB: 20,000 rows
ARMS = ("master", "upstream")


@pytest.fixture(scope="module")
def rows(base: Base) -> Iterator[list[Row]]:
    specs = [ArmSpec(name, base, shipped_series(name, base), FLAVORS["assert"]) for name in ARMS]
    settings = dict(BENCH.settings) | {"shared_buffers": "64MB"}
    with open_arms(specs, print, settings=settings) as arms:
        points = BENCH.points({"size": [SIZE], "ntup": [1, 10]})
        yield run_bench(BENCH, arms, points, limits=Limits(2), seconds=0, report=lambda _: None)


def test_buckets_follow_the_setting_of_an_arm_that_has_it(rows: list[Row]) -> None:
    one, ten = rows
    assert (one.case, ten.case) == ("1.4 MB, NTUP 1", "1.4 MB, NTUP 10")
    assert [row.extras["master buckets"] for row in rows] == [32768, 2048]
    assert [row.extras["buckets"] for row in rows] == [32768, 32768]


def test_the_hash_table_has_the_mails_size(rows: list[Row]) -> None:
    assert [row.extras["master kB"] for row in rows] == pytest.approx([SIZE, SIZE], rel=0.02)
    assert rows[0].extras["kB"] == rows[0].extras["master kB"] + 32768 * 8 // 1024


def test_the_mails_figures_are_for_one_row_per_bucket(rows: list[Row]) -> None:
    assert [row.mail for row in rows] == [1, pytest.approx(0.537, abs=0.001)]
    assert rows[0].extras["master with N = 1"] == 1


@pytest.mark.parametrize("size", [9, 703_126 + 70])
def test_sizes_that_the_mails_table_cannot_have_are_refused(size: int) -> None:
    with pytest.raises(BenchError, match=f"a hash table of {size} kB is out of range; give a size from 70 to 703125"):
        BENCH.points({"size": [size], "ntup": [1]})
