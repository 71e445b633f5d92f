"""Tests of the report of all runs, in each format, and of its live page."""

import json
import re
import threading
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from xml.etree import ElementTree

import pytest
from sqlalchemy import delete, text, update

from fuzz import documents
from fuzz.campaign.catalog import new_campaign, opened
from fuzz.campaign.continuous import cases_left, discoveries_of, keep_plan, runs_of
from fuzz.campaign.direction.discoveries import Discoveries
from fuzz.campaign.edges import EdgePlaces, Reached, ReachedEdges
from fuzz.campaign.schema import CAMPAIGN, FINDING, OCCURRENCE, RANGE
from fuzz.campaign.store import StoredDoubt
from fuzz.errors import CaseError, PgduelError
from fuzz.report.campaign_report import CampaignReport, report_of
from fuzz.report.formats.format import all_formats
from fuzz.report.live import LivePage
from fuzz.report.runs_report import RunsReport
from fuzz.servers.edges.places import Frame
from fuzz.triage.replays import ReplayResult
from tests.cli.command import Command
from tests.cli.preloaded import PreloadedCommand
from tests.report.hostile import BENCH, BUGS, CASE, COVERAGE, MARKUP, WORDS, hostile_campaign


@pytest.fixture
def campaigns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of campaigns with two runs of `nightly`. The second has other builds, which fix a bug."""
    monkeypatch.setenv("PGDUEL_CAMPAIGNS", str(tmp_path / "campaigns"))
    first = hostile_campaign(tmp_path / "campaigns" / "3", "nightly")
    with opened(hostile_campaign(tmp_path / "campaigns" / "5", "nightly")) as store, opened(first) as before:
        keep_plan(store.plan)
        fixed = before.findings()[0].finding.fingerprint
        store.write(text("UPDATE campaign SET arms = replace(arms, 'abc', 'ghi')"))
        store.write(*(delete(table).where(table.c.fingerprint == fixed) for table in (FINDING, OCCURRENCE)))
        store.record_replay(ReplayResult(fixed, shown=False))
    hostile_campaign(tmp_path / "campaigns" / "6")
    return tmp_path / "campaigns"


@pytest.fixture
def report(campaigns: Path) -> CampaignReport:
    return RunsReport("nightly").present()


def test_counts_are_sums_over_the_runs(report: CampaignReport, campaigns: Path) -> None:
    one = report_of(campaigns / "3")
    assert report.name == "nightly"
    assert report.counters.statements_judged == 2 * one.counters.statements_judged
    assert report.summary.canaries == {"planted": 80, "caught": 80, "retried": 0}
    assert (report.plans.shapes, report.plans.explained) == (one.plans.shapes, 2 * one.plans.explained)
    assert [(each.count, each.outcome, len(each.stored)) for each in report.doubts] == [(2, "2 decided", 2)]
    assert report.doubts[0].stored[0].startswith("3/")
    assert report.problems == one.problems == ()
    assert {report.named(number) for number in ("3", "5", "x")} == {
        "campaign 3 (14 November 2023)",
        "campaign 5 (14 November 2023)",
        "campaign x",
    }
    assert [(run.number, run.revision, run.new_bugs, run.replays) for run in report.runs] == [
        ("3", "abc", BUGS, 0),
        ("5", "ghi", 0, 1),
    ]
    assert all(run.size > 10_000 for run in report.runs)


def test_samples_add_up(report: CampaignReport, campaigns: Path) -> None:
    first, *_, one = report_of(campaigns / "3").samples
    assert [sample.statements for sample in report.samples] == [0, one.statements, 2 * one.statements]
    assert [sample.shapes for sample in report.samples] == [0, one.shapes, one.shapes]
    assert [sample.findings for sample in report.samples] == [0, BUGS, BUGS]
    assert [sample.usage for sample in report.samples] == [first.usage, one.usage, one.usage]


def test_edges_are_those_of_all_runs_on_the_last_builds(campaigns: Path) -> None:
    hostile_campaign(campaigns / "7", "nightly")
    functions = (Frame("a.c", "f", 1), Frame("a.c", "g", 7), Frame("b.c", "h", 1))
    places = EdgePlaces.of([(each,) for each in functions], {("a.c", "g")}, frozenset())
    for number, marks in {"3": [1, 0, 0], "5": [1, 1, 0], "7": [0, 0, 2]}.items():
        (campaigns / number / "edge-places.json").write_text(documents.dumps(places))
        (campaigns / number / "edges").write_bytes(bytes(marks))
    report = RunsReport("nightly").present()
    expected = ReachedEdges(Reached(2, 3), Reached(0, 1), {"a.c": Reached(1, 2), "b.c": Reached(1, 1)})
    assert report.edges == expected
    assert [sample.edges for sample in report.samples] == [0, 1, 2, 2]
    assert "\nEdges reached: 2 of 3; in functions" in all_formats()["markdown"].text(report)
    assert 'data-plot="Edges reached"' in all_formats()["html"].text(report)


def test_discoveries_are_those_of_the_last_run_and_of_its_plan(campaigns: Path) -> None:
    with opened(campaigns / "5") as store:
        earlier = Discoveries(cases=Counter(joins=7), bugs=Counter(joins=3))
        store.write(update(CAMPAIGN).values(plan=replace(store.plan, discoveries=earlier)))
        cases = store.counters.cases["joins"]
    found = discoveries_of(runs_of("nightly"))
    assert found.cases == Counter(joins=7 + cases)
    assert found.bugs == Counter(joins=3)  # the first run found its bugs before
    assert discoveries_of(runs_of("nightly")[:1]).bugs == Counter(joins=BUGS - 1)  # one is known


def test_a_run_on_the_builds_of_the_last_one_goes_on_with_its_next_cases(campaigns: Path) -> None:
    with opened(campaigns / "5") as store:
        begun = replace(store.plan, generators={"joins": 1, "copy": 1}, first={"copy": 2}, begin={"joins": 7})
        store.write(update(CAMPAIGN).values(plan=begun))
        store.write(delete(RANGE))
        store.progress(store.counters, {0: 1, 1: 1, 2: 1, 3: 1, 5: 2})  # 4 is a range of joins, which nobody ended
    runs = runs_of("nightly")
    plan, builds = runs[-1].plan, runs[-1].builds
    assert cases_left(plan, runs, builds) == {"joins": 9, "copy": 4}
    assert cases_left(plan, runs, {**builds, "patched": "another"}) == cases_left(plan, (), builds) == {}
    assert cases_left(replace(plan, seed=plan.seed + 1), runs, builds) == {}  # the user wants this seed
    set_for_all = replace(plan, arms=replace(plan.arms, settings=("enable_hashjoin=off",)))
    assert cases_left(set_for_all, runs, builds) == {}
    killed = replace(runs[-1], ended="")
    assert cases_left(plan, (killed,), builds) == {"joins": 9, "copy": 4}
    assert cases_left(plan, (killed, killed), builds) == {}


def test_doubts_have_their_history(campaigns: Path) -> None:
    """A reason that only one run had, and one whose cases were tried again with different outcomes."""
    again = StoredDoubt("result", "unstable", WORDS, "7/joins/5", CASE, outcome="found: 0123456789ab, ab0123456789")
    other = StoredDoubt("tlp", "inconclusive", "too few rows", "7/joins/6", CASE)
    with opened(campaigns / "5") as store:
        store.add_doubt(again)
        store.add_doubt(other)
        counters = store.counters
        counters.reasons["tlp", "joins", "inconclusive", "too few rows"] += 1
        store.progress(counters, {})
    first, second = RunsReport("nightly").present().doubts
    assert (first.first, first.last, first.outcome) == ("3", "5", "1 became a finding, 2 decided")
    assert first.found == ("0123456789ab", "ab0123456789")
    assert (second.first, second.last, second.outcome) == ("5", "5", "1 not tried yet")
    report = RunsReport("nightly").present()
    page = all_formats()["html"].text(report)
    assert "1 became a finding, 2 decided (0123456789ab, ab0123456789)" in page
    lines = [json.loads(line) for line in all_formats()["jsonl"].text(report).splitlines()]
    doubts = [each for each in lines if each["kind"] == "doubt"]
    assert [(each["first_campaign"], each["last_campaign"]) for each in doubts] == [("3", "5"), ("5", "5")]
    assert doubts[0]["stored_doubts_by_outcome"] == {"became a finding": 1, "decided": 2}
    assert doubts[0]["findings_of_later_tries"] == ["0123456789ab", "ab0123456789"]


def test_bugs_have_their_history(report: CampaignReport) -> None:
    assert [bug.state for bug in report.bugs] == [*["still there"] * (BUGS - 2), "fixed", "known fault"]
    assert report.headline == f"{BUGS - 1} distinct bugs, 1 of them fixed"
    assert report.bugs[0].cases == 2
    fixed = report.bugs[-2]
    assert fixed.over_runs is not None
    assert [(each.revision, each.status) for each in fixed.over_runs.revisions] == [("abc", "new"), ("ghi", "fixed")]
    assert fixed.file is not None
    assert fixed.file.parent.parent.name == "3"
    assert report.bugs[0].replay == f"./pgduel replay 3/{report.bugs[0].fingerprint}"


def test_the_page_has_runs_and_plots_over_all_of_them(report: CampaignReport) -> None:
    page = all_formats()["html"].text(report)
    assert page.count('data-plot="') == 8
    assert 'data-plot="kB on disk, of each run"' in page
    assert '<h2 id="runs">Runs</h2>' in page
    assert '<span class="badge fixed">fixed</span>' in page
    assert "<code>abc</code> new; <code>ghi</code> fixed" in page
    assert MARKUP not in page
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_other_formats_have_the_history(report: CampaignReport) -> None:
    markdown = all_formats()["markdown"].text(report)
    assert "- status: `fixed`\n- history: `new on abc, fixed on ghi`\n" in markdown
    assert "2 runs, the last one is campaign 5.\n" in markdown
    suite = ElementTree.fromstring(all_formats()["junit"].text(report)).find("testsuite")
    assert suite is not None
    assert (suite.get("failures"), suite.get("skipped")) == (str(BUGS - 2), "1")
    results = json.loads(all_formats()["sarif"].text(report))["runs"][0]["results"]
    assert [each["baselineState"] for each in results[-3:]] == ["unchanged", "absent", "unchanged"]
    lines = [json.loads(line) for line in all_formats()["jsonl"].text(report).splitlines()]
    runs = [(each["campaign"], each["new_bugs"]) for each in lines if each["kind"] == "run"]
    assert runs == [("3", BUGS), ("5", 0)]
    (fixed,) = (each for each in lines if each["kind"] == "bug" and each["status"] == "fixed")
    assert [(each["revision"], each["status"]) for each in fixed["over_runs"]["revisions"]] == [
        ("abc", "new"),
        ("ghi", "fixed"),
    ]


def test_a_later_report_has_new_runs_and_resumed_ones(campaigns: Path) -> None:
    reports = RunsReport("nightly")
    before = reports.present()
    assert reports.present() == before
    hostile_campaign(campaigns / "7", "nightly")
    assert reports.present() == RunsReport("nightly").present() != before
    with opened(campaigns / "3") as store:
        counters, sample = store.counters, store.samples()[-1]
        counters.cases["copy_batches"] += 5
        store.progress(counters, {}, [replace(sample, cases=counters.cases.total(), seconds=sample.seconds + 9)])
    resumed = reports.present()
    assert resumed == RunsReport("nightly").present()
    assert resumed.counters.cases["copy_batches"] == before.counters.cases["copy_batches"] // 2 * 3 + 5


def test_a_first_run_that_plants_canaries_has_no_time_yet(campaigns: Path) -> None:
    with opened(campaigns / "3") as store:
        plan, arms = replace(store.plan, name="weekly"), store.arms
    with opened(new_campaign()) as store:
        store.begin(plan, arms)
        keep_plan(plan)
    report = RunsReport("weekly").present()
    assert (report.began, report.samples) == (None, ())


def test_a_run_that_missed_a_planted_bug_spoils_only_itself(campaigns: Path) -> None:
    with opened(campaigns / "3") as store:
        plan, arms = store.plan, store.arms
    planted = RunsReport("nightly").present().summary.canaries["planted"]
    with opened(new_campaign()) as store:
        store.begin(plan, arms)
        store.record_canaries({"planted": 9, "caught": 8, "retried": 0})
    missed = "1 of 9 planted bugs were not found"
    assert missed in RunsReport("nightly").present().problems
    with opened(hostile_campaign(campaigns / "8", "nightly")):
        report = RunsReport("nightly").present()
    assert missed not in report.problems
    assert report.summary.canaries["planted"] == planted // 2 * 3


def test_a_campaign_without_runs_is_refused(campaigns: Path) -> None:
    with opened(campaigns / "3") as store:
        plan = store.plan
    keep_plan(replace(plan, name="weekly"))
    with pytest.raises(CaseError, match="campaign weekly has no run yet"):
        RunsReport("weekly").present()


def test_the_command_prints_or_writes_the_report(campaigns: Path, tmp_path: Path) -> None:
    pgduel = PreloadedCommand(campaigns)
    printed = pgduel("campaign", "report", "nightly", "--as", "markdown")
    assert printed.out.startswith(f"# {BUGS - 1} distinct bugs, 1 of them fixed\n"), printed.err
    assert pgduel("campaign", "report", "nightly").out == f"{campaigns}/pgduel-nightly.html\n"
    assert pgduel("campaign", "report", "nightly", "--as", "sarif", "--output", tmp_path / "x.sarif").status == 0
    assert json.loads((tmp_path / "x.sarif").read_text())["version"] == "2.1.0"
    refused = pgduel("campaign", "report", "nightly", "--as", "sarif", "--as", "junit", "--output", tmp_path / "x")
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert "--output is one file" in refused.err


def test_the_command_adds_the_results_of_benches(campaigns: Path, tmp_path: Path) -> None:
    pgduel = PreloadedCommand(campaigns)
    (tmp_path / "bench.json").write_text(documents.dumps(BENCH))
    page = tmp_path / "nightly.html"
    assert pgduel("campaign", "report", "nightly", "--bench", tmp_path / "bench.json", "--output", page).status == 0
    assert '<h2 id="benchmarks">Benchmarks</h2>' in page.read_text()
    refused = pgduel("campaign", "report", "nightly", "--bench", "/absent.json")
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert "give --bench a file of pgduel bench --json" in refused.err


def test_the_command_adds_measurements_of_coverage(campaigns: Path, tmp_path: Path) -> None:
    pgduel = PreloadedCommand(campaigns)
    (tmp_path / "coverage.json").write_text(documents.dumps(COVERAGE))
    printed = pgduel("campaign", "report", "nightly", "--as", "jsonl", "--coverage", tmp_path / "coverage.json")
    assert printed.status == 0, printed.err
    kinds = Counter(json.loads(line)["kind"] for line in printed.out.splitlines())
    assert (kinds["patch"], kinds["line"]) == (3, 8)


@pytest.fixture
def live() -> Iterator[tuple[LivePage, list[str]]]:
    """Yield a server, and the pages that it has still to send. Without any, the page cannot be made."""
    pages: list[str] = []

    def page() -> str:
        if not pages:
            raise PgduelError("there is no page")
        return pages.pop(0)

    with LivePage(page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server, pages
        server.shutdown()
        thread.join()


def _status(server: LivePage, path: str, method: str = "GET", host: str | None = None) -> int:
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    connection.request(method, path, headers={} if host is None else {"Host": host})
    status = connection.getresponse().status
    connection.close()
    return status


def test_the_live_page_is_renewed_with_each_request(live: tuple[LivePage, list[str]]) -> None:
    server, pages = live
    pages += ["<p>first", "<p>second"]
    for expected in (b"<p>first", b"<p>second"):
        with urllib.request.urlopen(server.address, timeout=20) as answer:
            assert answer.read() == expected
            assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
            assert answer.headers["Cache-Control"] == "no-store"
    with pytest.raises(urllib.error.HTTPError) as error, urllib.request.urlopen(server.address, timeout=20):
        pass
    assert (error.value.code, error.value.read()) == (500, b"there is no page\n")


def test_nothing_but_the_live_page_is_served(live: tuple[LivePage, list[str]]) -> None:
    server, pages = live
    pages += ["<p>page"] * 9
    assert server.server_address[0] == "127.0.0.1"
    assert _status(server, server.path) == 200
    assert _status(server, server.path, "HEAD") == 200
    for path in ("/", "/etc/passwd", f"{server.path}../", f"{server.path}?x", f"{server.path}x"):
        assert _status(server, path) == 404
    assert _status(server, server.path, host="example.org") == 404
    assert _status(server, server.path, "POST") == 501
    assert len(pages) == 7


def test_the_command_serves_the_page_until_it_is_interrupted(campaigns: Path) -> None:
    process = Command(campaigns).start("campaign", "serve", "nightly")
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        address = line.removeprefix("campaign nightly: ").strip()
        assert address.startswith("http://127.0.0.1:"), line + (process.stderr.read() if process.stderr else "")
        with urllib.request.urlopen(address, timeout=120) as answer:
            assert b"pgduel \xc2\xb7 campaign nightly" in answer.read()
    finally:
        process.send_signal(2)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "", "")
