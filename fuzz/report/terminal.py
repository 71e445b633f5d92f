"""The live display of a campaign: a panel that is redrawn on a terminal, else a plain line at intervals."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.spinner import Spinner
from rich.table import Table

from fuzz.campaign.counters import Counters
from fuzz.campaign.reach import feature_reach
from fuzz.output import guard
from fuzz.report.console import Console, plain
from fuzz.triage.findings import StoredFinding
from oracles.model.feature import Feature

INTERVAL = 15.0  # seconds between two lines without a terminal
REFRESH = 4  # redraws of a terminal per second
SHOWN = 30  # maximum number of counters; more are shown as families
LISTED = 8  # findings shown while the campaign runs


class Display(Protocol):
    """The output of a running campaign."""

    def progress(self, line: str) -> None:
        """Show the present step of set-up; the next such line replaces it."""

    def say(self, line: str) -> None:
        """Show a line permanently."""

    def show(self, counters: Counters, findings: Sequence[StoredFinding], features: Sequence[Feature] = ()) -> None:
        """Show the campaign's state."""


@contextmanager
def display(console: Console, limit: float | None) -> Iterator[Display]:
    """Open a display for the console. `limit` is the campaign's length in seconds, if it has one."""
    if not console.is_terminal:
        yield PlainDisplay(console, time.monotonic)
        return
    with Live(console=console, refresh_per_second=REFRESH, transient=True) as live:
        guard()  # above Rich's proxies of stdout and stderr, which would interpret foreign styles
        yield LiveDisplay(console, live, limit)


def headline(counters: Counters, findings: Sequence[StoredFinding]) -> str:
    """Return the campaign's state in one line."""
    return (
        f"{clock(counters.seconds)}: {counters.cases.total()} cases, {counters.statements_judged} statements compared "
        f"({counters.statements_per_second:.0f}/s), {counters.valid_share:.1%} valid, {len(findings)} findings, "
        f"{counters.of_kind('unstable')} unstable, {counters.of_kind('inconclusive')} inconclusive"
    )


def clock(seconds: float) -> str:
    """Return seconds as 3:07 or 1:03:07."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class PlainDisplay:
    """Lines for a file or pipe: messages at once, the state every INTERVAL."""

    def __init__(self, console: Console, now: Callable[[], float]) -> None:
        self._console = console
        self._now = now
        self._next = now() + INTERVAL
        self._topic = ""

    def _due(self) -> bool:
        if self._now() < self._next:
            return False
        self._next = self._now() + INTERVAL
        return True

    def progress(self, line: str) -> None:
        """Print the line if it starts a new topic (the text before its colon), or if INTERVAL has passed."""
        topic = line.partition(":")[0]
        if topic != self._topic or self._due():
            self.say(line)
        self._topic = topic

    def say(self, line: str) -> None:
        """Print the line."""
        self._console.say(line)

    def show(self, counters: Counters, findings: Sequence[StoredFinding], features: Sequence[Feature] = ()) -> None:
        """Print the state if INTERVAL has passed."""
        if self._due():
            self.say(headline(counters, findings))


class LiveDisplay:
    """A panel at the bottom of the terminal. Messages scroll above it."""

    def __init__(self, console: Console, live: Live, limit: float | None) -> None:
        self._console = console
        self._live = live
        self._limit = limit
        self._topic = ""
        self._next = 0.0  # time of the next panel

    def progress(self, line: str) -> None:
        """Show the line beside a spinner. The last line of a finished topic stays above."""
        topic = line.partition(":")[0]
        if topic != self._topic:
            self.say(topic)
        self._topic = topic
        self._live.update(Spinner("dots", plain(line)))

    def say(self, line: str) -> None:
        """Print the line above the panel."""
        self._console.say(line)

    def show(self, counters: Counters, findings: Sequence[StoredFinding], features: Sequence[Feature] = ()) -> None:
        """Renew the panel if it is time to redraw it. `features` are those of the arms."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + 1 / REFRESH
        limit = f" of {clock(self._limit)}" if self._limit is not None else ""
        parts: list[RenderableType] = [_progress(counters, findings)]
        if findings:
            parts.append(Panel(_found(findings), title="findings", title_align="left", border_style="red"))
        branches = branch_tables(counters.reach, features)
        parts += [  # last, because a low terminal cuts them off
            Panel(_counters(counters.reach), title="reached in the servers", title_align="left"),
            *(Panel(table, title="branches reached", title_align="left") for table in branches),
            Panel("\n".join(plan_lines(counters)) or "none yet", title="diversity of plans", title_align="left"),
            Panel(_workloads(counters), title="workload paths", title_align="left"),
        ]
        self._live.update(Panel(Group(*parts), title=f"pgduel {clock(counters.seconds)}{limit}", title_align="left"))


