"""Tests of the runs of a continuous campaign: seeds, known faults, and the history of bugs."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fuzz import workdir
from fuzz.campaign.bug_history import BugStatus, CampaignRun, history, to_replay
from fuzz.campaign.continuous import (
    claimed,
    keep_plan,
    kept_plan,
    left_over,
    names,
    next_plan,
    process_of,
    stop,
)
from fuzz.campaign.known import KnownFault
from fuzz.campaign.plan import Plan
from fuzz.errors import CaseError
from fuzz.servers.arm_options import ArmOptions
from fuzz.triage.blame import Blame
from fuzz.triage.findings import StoredFinding
from fuzz.triage.interestingness import ReducedCase
from fuzz.triage.replays import KnownFinding, ReplayResult
from oracles.model.case import Case
from oracles.model.finding import Finding
from tests.cli.preloaded import PreloadedCommand

PLAN = Plan(1, {}, None, None, stop_at_first=False, arms=ArmOptions(), name="nightly")
CASE = Case("x", (), ())


BUILDS, FIXED = {"a": "0", "b": "1"}, {"a": "0", "b": "2"}


BLAME = Blame("b", ("0001.patch",), ((0, False), (1, True)))


def found(origin: str, *, reduced: bool) -> StoredFinding:
    finding = Finding("result", ("a", "b"), origin, None, "1 row missing", "", "")
    least = ReducedCase(CASE, replace(finding, origin=f"least {origin[0]}"), 3, 3)
    found = StoredFinding(finding, "1/x/1", CASE, 2, None, reduced)
    return replace(found, smallest=least, blame=BLAME) if reduced else found


def run(
    number: int, *findings: StoredFinding, builds: Mapping[str, str] = BUILDS, replays: Sequence[ReplayResult] = ()
) -> CampaignRun:
    plan = replace(PLAN, seed=number)
    return CampaignRun(str(number), plan, 3600.0, 100, 10_000, "time is up", findings, builds, tuple(replays))


def replayed(found: StoredFinding, *, shown: bool, of_base: bool = False) -> ReplayResult:
    return ReplayResult(found.finding.fingerprint, shown, of_base)


def test_the_next_run_has_the_next_seed_and_knows_the_reduced_bugs() -> None:
    reduced, cut_off = found("x", reduced=True), found("y", reduced=False)
    expected, arms = KnownFault("0123456789ab"), ArmOptions(base="pg18")
    plan = replace(PLAN, known=(expected,))
    assert next_plan(plan, (), arms, 5).seed == 1
    following = next_plan(plan, (run(4, reduced), run(6, cut_off, found("x", reduced=False))), arms, 5)
    assert (following.seed, following.minutes, following.arms) == (7, 5, arms)
    assert following.known == (expected, KnownFault(reduced.finding.fingerprint, link="campaign 4"))


def test_a_finding_without_proof_or_blame_is_not_known_to_the_next_run() -> None:
    reduced = found("x", reduced=True)
    never_again = replace(reduced, smallest=ReducedCase(CASE, reduced.finding, 0, 20), blame=None)
    for each in (never_again, replace(reduced, blame=None)):
        assert next_plan(PLAN, (run(1, each),), ArmOptions(), 5).known == ()
    again = next_plan(PLAN, (run(1, never_again), run(2, reduced)), ArmOptions(), 5)
    assert again.known == (KnownFault(reduced.finding.fingerprint, link="campaign 2"),)
    assert [each.found for each in to_replay((run(1, never_again), run(2, reduced)), FIXED, ())] == [
        replace(reduced, count=4)
    ]


def test_a_fixed_bug_is_not_known_to_the_next_run() -> None:
    """Another bug may have its fingerprint."""
    bug = found("x", reduced=True)
    runs = [run(1, bug), run(2, builds=FIXED, replays=[replayed(bug, shown=False)])]
    assert next_plan(PLAN, runs, ArmOptions(), 5).known == ()
    other = replace(bug, blame=Blame("b", ("0001.patch", "0002.patch"), ((1, False), (2, True))))
    new, fixed = history([*runs, run(3, other, builds=FIXED)])
    assert (new.status, new.finding.blame, fixed.status) == (BugStatus.NEW, other.blame, BugStatus.FIXED)
    assert next_plan(PLAN, [*runs, run(3, other, builds=FIXED)], ArmOptions(), 5).known


def test_bugs_have_a_history() -> None:
    first, again, lost = found("x", reduced=True), found("x", reduced=False), found("y", reduced=False)
    new = found("z", reduced=False)
    bugs = history([run(1, first, lost), run(2, again), run(3, again, new)])
    assert [(bug.first, bug.last, bug.cases, bug.status) for bug in bugs] == [
        ("3", "3", 2, BugStatus.NEW),
        ("1", "1", 2, BugStatus.NOT_SEEN),
        ("1", "3", 6, BugStatus.STILL_THERE),
    ]
    assert bugs[-1].finding == replace(first, count=6)


def test_replays_on_other_builds_fix_a_bug_and_bring_it_back() -> None:
    bug = found("x", reduced=True)
    runs = [
        run(1, bug),
        run(2, builds=FIXED, replays=[replayed(bug, shown=False)]),
        run(3, builds=FIXED),
        run(4, replays=[replayed(bug, shown=True)]),
        run(5),
        run(6, found("x", reduced=False)),
    ]
    statuses = ["new", "fixed", "fixed", "back again", "not seen again", "still there"]
    assert [history(runs[:number])[0].status for number in range(1, 7)] == statuses
    (bug_of_all,) = history(runs)
    assert (bug_of_all.first, bug_of_all.last, bug_of_all.cases) == ("1", "6", 4)
    assert [(each.revision, each.first, each.last, each.status) for each in bug_of_all.revisions] == [
        ("1", "1", "1", BugStatus.NEW),
        ("2", "2", "3", BugStatus.FIXED),
        ("1", "4", "6", BugStatus.BACK_AGAIN),
    ]


def test_a_case_that_shows_a_bug_outweighs_a_replay_that_does_not() -> None:
    bug = found("x", reduced=True)
    (only,) = history([run(1, bug), run(2, bug, builds=FIXED, replays=[replayed(bug, shown=False)])])
    assert only.status is BugStatus.STILL_THERE


def test_a_bug_that_was_fixed_is_not_seen_on_builds_without_evidence() -> None:
    bug = found("x", reduced=True)
    (only,) = history([run(1, bug), run(2, builds=FIXED, replays=[replayed(bug, shown=False)]), run(3)])
    assert only.status is BugStatus.NOT_SEEN


def test_the_last_replay_decides_whether_the_base_has_a_bug() -> None:
    bug = found("x", reduced=True)
    runs = [
        run(1, bug),
        run(2, builds=FIXED, replays=[replayed(bug, shown=True, of_base=True)]),
        run(3, found("x", reduced=False), builds=FIXED),
        run(4, replays=[replayed(bug, shown=True)]),
    ]
    assert [history(runs[:number])[0].of_base for number in range(1, 5)] == [False, True, True, False]
    blamed = replace(bug, blame=Blame("b", ("0001.patch",), ((0, True), (1, True))))
    assert history([run(1, blamed)])[0].of_base


def test_bugs_are_replayed_on_builds_that_differ_from_their_last_evidence() -> None:
    bug, other_case, cut_off = found("x", reduced=True), found("xx", reduced=True), found("y", reduced=False)
    runs = [run(1, bug, cut_off), run(2, other_case)]
    assert to_replay(runs, BUILDS, ()) == ()
    tried_on_fixed = (KnownFinding(bug, BUILDS), KnownFinding(other_case, BUILDS), KnownFinding(cut_off, BUILDS))
    assert to_replay(runs, FIXED, ()) == tried_on_fixed
    assert to_replay(runs, {"a": "0", "c": "1"}, ()) == ()  # it has no such arm
    expected = [KnownFault(each.finding.fingerprint) for each in (bug, cut_off)]
    assert to_replay(runs, FIXED, expected) == tried_on_fixed[:2]
    tried = [*runs, run(3, builds=FIXED, replays=[replayed(bug, shown=False)])]
    assert [each.found for each in to_replay(tried, FIXED, ())] == [other_case, cut_off]
    assert [bug.status for bug in history(tried)] == [BugStatus.NOT_SEEN] * 2  # a replay is missing
    tried.append(run(4, builds=FIXED, replays=[replayed(other_case, shown=False)]))
    assert [each.found for each in to_replay(tried, FIXED, ())] == [cut_off]
    assert [bug.status for bug in history(tried)] == [BugStatus.NOT_SEEN, BugStatus.FIXED]
    assert [each.found for each in to_replay(tried, BUILDS, ())] == [bug, other_case]
    assert to_replay([*tried, run(5, bug)], BUILDS, ()) == ()


def test_the_next_run_takes_over_what_the_last_one_did_not_reduce() -> None:
    new, done = found("r", reduced=False), found("s", reduced=True)
    waiting, tried = (replace(found(name, reduced=False), count=0) for name in ("t", "u"))
    tried = replace(tried, smallest=tried.least)
    runs = [run(1, new), run(2, new, done, waiting, tried)]
    assert left_over(runs, BUILDS) == (new, waiting)
    assert left_over(runs, FIXED) == left_over([], BUILDS) == ()


def test_a_finding_that_was_only_taken_over_is_no_evidence() -> None:
    new = found("r", reduced=False)
    runs = [run(1, new), run(2, replace(new, count=0), builds=FIXED)]
    (bug,) = history(runs)
    assert (bug.status, bug.last, bug.cases) == (BugStatus.NOT_SEEN, "1", 2)
    confirmed = replace(found("r", reduced=True), count=0)
    (bug,) = history([*runs[:1], run(2, confirmed)])
    assert (bug.status, bug.last, bug.finding.reduced) == (BugStatus.STILL_THERE, "2", True)
    assert [bug.last for bug in history(runs[1:])] == ["2"]  # the earlier run was deleted


def test_a_run_is_called_by_its_commits_or_its_build() -> None:
    pinned = ArmOptions(repo="/src", range=f"{'a' * 40}..{'b' * 40}")
    assert replace(run(1), plan=replace(PLAN, arms=pinned)).revision == "bbbbbbbbbbbb"
    assert run(1).revision == "1"


def test_findings_of_one_bug_are_one_line() -> None:
    (bug,) = history([run(1, found("x", reduced=True)), run(2, found("xx", reduced=True))])
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


@pytest.mark.parametrize(("dask", "ending"), [((), ""), (("--dask", "tcp://[fe80::1%eth0]:8786"), ' --dask "{}"')])
def test_the_unit_of_a_campaign_keeps_the_address_of_its_scheduler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dask: tuple[str, ...], ending: str
) -> None:
    monkeypatch.setenv("PGDUEL_CAMPAIGNS", str(tmp_path))
    with claimed("nightly"):
        keep_plan(PLAN)
    printed = PreloadedCommand(tmp_path)("campaign", "unit", "nightly", *dask)
    (command,) = (line for line in printed.out.splitlines() if line.startswith("ExecStart="))
    assert command.endswith(" campaign start nightly" + ending.format(*(each.replace("%", "%%") for each in dask[1:])))
    if shutil.which("systemd-analyze"):
        unit = tmp_path / "pgduel-nightly.service"
        unit.write_text(printed.out)
        verified = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
        assert verified.returncode == 0, verified.stderr
