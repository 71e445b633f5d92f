"""Markdown for a pull request or a mail. Foreign text is in code only, where nothing is interpreted."""

import re
from collections.abc import Iterator
from typing import ClassVar, Final

from fuzz import __version__
from fuzz.output import visible, visible_line
from fuzz.report.campaign_report import CampaignReport
from fuzz.report.formats.format import Format
from fuzz.report.reported_bug import ReportedBug
from fuzz.report.summary import numbered
from fuzz.report.terminal import clock

_LONGEST_SCRIPT: Final = 8_000  # characters of a case's statements; longer ones are left out
_LONGEST_BUGS: Final = 50_000  # characters of all bugs, because comments of pull requests are limited
_LONGEST_TABLE: Final = 10_000  # characters of the rows of their table
_TICKS: Final = re.compile("`+")


class Markdown(Format):
    """A headline, a table of bugs, and each bug with its reproducer."""

    name: ClassVar[str] = "markdown"
    suffix: ClassVar[str] = "md"

    def text(self, report: CampaignReport) -> str:
        """Return the text."""
        return "\n".join(_lines(report)) + "\n"


def _lines(report: CampaignReport) -> Iterator[str]:
    counters = report.counters
    yield f"# {report.headline}"
    yield ""
    yield (
        f"{numbered(counters.statements_judged, 'statement')} judged in {numbered(counters.cases.total(), 'case')} "
        f"and {clock(counters.seconds)}, on {numbered(len(report.arms), 'arm')}. "
        f"{counters.of_kind('unstable')} unstable and {counters.of_kind('inconclusive')} inconclusive verdicts."
    )
    if report.edges:
        yield f"{str(report.edges).capitalize()}."
    yield ""
    yield from _trust(report)
    yield ""
    yield from _arms(report)
    yield from _bugs(report)
    if report.runs:
        yield f"{numbered(len(report.runs), 'run')}, the last one is campaign {report.runs[-1].number}."
    yield f"Campaign {report.name}, seed {report.summary.seed}, pgduel {__version__}."


def _trust(report: CampaignReport) -> Iterator[str]:
    planted = report.summary.canaries
    found = f"{planted['caught']} of {planted['planted']} planted bugs found"
    if not report.problems:
        yield f"The result can be trusted: {found}, all health checks passed."
        return
    yield f"**The result cannot be trusted** ({found}):"
    yield ""
    for line in report.problems:
        yield f"- {code(line)}"


def _arms(report: CampaignReport) -> Iterator[str]:
    yield "| arm | PostgreSQL | flavor | patches | build |"
    yield "|---|---|---|--:|---|"
    for name, facts in report.arms.items():
        settings = (*facts.get("settings", ()), *facts.get("server_settings", ()))
        cells = (
            " ".join((code(name, in_table=True), *(code(each, in_table=True) for each in settings))),
            code(facts["base"]["version"]),
            facts["flavor"],
            len(facts["series"]),
            code(facts["build"]),
        )
        yield f"| {' | '.join(map(str, cells))} |"
    yield ""


def _bugs(report: CampaignReport) -> Iterator[str]:
    if not report.bugs:
        return
    yield "| bug | difference | oracle | cases | status | to blame |"
    yield "|---|---|---|--:|---|---|"
    yield from _rows(report)
    yield ""
    room = _LONGEST_BUGS
    for number, bug in enumerate(report.bugs):
        text = "\n".join(_bug(bug))
        room -= len(text)
        if room < 0:
            yield f"{numbered(len(report.bugs) - number, 'more bug')} without details here."
            yield ""
            return
        yield text


def _rows(report: CampaignReport) -> Iterator[str]:
    """Yield the rows of the table, and a line about those that it has no room for."""
    room = _LONGEST_TABLE
    for number, bug in enumerate(report.bugs):
        title, cause = (code(text, in_table=True) for text in (bug.title, bug.cause))
        cells = (code(bug.key), title, bug.oracle, str(bug.cases), bug.state, cause)
        row = f"| {' | '.join(cells)} |"
        room -= len(row)
        if room < 0:
            yield ""
            yield f"{numbered(len(report.bugs) - number, 'more bug')} without a line in this table."
            return
        yield row


def _bug(bug: ReportedBug) -> Iterator[str]:
    yield f"## Bug {code(bug.key)}"
    yield ""
    yield f"{code(bug.title)}, by the oracle {bug.oracle} on {' and '.join(map(code, dict.fromkeys(bug.arms)))}"
    yield ""
    facts = {
        "status": bug.state,
        "history": _history(bug),
        "runs": bug.how_often,
        "suspect": bug.suspect,
        "to blame": bug.blame,
    }
    for name, value in (facts | {"replay": bug.replay}).items():
        if value:
            yield f"- {name}: {code(value)}"
    for side in bug.sides:
        yield ""
        yield f"{side.title[:1].upper()}{side.title[1:]}:"
        yield ""
        plan = [f"{'  ' * line.depth}{line.node}" for line in side.plan]
        yield fenced("\n".join([side.text, *(["plan:", *plan] if plan else [])]))
    yield ""
    if bug.statements and len(bug.statements) <= _LONGEST_SCRIPT:
        yield fenced(bug.statements, "sql")
        yield ""
    yield f"Reproducer: {code(str(bug.file)) if bug.file else 'not written'}, {len(bug.script.splitlines())} lines"
    yield ""


def _history(bug: ReportedBug) -> str:
    revisions = () if bug.over_runs is None else bug.over_runs.revisions
    return ", ".join(f"{each.status} on {each.revision}" for each in revisions)


def code(text: str, *, in_table: bool = False) -> str:
    """Return text as a code span, or "" for no text. In a table, a bar would end the cell."""
    if not text:
        return ""
    text = visible_line(text)
    fence = "`" * (max((len(ticks) for ticks in _TICKS.findall(text)), default=0) + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    text = text.replace("|", "\\|") if in_table else text
    return f"{fence}{space}{text}{space}{fence}"


def fenced(text: str, language: str = "") -> str:
    """Return text as a block of code."""
    fence = "`" * max(3, max((len(ticks) for ticks in _TICKS.findall(text)), default=0) + 1)
    return f"{fence}{language}\n{visible(text).rstrip()}\n{fence}"