def _progress(counters: Counters, findings: Sequence[StoredFinding]) -> Table:
    cells: dict[str, RenderableType] = {
        "cases": str(counters.cases.total()),
        "statements compared": str(counters.statements_judged),
        "a second": f"{counters.statements_per_second:.0f}",
        "valid": f"{counters.valid_share:.1%}",
        "findings": plain(str(len(findings)), "bold red" if findings else ""),
        "unstable": str(counters.of_kind("unstable")),
        "inconclusive": str(counters.of_kind("inconclusive")),
    }
    table = Table(box=None, expand=True)
    for name in cells:
        table.add_column(name, justify="right")
    table.add_row(*cells.values())
    return table


def _counters(counts: dict[str, int]) -> RenderableType:
    if not counts:
        return plain("nothing yet", "dim")
    if len(counts) > SHOWN:
        counts = rolled_up(counts)
    cells = (plain(f"{name} ").append_text(plain(str(count), "bold")) for name, count in sorted(counts.items()))
    return Columns(cells, padding=(0, 3))


def plan_lines(counters: Counters) -> Iterator[str]:
    """Yield a line for each generator with explained statements: the number of different plan shapes."""
    for name, plans in sorted(counters.all_plans().items()):
        yield (
            f"{name}: shapes of plans {plans.shapes}, statements explained {plans.explained}, "
            f"chance of a new shape {plans.once / plans.explained:.0%}"
        )


def branch_tables(counts: Mapping[str, int], features: Sequence[Feature]) -> Iterator[Table]:
    """Yield a table for each reached feature: join types by branches. Impossible combinations have no number."""
    for feature in features:
        if feature.name in counts and feature.branches:
            found = feature_reach(counts, feature)
            table = Table(feature.name, *found.branches, box=None)
            for join, cells in found.rows:
                table.add_row(join, *("" if count is None else str(count) for count in cells))
            yield table


def rolled_up(counts: dict[str, int]) -> dict[str, int]:
    """Return one counter per family: a, a.b and a.c become "a (3 kinds)", with the count of a, or else their sum."""
    families: dict[str, list[str]] = {}
    for name in counts:
        families.setdefault(name.partition(".")[0], []).append(name)
    return {
        (f"{family} ({len(names)} kinds)" if len(names) > 1 else names[0]): counts.get(
            family, sum(counts[name] for name in names)
        )
        for family, names in families.items()
    }


def _workloads(counters: Counters) -> RenderableType:
    generators = sorted({generator for generator, _ in counters.tags})
    if not generators:
        return plain("nothing yet", "dim")
    tables: list[RenderableType] = []
    for generator in generators:
        tables.append(plain(f"{generator}: {counters.cases[generator]} cases", "bold"))
        tables.append(_counters({tag: count for (owner, tag), count in counters.tags.items() if owner == generator}))
    return Group(*tables)


def _found(findings: Sequence[StoredFinding]) -> Group:
    lines = [plain(f"{each.finding.fingerprint} x{each.count} {each.finding.summary}") for each in findings[:LISTED]]
    if len(findings) > LISTED:
        lines.append(plain(f"and {len(findings) - LISTED} more", "dim"))
    return Group(*lines)
