"""A campaign's cases depend on its seed and number alone, whatever happened in between."""

from hypothesis import given
from hypothesis import strategies as st

from fuzz.campaign.schedule import Range, Schedule
from oracles.model.case import CaseId


def _all_ids(schedule: Schedule, seed: int = 1) -> list[CaseId]:
    found: list[CaseId] = []
    while (given_out := schedule.next()) is not None:
        found.extend(given_out.case_ids(seed))
    return found


@given(cases=st.integers(0, 200), generators=st.integers(1, 3))
def test_hands_out_exactly_as_many_cases_as_asked(cases: int, generators: int) -> None:
    names = tuple("abc"[:generators])
    found = _all_ids(Schedule(names, cases, {}))
    assert len(found) == len(set(found)) == cases


def test_generators_take_turns() -> None:
    schedule = Schedule(("joins", "copy"), None, {})
    ranges = [schedule.next() for _ in range(4)]
    assert [(each.generator, each.first) for each in ranges if each] == [
        ("joins", 0),
        ("copy", 0),
        ("joins", 8),
        ("copy", 8),
    ]


@given(cases=st.integers(1, 100), interruptions=st.lists(st.tuples(st.integers(0, 15), st.integers(0, 8)), max_size=6))
def test_a_resumed_campaign_does_the_cases_that_are_left(cases: int, interruptions: list[tuple[int, int]]) -> None:
    whole = Schedule(("a", "b"), cases, {})
    ranges: dict[int, Range] = {}
    while (each := whole.next()) is not None:
        ranges[each.number] = each
    done = {
        number: min(count, ranges[number].end - ranges[number].first)
        for number, count in interruptions
        if number in ranges
    }
    before = [case_id for number, count in done.items() for case_id in list(ranges[number].case_ids(1))[:count]]
    after = _all_ids(Schedule(("a", "b"), cases, done))
    assert sorted(map(str, before + after)) == sorted(map(str, _all_ids(Schedule(("a", "b"), cases, {}))))


def test_what_a_worker_left_is_given_out_before_anything_new() -> None:
    schedule = Schedule(("a",), None, {})
    first = schedule.next()
    assert first is not None
    schedule.give_back(first.after(3))
    schedule.give_back(first.after(8))  # nothing left
    assert schedule.next() == Range(0, "a", 3, 8)
    assert schedule.next() == Range(1, "a", 8, 16)
