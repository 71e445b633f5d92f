"""Tests of the schedule: its cases depend on weights and their number alone, also after interruptions."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.campaign.schedule import RANGE_SIZE, Range, Schedule, next_cases
from oracles.model.case import CaseId

EQUAL = {"a": 1, "b": 1}
WEIGHTS = st.lists(st.integers(1, 300), min_size=1, max_size=4).map(lambda each: dict(zip("abcd", each, strict=False)))


def _ranges(schedule: Schedule) -> list[Range]:
    return list(iter(schedule.next, None))


def _all_ids(schedule: Schedule, seed: int = 1) -> list[CaseId]:
    return [case_id for each in _ranges(schedule) for case_id in each.case_ids(seed)]


@given(cases=st.integers(0, 200), weights=WEIGHTS)
def test_the_number_of_cases_is_exact(cases: int, weights: Mapping[str, int]) -> None:
    found = _all_ids(Schedule(weights, cases, {}))
    assert len(found) == len(set(found)) == cases


def test_generators_of_equal_weight_take_turns() -> None:
    ranges = islice(iter(Schedule({"joins": 1, "copy": 1}, None, {}).next, None), 6)
    assert [(each.generator, each.first) for each in ranges] == [
        ("joins", 0),
        ("copy", 0),
        ("joins", 1),
        ("copy", 1),
        ("joins", 2),
        ("copy", 2),
    ]


@given(cases=st.integers(1, 500), weights=WEIGHTS)
def test_numbers_of_cases_are_in_the_ratio_of_the_weights(cases: int, weights: Mapping[str, int]) -> None:
    counts = Counter(case_id.generator for case_id in _all_ids(Schedule(weights, cases, {})))
    turns = [Fraction(counts[name], weight) for name, weight in weights.items()]
    one_range = max(Fraction(1, min(weights.values())), Fraction(RANGE_SIZE, max(weights.values())))
    assert max(turns) - min(turns) <= one_range


def test_a_generator_of_small_weight_has_small_ranges_after_its_share_of_the_others() -> None:
    ranges = _ranges(Schedule({"small": 1, "large": 20}, 42, {}))
    assert [(each.generator, each.first, each.end) for each in ranges] == [
        ("large", 0, 1),
        ("large", 1, 2),
        ("large", 2, 4),
        ("large", 4, 8),
        ("large", 8, 16),
        ("small", 0, 1),
        ("large", 16, 24),
        ("large", 24, 32),
        ("small", 1, 2),
        ("large", 32, 40),
    ]


@given(
    cases=st.integers(1, 100),
    more=st.integers(0, 50),
    weights=WEIGHTS,
    interruptions=st.lists(st.tuples(st.integers(0, 15), st.integers(0, 8)), max_size=6),
)
def test_a_resumed_campaign_runs_the_remaining_cases(
    cases: int, more: int, weights: Mapping[str, int], interruptions: list[tuple[int, int]]
) -> None:
    """The resumed campaign may have a higher number of cases."""
    ranges = {each.number: each for each in _ranges(Schedule(weights, cases, {}))}
    done = {
        number: min(count, ranges[number].end - ranges[number].first)
        for number, count in interruptions
        if number in ranges
    }
    before = [case_id for number, count in done.items() for case_id in list(ranges[number].case_ids(1))[:count]]
    after = _all_ids(Schedule(weights, cases + more, done))
    assert sorted(map(str, before + after)) == sorted(map(str, _all_ids(Schedule(weights, cases + more, {}))))


@pytest.mark.parametrize("weights", [EQUAL, {"a": 2, "b": 7, "c": 1}])
def test_a_higher_number_of_cases_appends_cases(weights: Mapping[str, int]) -> None:
    assert _all_ids(Schedule(weights, 33, {})) == _all_ids(Schedule(weights, 100, {}))[:33]


def test_first_cases_precede_all_others() -> None:
    found = _ranges(Schedule({"a": 1, "b": 3}, 9, {}, first={"a": 2}))
    assert found[:2] == [Range(0, "a", 0, 1), Range(1, "a", 1, 2)]
    assert {each.generator for each in found[2:4]} == {"b"}
    assert [each.number for each in found] == list(range(len(found)))
    assert _all_ids(Schedule({"a": 1, "b": 3}, 9, {0: 1, 1: 1}, first={"a": 2})) == [
        case_id for each in found[2:] for case_id in each.case_ids(1)
    ]


@given(weights=WEIGHTS, begin=st.integers(1, 500))
def test_a_generator_may_begin_with_a_later_case(weights: Mapping[str, int], begin: int) -> None:
    usual = _all_ids(Schedule(weights, 60, {}))
    later = [replace(each, index=each.index + begin) if each.generator == "a" else each for each in usual]
    assert _all_ids(Schedule(weights, 60, {}, begin={"a": begin})) == later


@given(weights=WEIGHTS, first=st.integers(0, 5), begin=st.integers(0, 9), ranges=st.integers(0, 12), data=st.data())
def test_the_next_run_begins_with_the_first_case_that_was_left(
    weights: Mapping[str, int], first: int, begin: int, ranges: int, data: st.DataObject
) -> None:
    """The workers of the last run may have left any ranges unfinished."""
    numbers, starts = {"a": first}, {"a": begin}
    given_out = _ranges(Schedule(weights, 200, {}, first=numbers, begin=starts))[:ranges]
    done = {each.number: data.draw(st.integers(0, each.end - each.first)) for each in given_out}
    ran = {str(case) for each in given_out for case in list(each.case_ids(1))[: done[each.number]]}
    for name, index in next_cases(weights, done, numbers, starts).items():
        assert {str(CaseId(1, name, each)) for each in range(starts.get(name, 0), index)} <= ran
        assert str(CaseId(1, name, index)) not in ran


def test_the_rest_of_a_range_precedes_new_ranges() -> None:
    schedule = Schedule({"a": 1}, None, {})
    *_, last = islice(iter(schedule.next, None), 4)
    assert last == Range(3, "a", 4, 8)
    schedule.give_back(last.after(3))
    schedule.give_back(last.after(4))  # nothing left
    assert schedule.next() == Range(3, "a", 7, 8)
    assert schedule.next() == Range(4, "a", 8, 16)
