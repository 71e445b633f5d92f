"""Tests of the corpus: its folders, deviations of its reproducers, and unnecessary ones."""

from dataclasses import replace
from pathlib import Path

import pytest

from fuzz.errors import CaseError
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.known_good import known_good
from fuzz.triage.corpus import Entry, Folder, needless, newer_version, place_for
from fuzz.triage.triage import with_replay_command
from oracles.model.case import Case, Step
from oracles.model.finding import Finding
from tests.triage.reduction.test_reproducer import script

CASE = Case("g", (), (Step("SELECT 1"),))
OWN = Finding("crash", ("master", "master"), "assertion", 0, "master crashes", "", "")
BUG = replace(OWN, arms=("master", "patched"), summary="patched crashes")


def entry(name: str, place: Folder, *findings: Finding, case: Case = CASE) -> Entry:
    return Entry(Path(f"{name}.sql"), place, case, findings)


@pytest.mark.parametrize(
    ("found", "deviation"),
    [
        (entry("a", Folder.FIXED), ""),
        (entry("a", Folder.UPSTREAM, OWN), ""),
        (entry("a", Folder.FIXED, OWN), "all arms show it: master crashes"),
        (entry("a", Folder.FIXED, BUG), "patched shows it: patched crashes"),
        (entry("a", Folder.UPSTREAM, OWN, BUG), "patched shows it: patched crashes"),
        (entry("a", Folder.UPSTREAM), "no arm shows it any more: move it to fixed/"),
    ],
)
def test_unexpected_findings_are_reported(found: Entry, deviation: str) -> None:
    assert found.deviation == deviation


def test_a_fault_that_a_newer_release_lacks_is_fixed_upstream() -> None:
    mended = replace(entry("a", Folder.UPSTREAM), newer="17.99")
    assert (mended.deviation, mended.remark) == ("", "fixed upstream: 17.99 does not show it")
    assert replace(entry("a", Folder.UPSTREAM, OWN), newer="17.99").remark == "as expected"
    assert replace(entry("a", Folder.FIXED, OWN), newer="17.99").deviation == "all arms show it: master crashes"
    assert replace(entry("a", Folder.UPSTREAM, OWN, BUG), newer="17.99").deviation
    good = known_good(17)
    assert newer_version([f"{good}0", f"{good}0"]) == f"{good}0"
    assert newer_version([f"{good}0", good]) == newer_version([good]) == ""


def test_the_folder_of_a_reproducer_depends_on_its_findings() -> None:
    assert place_for("0123", ()) is Folder.FIXED
    assert place_for("0123", (OWN,)) is Folder.UPSTREAM
    refused = "cannot keep finding 0123 before it is fixed: patched still shows 'patched crashes'"
    with pytest.raises(CaseError, match=refused):
        place_for("0123", (OWN, BUG))


def test_the_smallest_of_reproducers_with_equal_findings_stays() -> None:
    larger = replace(CASE, steps=CASE.steps * 2)
    small, large = entry("small", Folder.UPSTREAM, OWN), entry("large", Folder.UPSTREAM, OWN, case=larger)
    both = entry("both", Folder.UPSTREAM, OWN, replace(OWN, origin="another"), case=larger)
    assert needless([large, small]) == (large,)
    assert needless([small, both]) == ()
    assert needless([small, entry("fixed", Folder.FIXED, OWN)]) == ()


@pytest.mark.parametrize(
    ("oracle", "origin"),
    [
        ("tlp", "a query is not its three parts"),
        ("cert", "more rows expected: DISTINCT"),
        ("order", "rows that are not sorted under plan Sort, Seq Scan"),
        ("binary_format", "binary form of rows"),
    ],
)
def test_reproducers_of_one_violated_rule_may_be_of_different_faults(oracle: str, origin: str) -> None:
    violated = replace(OWN, oracle=oracle, origin=origin)
    small, large = (
        entry(str(size), Folder.UPSTREAM, violated, case=replace(CASE, steps=CASE.steps * size)) for size in (1, 2)
    )
    assert needless([small, large]) == ()
    assert needless([small, replace(small, path=Path("copy.sql"))]) != ()


def test_of_reproducers_without_findings_only_copies_are_dropped() -> None:
    fixed, other = entry("fixed", Folder.FIXED), entry("other", Folder.FIXED, case=replace(CASE, steps=CASE.steps * 2))
    copy = entry("copy", Folder.FIXED, case=replace(CASE, generator="another"))
    assert needless([fixed, other]) == ()
    assert len(needless([fixed, copy, other])) == 1


def test_a_moved_script_has_its_new_replay_command() -> None:
    arms = ArmOptions(arms=("a=\\1",))
    assert "\n--   Judge it: ./pgduel replay /x/y.sql --arm 'a=\\1'\n" in with_replay_command(
        script(), Path("/x/y.sql"), arms.command_line()
    )
