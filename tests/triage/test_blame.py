"""Tests of blame: the prefixes that are tried, and the patch that follows from them."""

from collections.abc import Set
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz import documents
from fuzz.triage.blame import ALWAYS, PROBES, Blame, series_to_blame, tries_for, try_prefixes
from fuzz.triage.interestingness import ReducedCase
from fuzz.triage.reproducer.reproducer import noted, parse
from oracles.model.case import Case
from oracles.model.finding import Finding
from tests.triage.reduction.test_reproducer import CASE, script

SERIES = tuple(f"000{number}.patch" for number in range(1, 6))
FINDING = Finding("result", ("master", "patched"), "rows", 0, "", "", "")


def blame(
    showing: Set[int], length: int = 5, *, among: Set[int] | None = None, likely_good: int | None = None
) -> Blame:
    """Return the blame for a finding that prefixes of these lengths show."""
    lengths = sorted(among if among is not None else range(length + 1))
    tried = try_prefixes(lambda each: each in showing, lengths, likely_good)
    decided = tuple((each, bool(shows)) for each, shows in tried.items())
    return Blame("patched", tuple(f"000{number}.patch" for number in range(1, length + 1)), decided)


@given(st.data())
def test_the_first_patch_with_the_finding_is_blamed(data: st.DataObject) -> None:
    length = data.draw(st.integers(1, 300))
    first = data.draw(st.integers(0, length))
    likely_good = data.draw(st.none() | st.integers(0, length))
    found = blame(set(range(first, length + 1)), length, likely_good=likely_good)
    assert found.first == first
    assert found.patches == (() if first == 0 else (f"000{first}.patch",))
    assert not found.exceptions
    assert len(found.tried) <= 3 + length.bit_length() + PROBES


@given(st.data())
def test_blame_has_only_prefixes_that_were_tried(data: st.DataObject) -> None:
    showing = data.draw(st.sets(st.integers(0, 8)))
    among = data.draw(st.sets(st.integers(0, 8), min_size=1))
    found = blame(showing, 8, among=among)
    assert all(shows == (length in showing) for length, shows in found.tried)
    assert found.first is None or found.first in showing & among
    assert documents.loads(documents.dumps(found), Blame) == found


@given(st.data())
def test_prefixes_that_do_not_compile_are_left_out(data: st.DataObject) -> None:
    length = data.draw(st.integers(1, 40))
    first = data.draw(st.integers(0, length))
    uncompiled = data.draw(st.sets(st.integers(1, length - 1))) if length > 1 else set()
    tried = try_prefixes(lambda each: None if each in uncompiled else each >= first, range(length + 1))
    decided = {each: shows for each, shows in tried.items() if shows is not None}
    found = Blame("patched", tuple(f"{number}.patch" for number in range(1, length + 1)), tuple(decided.items()))
    compiled = [each for each in range(length + 1) if each not in uncompiled]
    assert decided.keys() <= set(compiled)
    assert found.first == next(each for each in compiled if each >= first)
    assert first == 0 or f"{first}.patch" in found.patches
    assert len(found.patches) == (0 if first == 0 else found.first - max(each for each in compiled if each < first))


