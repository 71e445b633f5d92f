"""Tests of bugs: findings with one cause are grouped, and the summary lists the groups."""

from dataclasses import replace

from fuzz.triage.blame import Blame
from fuzz.triage.findings import StoredFinding, bug_key, bugs
from fuzz.triage.interestingness import ReducedCase
from oracles.model.case import Case
from oracles.model.finding import Finding
from tests.report.test_summary import CLEAN, printed

CASE = Case("joins", (), ())
FINDING = Finding("result", ("master", "patched"), "rows under plan Hash Join, Seq Scan", 0, "rows differ", "", "")
BLAME = Blame("patched", ("0001.patch", "0002.patch"), ((0, False), (1, False), (2, True)))


def reduced(origin: str, left: str, blame: Blame | None = BLAME, arm: str = "patched", shown: int = 3) -> StoredFinding:
    """Return a finding of this origin whose reduced case has another origin."""
    finding = replace(FINDING, origin=origin, arms=("master", arm))
    smallest = ReducedCase(CASE, replace(finding, origin=left), shown, 3)
    return StoredFinding(finding, "1/joins/4", CASE, 2, None, reduced=True, smallest=smallest, blame=blame)


def test_findings_with_one_origin_after_reduction_are_one_bug() -> None:
    one, other = (
        reduced("rows under plan A, B", "rows under plan A"),
        reduced("rows under plan A, C", "rows under plan A"),
    )
    assert bug_key(one) == bug_key(other)
    (bug,) = bugs((one, other))
    assert (bug.findings, bug.cases) == ((one, other), 4)


def test_another_patch_or_another_plan_is_another_bug() -> None:
    blamed = replace(BLAME, tried=((0, False), (1, True)))
    findings = (reduced("a", "a"), reduced("b", "a", blamed), reduced("c", "c"), reduced("d", "a", None))
    assert len(bugs(findings)) == 4


def test_one_patch_in_two_arms_is_one_bug() -> None:
    assert bug_key(reduced("a", "a")) == bug_key(reduced("a", "a", replace(BLAME, arm="other"), arm="other"))


def test_a_finding_that_is_unreduced_or_did_not_occur_again_is_its_own_bug() -> None:
    waiting = StoredFinding(FINDING, "1/joins/4", CASE, 2, None, reduced=False)
    gone = reduced("a", "b", None, shown=0)
    assert [bug_key(each) for each in (waiting, gone)] == [each.finding.fingerprint for each in (waiting, gone)]


def test_the_summary_has_bugs_with_blame_and_occurrence() -> None:
    first, second = reduced("rows under plan A, B", "rows under plan A"), reduced("rows", "rows under plan A", shown=2)
    gone = reduced("z", "z", None, shown=0)
    summary = replace(CLEAN, findings=(first, second, gone))
    text = printed(summary)
    assert "to blame:   0002.patch, number 2 of the 2 patches of patched" in text
    assert f"the same bug, in 4 cases: {second.finding.fingerprint} in 2" in text
    assert "did not show again in 3 runs" in text
    assert "3 findings of 2 distinct bugs." in text
    output = summary.to_json()
    assert [bug["cases"] for bug in output["bugs"]] == [4, 2]
    assert output["findings"][1]["shown"] == [2, 3]
    assert output["findings"][0]["blame"]["patches"] == ["0002.patch"]
    assert output["findings"][2]["blame"] is None
    assert "shows in 2 of 3 runs" in printed(replace(CLEAN, findings=(second,)))
