"""Tests of the page: its policy, its parts, foreign text that stays text, and its behaviour in a browser."""

import base64
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from fuzz.campaign.counters import ProgressPoint
from fuzz.campaign.edges import Reached, ReachedEdges
from fuzz.campaign.known import KnownFault
from fuzz.report.campaign_report import report_of
from fuzz.report.coverage_result import AddedLine, AddedLines, CoverageResult, LineCounts, MeasuredPatch
from fuzz.report.formats.format import all_formats
from fuzz.report.page.page import plots, thinned
from tests.campaign.old_store import old_campaign
from tests.report.browser import Page, browser
from tests.report.hostile import BENCH, BUGS, COVERAGE, MARKUP, hostile_campaign

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class _Read(HTMLParser):
    """The elements of a page, and the text of each kind of element."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append((self._inside, data))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = hostile_campaign(tmp_path_factory.mktemp("campaigns") / "3")
    page = directory / "page.html"
    report = replace(report_of(directory), benches=(BENCH,), coverages=(COVERAGE, COVERAGE))
    page.write_text(all_formats()["html"].text(report), encoding="utf-8")
    return page


def test_foreign_text_makes_no_element(hostile: Path) -> None:
    read = _Read(hostile.read_text())
    assert {"img", "iframe", "object", "link", "base", "form"} & {tag for tag, _ in read.elements} == set()
    scripts = [attributes for tag, attributes in read.elements if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "plots"}, {}, {}]
    assert not [name for _, attributes in read.elements for name in attributes if name.startswith("on")]
    assert any(MARKUP in text for tag, text in read.texts if tag == "pre")


def test_nothing_on_the_page_refers_to_another_file(hostile: Path) -> None:
    elements = _Read(hostile.read_text()).elements
    referred = [a[name] for _, a in elements for name in ("src", "href", "action", "srcset", "data") if name in a]
    assert referred
    assert all(each is not None and each.startswith("#") for each in referred)


def test_the_policy_names_exactly_the_scripts_of_the_page(hostile: Path) -> None:
    read = _Read(hostile.read_text())
    (policy,) = (a["content"] for _, a in read.elements if a.get("http-equiv") == "Content-Security-Policy")
    named = set(re.findall(r"'sha256-([^']+)'", policy or ""))
    programs = re.findall(r"<script>(.*?)</script>", hostile.read_text(), re.DOTALL)
    assert named == {base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in programs}
    assert (policy or "").startswith("default-src 'none'; ")
    assert "unsafe-eval" not in (policy or "")


def test_tables_have_headers_and_links_lead_somewhere(hostile: Path) -> None:
    elements = _Read(hostile.read_text()).elements
    ids = [a["id"] for _, a in elements if "id" in a]
    assert len(ids) == len(set(ids))
    assert {(a["href"] or "")[1:] for tag, a in elements if tag == "a"} <= set(ids)
    assert all("scope" in a for tag, a in elements if tag == "th")


def test_a_store_without_samples_has_no_plots(tmp_path: Path) -> None:
    page = all_formats()["html"].text(report_of(old_campaign(tmp_path / "campaigns")))
    assert "too few samples for plots" in page
    assert "vegaEmbed=" not in page  # the library is left out
    assert page.count('<details class="bug"') == 4


def test_known_faults_of_the_corpus_that_did_not_occur_are_no_remark(tmp_path: Path) -> None:
    report = report_of(hostile_campaign(tmp_path / "4"))
    known = (KnownFault("0123456789ab"), KnownFault("456789abcdef", reproducer="456789abcdef"))
    text = all_formats()["html"].text(replace(report, summary=replace(report.summary, known=known)))
    assert re.findall(r"Known fault that did not occur: (\w+)", text) == ["0123456789ab"]


def test_plots_have_few_points_with_both_ends() -> None:
    samples = [ProgressPoint(number, 0.0, number / 10, number * 5, number, 0, 0, 0) for number in range(5000)]
    few = thinned(samples)
    assert (len(few), few[0], few[-1]) == (300, samples[0], samples[-1])
    drawn = plots(samples)
    assert list(drawn) == ["Statements judged", "Distinct plan shapes", "Doubts", "Findings"]
    assert plots(samples[:1]) == {}
    measured = plots([*samples, replace(samples[-1], memory=123_400_000, disk=2_000_000, files=7)])
    values = [next(iter(document["datasets"].values())) for document in measured.values()]
    assert [each[-1]["count"] for each in values[-3:]] == [123, 2, 7]


def test_edges_are_in_page_and_markdown_and_plotted(tmp_path: Path) -> None:
    report = report_of(hostile_campaign(tmp_path / "5"))
    edges = ReachedEdges(Reached(30, 90), Reached(2, 5), {})
    for name in ("html", "markdown"):
        text = all_formats()[name].text(replace(report, edges=edges))
        assert "Edges reached: 30 of 90; in functions that the patches change, 2 of 5." in text
        assert "Edges reached" not in all_formats()[name].text(report)
    assert "Edges reached" in plots([replace(sample, edges=sample.cases) for sample in report.samples])


def test_added_lines_have_the_reach_of_cases_and_suites(hostile: Path) -> None:
    text = hostile.read_text()
    rows = re.findall(r'<tr class="([\w -]+)"><th scope="row" class="number">(\d+)</th>(.*?)<td class="code">', text)
    assert [(style, int(line), re.findall(r">([^<]*)</td>", states)) for style, line, states in rows[:7]] == [
        ("no-code", 7, ["no code", ""]),
        ("some-branches", 8, ["1 of 2 branches", "reached"]),
        ("only-suites", 9, ["not reached", "reached"]),
        ("internal-error gap", 30, ["internal error", ""]),
        ("reached", 31, ["reached", "reached"]),
        ("not-reached", 32, ["not reached", "not reached"]),
        ("reached", 1, ["reached", "not reached"]),
    ]
    assert 'title="executions: 2; conditions: true 0, false 2"' in rows[1][2]
    assert "2 of 4 lines, 1 of 2 branches; only suites reach 1 line<" in text
    assert "3 of 5, 60.0 %</td>" in text
    assert len(re.findall(r'<details class="patch" id="patch-1-\d">', text)) == 2  # 0003 adds no line


def test_without_suites_the_page_has_no_column_for_them(tmp_path: Path) -> None:
    lines = AddedLines((AddedLine(1, "a();", LineCounts(0)),))
    coverage = CoverageResult({"patched": {}}, 1, 1, (MeasuredPatch("0001-a.patch", {"a.c": lines}),))
    report = report_of(hostile_campaign(tmp_path / "6"))
    text = all_formats()["html"].text(replace(report, coverages=(coverage,)))
    assert '<h3>patched <span class="soft">· 1 case, seed 1</span></h3>' in text
    assert "Lines reached" in text
    assert "uites" not in text[text.index('<h2 id="coverage">') : text.index('<h2 id="doubts">')]
    assert "Patch coverage" not in all_formats()["html"].text(report)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    if CHROMIUM is None:
        pytest.skip("no chromium: install the package chromium")
    with browser(CHROMIUM, tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def opened(page: Page, hostile: Path) -> Page:
    page.open(hostile)
    return page


def column(number: int) -> str:
    """Return the expression for a column of the shown bugs."""
    rows = "[...document.querySelectorAll('#table-bugs tbody tr:not([hidden])')]"
    return f"{rows}.map(row => row.cells[{number}].textContent)"


def test_the_page_opens_from_a_file_without_error_or_request(opened: Page, hostile: Path) -> None:
    assert opened.evaluate("document.querySelectorAll('.plot svg').length") == 8
    assert opened.evaluate("document.querySelector('h1').textContent") == f"{BUGS - 1} distinct bugs"
    assert (opened.errors, opened.requests) == ([], [hostile.as_uri()])


def test_columns_sort_both_ways(opened: Page) -> None:
    click = "document.querySelectorAll('#table-bugs thead button')[1].click()"
    opened.evaluate(click)
    titles = opened.evaluate(column(1))
    assert [int(number) for title in titles for number in re.findall(r"^row (\d+)", title)] == list(range(BUGS - 1))
    assert opened.evaluate("document.querySelectorAll('#table-bugs th')[1].getAttribute('aria-sort')") == "ascending"
    opened.evaluate(click)
    assert opened.evaluate(column(1)) == titles[::-1]
    opened.evaluate("document.querySelectorAll('#table-reach thead button')[1].click()")
    counts = "[...document.querySelectorAll('#table-reach tbody tr')].map(r => Number(r.cells[1].dataset.value))"
    assert opened.evaluate(counts) == [4, 2, 1]


def entered(field: str, text: str) -> str:
    """Return the expression that enters text in a field of the filter of bugs."""
    return (
        f"(() => {{ const field = document.querySelector('[data-table=table-bugs] {field}'); field.value = '{text}';"
        " field.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )


def test_filters_hide_rows_and_cards(opened: Page) -> None:
    opened.evaluate(entered("input", "EXAMPLE.org 7/"))
    assert opened.evaluate(column(0)) == []
    key = opened.evaluate("document.querySelector('#table-bugs tbody th').textContent")
    opened.evaluate(entered("input", f"{key.upper()} differs"))
    assert opened.evaluate(column(0)) == [key]
    assert opened.evaluate("document.querySelectorAll('details.bug:not([hidden])').length") == 1
    assert opened.evaluate("document.querySelector('[data-table=table-bugs] output').textContent") == f"1 of {BUGS}"
    opened.evaluate(entered("input", ""))
    assert len(opened.evaluate(column(0))) == BUGS
    opened.evaluate(entered("select", "known fault"))
    assert len(opened.evaluate(column(0))) == 1


def test_the_policy_refuses_other_scripts_and_all_requests(opened: Page) -> None:
    opened.evaluate(
        "const program = document.createElement('script'); program.textContent = 'window.ran = 1';"
        "const image = new Image(); image.src = 'https://example.org/x'; document.body.append(program, image); 0"
    )
    refused = opened.evaluate(
        "fetch('https://example.org/').then(() => 'sent', () => 'refused').then(how => [how, window.ran ?? 0])"
    )
    assert refused == ["refused", 0]
    assert opened.requests[1:] == []
    assert len(opened.errors) >= 2


@pytest.mark.parametrize("width", [1280, 480])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_fits_its_window(page: Page, hostile: Path, width: int, *, dark: bool) -> None:
    """Wide tables scroll by themselves. With PGDUEL_SCREENSHOTS, pictures of the page are written there."""
    page.open(hostile, width=width, dark=dark)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") != dark
    if directory := os.environ.get("PGDUEL_SCREENSHOTS"):
        page.screenshot(Path(directory) / f"page-{width}-{'dark' if dark else 'light'}.png")