def test_a_finding_that_does_not_occur_again_has_no_patch_to_blame() -> None:
    found = blame(set())
    assert found.tried == ((5, False),)
    assert str(found) == "unknown, the finding did not occur again"


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (blame({3, 4, 5}), "0003.patch, number 3 of the 5 patches of patched"),
        (blame({0, 1, 2, 3, 4, 5}), "upstream, patched shows it without any patch"),
        (blame({3, 5}), "0005.patch, number 5 of the 5 patches of patched; but it also occurs with only the first 3"),
        (blame({1, 5}), "but it also occurs with only the first 1"),
        (blame({3, 4, 5}, among={0, 5}), "one of the patches 1 to 5 of patched, pgduel blame narrows it down"),
        (blame({3, 4, 5}, among={2, 5}), "one of the patches 3 to 5 of patched, pgduel blame narrows it down"),
        (
            replace(blame({3, 4, 5}, among={0, 1, 3, 4, 5}), uncompiled=(2,)),
            "one of the patches 2 to 3 of patched, which does not compile with only the first 2",
        ),
        (replace(blame({4, 5}, among={1, 4, 5}), uncompiled=(3,)), "patches 2 to 4 of patched, pgduel blame narrows"),
        (blame({1}, 1, among={1}), "upstream or 0001.patch of patched, pgduel blame narrows it down"),
        (
            blame({3, 5}, among={3, 5}),
            "upstream or one of the first 3 patches of patched, pgduel blame narrows it down",
        ),
        (blame({5}, among={4, 5}, likely_good=4), "0005.patch, number 5 of the 5 patches of patched"),
        (
            Blame("on", ("0001.patch",), (), "off: x=off; on: none"),
            "no patch, both arms are one build and differ only in settings (off: x=off; on: none)",
        ),
        (
            Blame("on", ("0001.patch",), ((0, True), (1, True)), "off: x=off; on: none"),
            "upstream or the settings (off: x=off; on: none), on shows it without any patch",
        ),
    ],
)
def test_the_text_has_exceptions_and_untried_prefixes(found: Blame, text: str) -> None:
    assert text in str(found)


def test_settings_are_no_patch_and_no_fault_of_upstream() -> None:
    found = Blame("on", ("0001.patch",), (), "off: x=off; on: none")
    assert (found.first, found.patches, found.key) == (None, (), "settings")
    assert replace(found, tried=((0, True), (1, True))).key == "settings"
    assert replace(found, tried=((0, False), (1, True))).key == "0001.patch"


def test_the_reference_arms_own_tree_is_tried_first() -> None:
    tried: list[int] = []

    def shows(length: int) -> bool:
        tried.append(length)
        return length == 6

    try_prefixes(shows, range(7), likely_good=5)
    assert tried[:2] == [6, 5]
    assert len(tried) == 2


def never() -> dict[int, bool]:
    raise AssertionError


def test_a_patch_of_the_reference_is_blamed_if_the_suspect_needs_none() -> None:
    def own() -> dict[int, bool]:
        return {0: True, 5: True}

    def not_own() -> dict[int, bool]:
        return {0: False, 5: True}

    assert series_to_blame(own, not_own) == (1, not_own())
    assert series_to_blame(own, own) == (0, own())  # neither arm needs patches: a fault of upstream
    assert series_to_blame(own, None) == (0, own())  # there is only one arm
    assert series_to_blame(own, lambda: {5: True}) == (0, own())  # the other arm's base is not built
    assert series_to_blame(not_own, never) == (0, not_own())


def test_the_suspects_series_is_blamed_if_its_tree_without_the_last_patch_agrees() -> None:
    tried = {0: True, 9: False, 10: True}
    assert series_to_blame(lambda: tried, never) == (0, tried)


def test_rare_findings_are_tried_more_often() -> None:
    case = Case("g", (), ())
    always, half, hardly = (tries_for(ReducedCase(case, FINDING, shown, 30)) for shown in (30, 15, 1))
    assert always == ALWAYS
    assert 0.5**half <= 0.01 < 0.5 ** (half - 1)
    assert (29 / 30) ** hardly <= 0.01 < (29 / 30) ** (hardly - 1)


def test_a_script_has_the_blame_and_the_same_case() -> None:
    first = noted(script(), {"shows": "shows in 2 of 7 runs", "blame": f"one of the patches {'1 and ' * 40} 5"})
    again = noted(first, {"blame": "0003.patch"})
    assert "\n--   shows     shows in 2 of 7 runs\n" in again
    assert again.count("--   blame     ") == 1
    assert "\n--   blame     0003.patch\n" in again
    assert "1 and" not in again
    assert parse(first) == parse(again) == CASE
    assert again.startswith(script().partition("\n--   arm")[0])


def test_a_script_without_a_header_is_unchanged() -> None:
    assert noted("SELECT 1;\n", {"blame": "0003.patch"}) == "SELECT 1;\n"


def test_a_rebased_commit_is_the_same_cause() -> None:
    before, after = (
        Blame("patched", (f"{commit}-Fix-it",), ((0, False), (1, True))) for commit in ("0" * 12, "a" * 12)
    )
    assert before.key == after.key == "Fix-it"
