"""A mail to a mailing list: plain text, with lines of a mail's length except for SQL."""

import re
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any, ClassVar

from fuzz import __version__
from fuzz.execution.executor import Executor
from fuzz.output import visible
from fuzz.report.forms.form import Facts, Form, ReportedFinding, title_of
from fuzz.servers.arm import Arm
from fuzz.triage.interestingness import ReducedCase
from fuzz.triage.reproducer.markers import unmarked
from fuzz.triage.reproducer.reproducer import body
from oracles.framework.difference_text import texts_of
from oracles.model.case import Kind
from oracles.model.finding import Finding
from oracles.model.observation import Outcome, Run
from oracles.model.oracle import Oracle, oracle_named

WIDTH = 78
LINES = 40  # of one arm's output
PLAN = "EXPLAIN (COSTS OFF) "


class Mail(Form):
    """A report for pgsql-hackers or pgsql-bugs."""

    name: ClassVar[str] = "mail"

    def files(self, reported: ReportedFinding) -> Mapping[str, str]:
        """Return the mail, with the present behaviour of the servers."""
        with reported.opened() as opened, Executor(opened.arms, "mail") as executor:
            arms = [reported.arm(opened, name) for name in dict.fromkeys(reported.arms)]
            smallest = reported.measured_case(executor, opened.arms)
            plans = {arm.name: _plan(smallest, executor, arm) for arm in arms}
        text = mail_text(reported, opened.facts, smallest, plans)
        return {f"{reported.fingerprint}.txt": text}


def mail_text(
    reported: ReportedFinding, facts: Facts, smallest: ReducedCase, plans: Mapping[str, Sequence[str]]
) -> str:
    """Return the mail. `plans` has the plans of the query that shows the finding, by arm."""
    return "\n".join(_mail(reported, facts, smallest, plans)) + "\n"


def _plan(smallest: ReducedCase, executor: Executor, arm: Arm) -> list[str]:
    """Return the arm's plan of the query that shows the finding, in the case's own modes."""
    case, at = smallest.case, smallest.finding.step
    if at is None or case.all_steps[at].kind is not Kind.QUERY:
        return []
    run = Run(arm.name, case.modes, instead=((at, PLAN + case.all_steps[at].sql),))
    seen = executor.observe(case, [run])[run].steps
    if len(seen) <= at or seen[at].outcome is not Outcome.OK:
        return []
    return [text for row in seen[at].rows for text in texts_of(row)]


def _mail(
    reported: ReportedFinding, facts: Facts, smallest: ReducedCase, plans: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    finding = smallest.finding
    yield f"Subject: {title_of(finding)}"[:WIDTH]
    yield ""
    yield from wrap(f"{title_of(finding)}.", WIDTH)
    if not smallest.always:
        yield from wrap(f"It {smallest.how_often} just now.", WIDTH)
    if reported.blame:
        yield from wrap(visible(f"To blame: {reported.blame}."), WIDTH)
    yield from _section("Servers")
    for name in dict.fromkeys(reported.arms):
        yield from _server(name, facts[name])
    yield from _section("Script, for psql -X as a superuser")
    for block in (
        "CREATE SCHEMA duel;",
        *body(smallest.case, finding),
    ):
        yield ""
        yield unmarked(block).strip("\n")
    yield from _sides(finding)
    for name, plan in plans.items():
        if plan:
            yield from _section(f"Plan of {name}")
            yield ""
            for line in plan:
                yield from _folded(line)
    yield ""
    yield from wrap(f"Found and reduced by pgduel {__version__}, finding {reported.fingerprint}.", WIDTH)


def _section(title: str) -> Iterator[str]:
    yield ""
    yield f"{title}:"


def _server(name: str, facts: Mapping[str, Any]) -> Iterator[str]:
    series = facts["series"]
    server = f"{name}: PostgreSQL {facts['base']['version']}, built as {facts['flavor']}"
    yield from wrap(f"{server}, {'with' if series else 'without patches'}", WIDTH, initial_indent="  ")
    for patch in series:
        yield f"    {visible(patch)}"
    for setting in (*facts.get("settings", ()), *facts.get("server_settings", ())):
        yield f"    with {visible(setting)}"


def _sides(finding: Finding) -> Iterator[str]:
    """Yield the expected and the actual output, the latter under the title of the finding's oracle."""
    actual = (oracle_named(finding.oracle) or Oracle).actual_title
    for title, text in finding.sides():
        own_title = re.sub(r"^actual", actual, title)
        yield from _section(own_title[0].upper() + own_title[1:])
        yield ""
        lines = text.split("\n")
        for line in lines[:LINES]:
            yield from _folded(line)
        if len(lines) > LINES:
            yield f"  ... {len(lines) - LINES} more lines"


def _folded(line: str) -> list[str]:
    """Return a line as lines of a mail's length, with its indentation, and with control characters visible."""
    line = visible(line)
    inner = line[: len(line) - len(line.lstrip())]
    return wrap(line.strip(), WIDTH, initial_indent=f"  {inner}", subsequent_indent=f"  {inner}    ") or [""]
