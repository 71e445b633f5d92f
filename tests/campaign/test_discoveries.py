"""Tests of the discoveries of earlier runs, and of the time that workloads get for them."""

from collections import Counter
from dataclasses import replace

import pytest

from fuzz.campaign.counters import Counters
from fuzz.campaign.direction.direction import Direction
from fuzz.campaign.direction.discoveries import LEARNED, Discoveries, weighed
from fuzz.sources.workloads import workload_named

CASES = {"few_rows": 1000, "many_partitions": 50, "outer_joins": 400, "set_operations": 600}
EVEN = Discoveries(cases=Counter(CASES), shapes=Counter(dict.fromkeys(CASES, 100)))


def share(cases: dict[str, int], name: str) -> float:
    seconds = {each: count * workload_named(each).cpu_seconds for each, count in cases.items()}
    return seconds[name] / sum(seconds.values())


def test_shapes_of_one_statement_count_and_frequent_ones_do_not() -> None:
    counters = Counters(cases=Counter(few_rows=3, outer_joins=1))
    for shape in ("rare", "frequent", "frequent"):
        counters.count_plan("few_rows", shape)
    counters.count_plan("outer_joins", "rare")
    edges, bugs = Counter(few_rows=5), Counter(outer_joins=1)
    found = Discoveries.of(counters, edges, bugs).plus(Discoveries.of(counters, Counter(), Counter()))
    assert found.to_json() == {
        "few_rows": {"cases": 6, "plan_shapes": 2, "edges": 5, "bugs": 0},
        "outer_joins": {"cases": 2, "plan_shapes": 2, "edges": 0, "bugs": 1},
    }


def test_without_discoveries_nothing_changes() -> None:
    direction = Direction(CASES, ("directed by a function",))
    assert weighed(direction, Discoveries()) == direction
    assert weighed(direction, Discoveries(cases=Counter(CASES))) == direction
    killed = Discoveries(bugs=Counter(few_rows=1))  # before it stored any count
    assert weighed(direction, killed) == direction
    assert weighed(Direction({"few_rows": 1}), EVEN) == Direction({"few_rows": 1})


@pytest.mark.parametrize("kind", ["shapes", "edges", "bugs"])
def test_a_workload_that_found_more_in_its_time_gets_more(kind: str) -> None:
    more = replace(EVEN, **{kind: Counter(dict.fromkeys(CASES, 2) | {"outer_joins": 50})})
    direction = weighed(Direction(CASES), more)
    assert share(dict(direction.cases), "outer_joins") > share(CASES, "outer_joins")
    assert str(direction).startswith("a third by the discoveries of earlier runs: ")


def test_a_workload_that_finds_nothing_keeps_the_rest_of_its_time() -> None:
    found = replace(EVEN, shapes=Counter(outer_joins=1000))
    after = weighed(Direction(CASES), found).cases
    assert share(dict(after), "set_operations") > (1 - LEARNED) * share(CASES, "set_operations")


def test_a_new_workload_gets_about_the_mean() -> None:
    rates = EVEN.shares(dict.fromkeys((*CASES, "window_frames"), 1.0))
    assert rates["few_rows"] < rates["window_frames"] < rates["many_partitions"]  # as many shapes in less time
