"""Runs of a continuous campaign: their seeds, what they know, and the history of bugs."""

from dataclasses import replace
from pathlib import Path

import pytest

from fuzz import workdir
from fuzz.campaign.continuous import (
    BugStatus,
    Run,
    claimed,
    history,
    keep_plan,
    kept_plan,
    names,
    next_plan,
    process_of,
    stop,
)
from fuzz.campaign.known import KnownFault
from fuzz.campaign.plan import Plan
from fuzz.errors import CaseError
from fuzz.servers.arm_options import ArmOptions
from fuzz.triage.reduced_case import ReducedCase
from fuzz.triage.stored_finding import StoredFinding
from oracles.model.case import Case
from oracles.model.finding import Finding

PLAN = Plan(1, {}, None, None, stop_at_first=False, arms=ArmOptions(), name="nightly")
CASE = Case("x", (), ())


def found(origin: str, *, reduced: bool) -> StoredFinding:
    finding = Finding("result", ("a", "b"), origin, None, "1 row missing", "", "")
    least = ReducedCase(CASE, replace(finding, origin="one plan"), 3, 3)
    return StoredFinding(finding, "1/x/1", CASE, 2, None, reduced, least if reduced else None)


def run(number: int, *findings: StoredFinding) -> Run:
    return Run(str(number), replace(PLAN, seed=number), 3600.0, 100, 10_000, "time is up", findings)


def test_the_next_run_has_the_next_seed_and_knows_the_reduced_bugs() -> None:
    reduced, cut_off = found("x", reduced=True), found("y", reduced=False)
    expected = KnownFault("0123456789ab")
    plan = replace(PLAN, known=(expected,))
    assert next_plan(plan, (), 5).seed == 1
    following = next_plan(plan, (run(4, reduced), run(6, cut_off, found("x", reduced=False))), 5)
    assert (following.seed, following.minutes) == (7, 5)
    assert following.known == (expected, KnownFault(reduced.finding.fingerprint, link="campaign 4"))


def test_bugs_have_a_history() -> None:
    first, again, lost = found("x", reduced=True), found("x", reduced=False), found("y", reduced=False)
    new = found("z", reduced=False)
    bugs = history([run(1, first, lost), run(2, again), run(3, again, new)])
    assert [(bug.first, bug.last, bug.cases, bug.status) for bug in bugs] == [
        ("3", "3", 2, BugStatus.NEW),
        ("1", "1", 2, BugStatus.NOT_SEEN),
        ("1", "3", 6, BugStatus.STILL_THERE),
    ]
    assert bugs[-1].finding == first


def test_findings_of_one_bug_are_one_line() -> None:
    (bug,) = history([run(1, found("x", reduced=True)), run(2, found("y", reduced=True))])
    assert (bug.first, bug.last, bug.cases) == ("1", "2", 4)


@pytest.fixture
def own_campaigns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workdir, "campaigns", lambda: tmp_path)


@pytest.mark.usefixtures("own_campaigns")
def test_options_are_kept() -> None:
    assert names() == ()
    with pytest.raises(CaseError, match=r"no campaign is called nightly; .* has: none yet"):
        kept_plan("nightly")
    keep_plan(PLAN)
    assert names() == ("nightly",)
    assert kept_plan("nightly") == PLAN


@pytest.mark.usefixtures("own_campaigns")
def test_one_process_runs_a_campaign() -> None:
    with pytest.raises(CaseError, match="campaign nightly does not run"):
        stop("nightly")
    with claimed("nightly"):
        assert process_of("nightly") is not None
        with pytest.raises(CaseError, match="campaign nightly runs already"), claimed("nightly"):
            pass
    assert process_of("nightly") is None


@pytest.mark.parametrize("name", ["", "7", "last", "a/b", "../x", "a b"])
def test_a_bad_name_is_refused(name: str) -> None:
    with pytest.raises(CaseError, match="is no name"), claimed(name):
        pass
