"""`pgduel list`: campaigns, findings, generators, oracles and more, as tables."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.table import Table

from fuzz.campaign.catalog import all_campaigns, opened, unless_unreadable, warn
from fuzz.campaign.store import HarnessFinding, SpecFinding, harness_findings, spec_findings
from fuzz.cli import options
from fuzz.cli.app import app, console, say, write_json
from fuzz.execution.modes import MODES
from fuzz.generators.generator import all_generators
from fuzz.report.console import Console
from fuzz.report.summary import numbered
from fuzz.report.terminal import clock
from fuzz.servers.build import list_builds
from fuzz.sources.source import all_sources
from fuzz.triage.findings import bug_key
from oracles.model.oracle import all_oracles

Rows = list[dict[str, str]]
_UNLIMITED: Final = 1_000_000  # columns of output that is no terminal
_LONGEST_WORD: Final = 20


def _campaigns() -> Rows:
    rows = []
    for directory in all_campaigns():
        with unless_unreadable(warn), opened(directory) as store:
            counters = store.counters
            rows.append(
                {
                    "campaign": directory.name,
                    "arms": ", ".join(store.arms),
                    "seed": str(store.plan.seed) if store.begun else "",
                    "time": clock(counters.seconds),
                    "cases": str(counters.cases.total()),
                    "statements": str(counters.statements_judged),
                    "findings": str(len(store.findings()) + len(spec_findings(store)) + len(harness_findings(store))),
                }
            )
    return rows


def _findings() -> Rows:
    rows = []
    for directory in all_campaigns():
        with unless_unreadable(warn), opened(directory) as store:
            for found in store.findings():
                rows.append(
                    {
                        "finding": f"{directory.name}/{found.finding.fingerprint}",
                        "oracle": found.finding.oracle,
                        "cases": str(found.count),
                        "bug": bug_key(found),
                        "summary": found.finding.summary,
                        "to blame": str(found.blame or ""),
                        "reproducer": str(found.reproducer or ""),
                    }
                )
            rows += [_of_file(directory.name, found, found.spec) for found in spec_findings(store)]
            rows += [_of_file(directory.name, found, found.input) for found in harness_findings(store)]
    return rows


def _doubts() -> Rows:
    rows = []
    for directory in all_campaigns():
        with unless_unreadable(warn), opened(directory) as store:
            for doubt in store.doubt_records():
                rows.append(
                    {
                        "doubt": f"{directory.name}/{doubt.name}",
                        "oracle": doubt.oracle,
                        "kind": doubt.kind,
                        "reason": doubt.reason,
                        "case": doubt.case_id,
                        "step": "" if doubt.step is None else str(doubt.step),
                        "tried again": doubt.outcome,
                    }
                )
    return rows


def _of_file(campaign: str, found: SpecFinding | HarnessFinding, file: Path) -> dict[str, str]:
    finding = found.finding
    return {
        "finding": f"{campaign}/{finding.fingerprint}",
        "oracle": finding.oracle,
        "cases": str(found.count),
        "bug": finding.fingerprint,
        "summary": finding.summary,
        "to blame": "",
        "reproducer": str(file),
    }


def _first_line(thing: object) -> str:
    return (type(thing).__doc__ or "").strip().partition("\n")[0]


def _generators() -> Rows:
    return [
        {"generator": name, "what": _first_line(generator), "modes": ", ".join(generator.modes)}
        for name, generator in all_generators().items()
    ]


def _sources() -> Rows:
    return [
        {
            "source": name,
            "what": _first_line(source),
            "lacks": source.lacks(options.given()),
            "modes": ", ".join(source.modes),
        }
        for name, source in all_sources().items()
    ]


def _oracles() -> Rows:
    return [
        {
            "oracle": oracle.name,
            "what": _first_line(oracle),
            "canaries": ", ".join(canary.fault for canary in oracle.canaries),
        }
        for oracle in all_oracles()
    ]


def _modes() -> Rows:
    return [
        {
            "mode": mode.name,
            "protocol": mode.protocol or "",
            "settings": ", ".join(f"{name}={value}" for name, value in mode.settings),
        }
        for mode in MODES.values()
    ]


def _builds() -> Rows:
    return [
        {
            "build": build.key,
            "version": build.version,
            "flavor": build.flavor.name,
            "compiled for": shortened(build.label),
            "tree": build.tree[:12],
        }
        for build in list_builds()
    ]


def shortened(label: str) -> str:
    """Return the label of a build with the last of its patches alone."""
    first, *others = label.split(",")
    if not others:
        return first
    return f"{first.split(':')[0]}: {Path(others[-1]).name} on top of {numbered(len(others), 'other')}"


_SECTIONS: dict[str, Callable[[], Rows]] = {
    "campaigns": _campaigns,
    "findings": _findings,
    "doubts": _doubts,
    "generators": _generators,
    "sources": _sources,
    "oracles": _oracles,
    "modes": _modes,
    "builds": _builds,
}
Section = StrEnum("Section", list(_SECTIONS))  # type: ignore[misc]  # its members are the table's keys


@app.command("list")
def list_(
    what: Annotated[Section | None, typer.Argument(help="Section to list. Default: all.")] = None,
    json_file: options.JsonFile = None,
) -> None:
    """List campaigns, findings, doubts, generators, sources, oracles, modes and builds."""
    found = {name: rows() for name, rows in _SECTIONS.items() if what is None or name == what}
    for name, rows in found.items():
        if what is None:
            console.rule(name, align="left", style="dim")
        if rows:
            # Another program that reads the table gets one line per row.
            (console if console.is_terminal else Console(width=_UNLIMITED)).print(_table(rows))
        else:
            say("none")
    write_json(json_file, found if what is None else found[what])


def _width_of_words(cells: Sequence[str]) -> int | None:
    """Return the width of a column of short words, which are not split between lines; None for other columns."""
    longest = max(map(len, cells))
    return longest if longest <= _LONGEST_WORD and not any(" " in cell for cell in cells) else None


def _table(rows: Rows) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in rows[0]:
        table.add_column(name, overflow="fold", min_width=_width_of_words([row[name] for row in rows]))
    for row in rows:
        table.add_row(*row.values())
    return table
