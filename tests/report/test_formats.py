"""Tests of the formats for other programs: structure, figures, and foreign text that stays text."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from fuzz.campaign.catalog import opened
from fuzz.campaign.edges import Reached, ReachedEdges
from fuzz.errors import PgduelError
from fuzz.report.campaign_report import CampaignReport, report_of
from fuzz.report.formats import html
from fuzz.report.formats.format import all_formats
from fuzz.report.formats.markdown import code, fenced
from tests.campaign.old_store import BUG, old_campaign
from tests.report.hostile import BENCH, BUGS, COVERAGE, MARKUP, PATCH, hostile_campaign

CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> CampaignReport:
    return report_of(hostile_campaign(tmp_path_factory.mktemp("campaigns") / "3"))


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> CampaignReport:
    return report_of(old_campaign(tmp_path_factory.mktemp("campaigns")))


def of_kinds(text: str) -> dict[str, list[dict[str, Any]]]:
    """Return kind -> objects of JSON Lines."""
    lines: dict[str, list[dict[str, Any]]] = {}
    for line in text.splitlines():
        lines.setdefault(json.loads(line)["kind"], []).append(json.loads(line))
    return lines


@pytest.mark.parametrize("name", all_formats())
def test_no_format_has_control_characters(hostile: CampaignReport, name: str) -> None:
    text = all_formats()[name].text(replace(hostile, coverages=(COVERAGE,)))
    assert CONTROLS.search(text) is None
    text.encode()


def test_junit_has_a_failed_test_for_each_bug(hostile: CampaignReport) -> None:
    top = ElementTree.fromstring(all_formats()["junit"].text(hostile))
    (suite,) = top
    cases = suite.findall("testcase")
    assert (top.tag, suite.tag) == ("testsuites", "testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped"), suite.get("errors")) == (
        str(len(cases)),
        str(BUGS - 1),
        "1",
        "0",
    )
    assert suite.get("timestamp") == "2023-11-14T22:13:20"
    failed = [case for case in cases if case.find("failure") is not None]
    assert {case.get("classname") for case in failed} == {"pgduel.result"}
    assert len({case.get("name") for case in cases}) == len(cases)
    failure = failed[0].find("failure")
    assert failure is not None
    assert MARKUP in (failure.text or "")
    assert ("pgduel.tlp", "no bug") in {(case.get("classname"), case.get("name")) for case in cases}


def test_junit_has_an_error_if_the_result_cannot_be_trusted(tmp_path: Path) -> None:
    directory = hostile_campaign(tmp_path / "4")
    with opened(directory) as store:
        store.record_canaries({"planted": 0, "caught": 0})
    top = ElementTree.fromstring(all_formats()["junit"].text(report_of(directory)))
    (error,) = top.iter("error")
    assert error.get("message") == "no bug was planted to test the oracles"


def test_sarif_has_a_result_for_each_bug(hostile: CampaignReport) -> None:
    log = json.loads(all_formats()["sarif"].text(hostile))
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert (log["version"], rules) == ("2.1.0", ["crash", "result"])
    first, last = run["results"][0], run["results"][-1]
    assert all(rules[each["ruleIndex"]] == each["ruleId"] for each in run["results"])
    assert len({each["partialFingerprints"]["pgduelBug/v1"] for each in run["results"]}) == BUGS
    place = first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert re.fullmatch(r"[\w%./-]+", place)
    assert first["relatedLocations"][0]["physicalLocation"]["artifactLocation"]["uri"].startswith("file:///")
    assert MARKUP in first["message"]["text"]
    assert (first["level"], last["level"]) == ("error", "note")
    assert last["suppressions"][0]["kind"] == "external"
    assert run["invocations"][0]["executionSuccessful"] is True


def test_json_lines_have_the_figures_of_the_report(hostile: CampaignReport) -> None:
    lines = of_kinds(all_formats()["jsonl"].text(replace(hostile, benches=(BENCH,))))
    kinds = ("headline", "arm", "remark", "bug", "doubt", "oracle", "workload", "branch", "path", "sample", "ratio")
    assert tuple(lines) == kinds
    assert all(len({tuple(each) for each in alike}) == 1 for alike in lines.values())
    (headline,) = lines["headline"]
    assert (headline["headline"], headline["trusted"], headline["known_faults"]) == (hostile.headline, True, 1)
    assert (
        headline["statements_judged"] == hostile.counters.statements_judged == lines["sample"][-1]["statements_judged"]
    )
    assert [(each["bug"], each["cases"]) for each in lines["bug"]] == [(bug.key, bug.cases) for bug in hostile.bugs]
    first = lines["bug"][0]
    assert (first["status"], first["patches_to_blame"], first["over_runs"]) == ("confirmed", [PATCH], None)
    assert first["expected"]["plan"] == ["Sort", "  Append", "    Seq Scan"]
    assert lines["doubt"][0]["stored_doubts"] == list(hostile.doubts[0].stored)
    assert (lines["sample"][0]["at_utc"], lines["sample"][0]["memory_bytes"]) == ("2023-11-14T22:13:20Z", 10**9)
    assert {(each["join"], each["branch"]): each["statements"] for each in lines["branch"]} == {
        ("inner", "discarded"): 0,
        ("inner", "late"): 3,
        ("left", "late"): 0,
        (None, "bloom.extra"): 0,
    }
    assert [each["interval"] for each in lines["ratio"]] == [[1.1, 1.3], [0.9, 1.1]]


def test_json_lines_have_the_coverage_of_patches_and_lines(hostile: CampaignReport) -> None:
    lines = of_kinds(all_formats()["jsonl"].text(replace(hostile, coverages=(COVERAGE,))))
    assert all(len({tuple(each) for each in lines[kind]}) == 1 for kind in ("patch", "line"))
    first = lines["patch"][0]
    assert [each["patch"] for each in lines["patch"]] == [PATCH, "0002-comment.patch", "0003-removes.patch"]
    assert (first["lines"], first["lines_reached"], first["lines_reached_with_suites"]) == (5, 3, 4)
    assert (first["branches"], first["branches_reached"], first["branches_reached_with_suites"]) == (2, 1, 2)
    assert [(each["line"], each["reach"]) for each in lines["line"]][:4] == [
        (7, "no code"),
        (8, "reached, but not all branches"),
        (9, "not reached"),
        (30, "internal error"),
    ]
    assert (lines["line"][1]["executions"], lines["line"][1]["executions_of_branches_by_suites"]) == (2, [1, 4])
    assert lines["line"][0]["executions"] is None


def test_json_lines_have_problems_and_edges(hostile: CampaignReport) -> None:
    planted = {"planted": 0, "caught": 0, "retried": 0}
    edges = ReachedEdges(Reached(30, 90), Reached(2, 5), {"a.c": Reached(1, 3)})
    report = replace(hostile, edges=edges, summary=replace(hostile.summary, canaries=planted))
    lines = of_kinds(all_formats()["jsonl"].text(report))
    assert [each["problem"] for each in lines["problem"]] == list(report.problems)
    assert lines["headline"][0]["trusted"] is False
    assert [(each["place"], each["file"], each["edges_reached"], each["edges_counted"]) for each in lines["edges"]] == [
        ("server", None, 30, 90),
        ("changed functions", None, 2, 5),
        ("file", "a.c", 1, 3),
    ]


def test_markdown_has_bugs_blame_and_reproducers(old: CampaignReport) -> None:
    text = all_formats()["markdown"].text(old)
    assert text.startswith("# 4 distinct bugs\n\n4816 statements judged in 60 cases and ")
    assert "The result can be trusted: 49 of 49 planted bugs found" in text
    assert f"| `1 row missing, 0 surplus, of 1` | result | 1 | confirmed | `{BUG}` |" in text
    assert "Expected, as master did:\n\n```\nthese rows, which are missing:\n  1\nplan:\nSeq Scan\n```" in text
    assert "SELECT 1 FROM t0 WHERE k = 9" in text


def test_foreign_text_in_markdown_is_code(hostile: CampaignReport) -> None:
    """Outside of blocks and spans of code, no character of the foreign text is left."""
    text = all_formats()["markdown"].text(hostile)
    blocks = re.sub(r"^(`{3,})\w*\n.*?\n\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    spans = re.sub(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)", "", blocks)
    assert not set("<>@[`") & set(spans)
    rows = [line for line in blocks.splitlines() if line.startswith("| `")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {6, 7}  # of the arms, and of the bugs


@pytest.mark.parametrize(
    ("text", "span"),
    [("a", "`a`"), ("a`b", "``a`b``"), ("`", "`` ` ``"), ("a\nb", r"`a\x0ab`"), ("", "")],
)
def test_code_in_markdown_has_a_longer_fence(text: str, span: str) -> None:
    assert code(text) == span


def test_a_block_of_code_has_a_longer_fence() -> None:
    assert fenced("````\nx\n", "sql") == "`````sql\n````\nx\n`````"


def test_long_cases_are_left_out(hostile: CampaignReport) -> None:
    long = replace(hostile, bugs=(replace(hostile.bugs[0], statements="SELECT 17;\n" * 1000),))
    text = all_formats()["markdown"].text(long)
    assert "SELECT 17" not in text
    assert "\nReproducer: `" in text
    assert len(text) < 10_000


def test_a_table_of_many_bugs_is_cut(hostile: CampaignReport) -> None:
    many = replace(
        hostile, bugs=tuple(replace(hostile.bugs[0], title=f"{number} rows missing") for number in range(999))
    )
    text = all_formats()["markdown"].text(many)
    rows = text.count(" rows missing` |")
    assert 50 < rows < 999
    assert f"\n{999 - rows} more bugs without a line in this table.\n" in text
    assert len(text) < 65_536  # of a comment in GitHub


def test_a_page_without_its_packages_is_refused_in_one_line(
    hostile: CampaignReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "find_spec", lambda name: None if name == "vl_convert" else name)
    with pytest.raises(PgduelError, match=r"not installed: vl-convert-python; install pgduel\[report\]"):
        all_formats()["html"].text(hostile)


def test_the_patch_to_blame_is_in_each_format(hostile: CampaignReport) -> None:
    assert PATCH.startswith("0001-")
    for each in all_formats().values():
        assert "0001-" in each.text(hostile)
