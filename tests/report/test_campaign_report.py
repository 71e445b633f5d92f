"""Tests of the data of a campaign's report."""

from pathlib import Path

import pytest

from fuzz.campaign.catalog import opened
from fuzz.report.campaign_report import CampaignReport, report_of
from fuzz.report.reported_bug import PlanLine, Status, side_by_side, tree_lines
from tests.campaign.old_store import BUG, old_campaign
from tests.report.hostile import BUGS, PATCH, hostile_campaign


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> CampaignReport:
    return report_of(old_campaign(tmp_path_factory.mktemp("campaigns")))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> CampaignReport:
    return report_of(hostile_campaign(tmp_path_factory.mktemp("campaigns") / "3"))


def test_bugs_have_status_blame_and_plans(old: CampaignReport) -> None:
    first, second, unreduced, of_spec = old.bugs
    assert old.headline == "4 distinct bugs"
    assert [bug.status for bug in old.bugs] == [Status.CONFIRMED, Status.CONFIRMED, Status.UNREDUCED, Status.UNREDUCED]
    assert (first.patches, first.title) == ((BUG,), "1 row missing, 0 surplus, of 1")
    assert first.how_often == "shows in 3 of 3 runs"
    assert (first.arms, first.suspect) == (("master", "bugged"), "bugged, as master and patched agree")
    assert [side.text for side in first.sides] == ["these rows, which are missing:\n  1", "no others"]
    plans = [(PlanLine(0, "Seq Scan", differs=True),), (PlanLine(0, "Result", differs=True),)]
    assert [side.plan for side in second.sides] == plans
    assert first.statements.endswith("\nSELECT 1 FROM t0 WHERE k = 9;")
    assert first.script.endswith("\nDROP SCHEMA duel CASCADE;")  # from the case, because the file is not there
    assert (unreduced.blame, unreduced.how_often, len(unreduced.evidence)) == ("", "", 2)
    assert of_spec.oracle == "isolation"
    options = f" --arm master --arm patched --arm bugged=/pgduel/tests/injected_bugs/{BUG}"
    assert of_spec.replay == f"./pgduel isolation {of_spec.file}{options}"


def test_a_store_without_samples_and_features_is_reported(old: CampaignReport) -> None:
    assert (old.samples, old.features, old.began) == ((), (), None)
    assert (old.counters.statements_judged, old.problems) == (4816, ())
    assert {each.oracle for each in old.oracles} >= {"result", "crash"}
    assert sum(each.verdicts[1] for each in old.oracles) == 2
    assert sum(each.cases for each in old.workloads) == 60
    assert dict(old.reach)["hash_join"] > 0


def test_known_faults_come_last_and_do_not_count(hostile: CampaignReport) -> None:
    assert hostile.bugs[-1].status is Status.KNOWN
    assert hostile.bugs[-1].shown_by_all
    assert hostile.headline == f"{BUGS - 1} distinct bugs"


def test_reach_of_a_feature_has_each_branch(hostile: CampaignReport) -> None:
    (bloom,) = hostile.features
    assert (bloom.statements, bloom.branches) == (3, ("discarded", "late"))
    assert bloom.rows == (("inner", (0, 3)), ("left", (None, 0)))
    assert (bloom.counters, bloom.unreached) == ((("bloom.extra", 0),), 3)
    assert "bloom" not in dict(hostile.reach)


def test_doubts_name_what_is_stored(hostile: CampaignReport) -> None:
    (doubt,) = hostile.doubts
    assert (doubt.oracle, doubt.generator, doubt.count, doubt.outcome) == ("result", "joins", 1, "1 decided")
    assert len(doubt.stored) == 1
    assert (doubt.first, doubt.last, doubt.found) == ("3", "3", ())


def test_the_blamed_patch_and_the_times_are_reported(hostile: CampaignReport) -> None:
    assert hostile.bugs[0].patches == (PATCH,)
    assert hostile.began is not None
    assert hostile.until is not None
    assert (hostile.until - hostile.began).total_seconds() == 19


def test_missed_planted_bugs_are_a_problem(tmp_path: Path) -> None:
    directory = hostile_campaign(tmp_path / "4")
    with opened(directory) as store:
        store.record_canaries({"planted": 40, "caught": 38, "retried": 0})
    assert report_of(directory).problems == ("2 of 40 planted bugs were not found",)


def test_a_plan_is_a_tree() -> None:
    shape = "Limit(Hash Join(Append(Seq Scan, Left Hash Join(Seq Scan, Hash(Seq Scan))), Hash(Seq Scan)))"
    assert [f"{'.' * line.depth}{line.node}" for line in tree_lines(shape)] == [
        "Limit",
        ".Hash Join",
        "..Append",
        "...Seq Scan",
        "...Left Hash Join",
        "....Seq Scan",
        "....Hash",
        ".....Seq Scan",
        "..Hash",
        "...Seq Scan",
    ]


def test_differing_nodes_of_two_plans_are_marked() -> None:
    left, right = side_by_side("Sort(Append(Seq Scan))", "Append(Index Scan)")
    assert [line.differs for line in left] == [True, True, True]  # the depths differ, too
    assert [line.differs for line in side_by_side("A(B, C)", "A(B, D)")[1]] == [False, False, True]
    assert len(right) == 2
