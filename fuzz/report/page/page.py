"""The page: one HTML file that needs no network, and whose policy forbids any request.

The policy names the page's own scripts by their hashes, so no other script runs, whatever the campaign's data contain.
Jinja2 escapes all of the data.

Plots are Vega-Lite documents. Their colours and fonts are variables of the style sheet, so one plot serves light and
dark pages, and paper.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import altair as alt
import vl_convert
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from fuzz import __version__, workdir
from fuzz.campaign.counters import ProgressPoint
from fuzz.output import visible
from fuzz.report.bench_result import BenchResult, BenchRow
from fuzz.report.campaign_report import CampaignReport, ReportedRun
from fuzz.report.coverage_result import LineCounts
from fuzz.report.summary import KINDS
from fuzz.report.terminal import clock

_FILES: Final = Path(__file__).parent
_ROWS: Final = 25  # of the table of samples
_LONGEST: Final = 20_000  # characters of a script
_POINTS: Final = 300  # of a line
_LONG: Final = 6 * 3600.0  # seconds of a campaign from which its time is in hours
_HEIGHT: Final = 150
_MB: Final = 1_000_000
_STEP: Final = 22  # height of a case of a bench
_FONT: Final = "system-ui, sans-serif"
_CONFIG: Final[Mapping[str, Any]] = {
    "background": "transparent",
    "font": _FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": "var(--muted)",
        "titleColor": "var(--muted)",
        "gridColor": "var(--line)",
        "domain": False,
        "ticks": False,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "labelPadding": 6,
        "tickCount": 4,
    },
    "axisY": {"minExtent": 36},  # so that plots in a column align
    "legend": {
        "labelColor": "var(--muted)",
        "title": None,
        "orient": "top-left",
        "labelFontSize": 11,
        "symbolType": "stroke",
        "symbolStrokeWidth": 3,
    },
}
_COLORS: Final = ("var(--blue)", "var(--orange)")


def page(report: CampaignReport) -> str:
    """Return the page of a report."""
    progress = plots(report.samples)
    if len(report.runs) > 1:
        progress["kB on disk, of each run"] = disk_plot(report.runs)
    drawn = dict(progress)
    for result in report.benches:
        drawn |= {bench_title(result, pair): bench_plot(rows, result.unit) for pair, rows in result.pairs.items()}
    scripts = [script_of((_FILES / "page.js").read_text(encoding="utf-8"))]
    if drawn:
        scripts.insert(0, script_of(_vega()))
    return (
        _environment()
        .get_template("page.html")
        .render(
            report=report,
            counters=report.counters,
            canaries=report.summary.canaries,
            kinds=KINDS,
            plots=drawn,
            progress=list(progress),
            time=time_unit(report.samples),
            bench_title=bench_title,
            samples=thinned(report.samples, _ROWS),
            style=Markup((_FILES / "page.css").read_text(encoding="utf-8")),
            scripts=scripts,
            policy=policy(scripts),
            version=__version__,
        )
    )


def bench_title(result: BenchResult, pair: tuple[str, str]) -> str:
    """Return the title of the plot of a bench and a pair (against, arm)."""
    return f"{result.bench}: {pair[1]} against {pair[0]}"


def policy(scripts: list[Markup]) -> str:
    """Return the Content-Security-Policy of a page with these scripts."""
    hashes = (base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in scripts)
    allowed = " ".join(f"'sha256-{each}'" for each in hashes)
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}; base-uri 'none'; form-action 'none'"


def script_of(text: str) -> Markup:
    """Return a program as the content of a script element, which ends at the first `</script`."""
    return Markup(text.replace("</script", "<\\/script").replace("<!--", "<\\!--").replace("\r\n", "\n"))


@cache
def _vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one program. It is kept, because it takes seconds to make."""
    kept = workdir.downloads() / f"vega-{version('vl-convert-python')}.js"
    with workdir.locked(kept):
        if not kept.exists():
            workdir.write(kept, vl_convert.javascript_bundle())  # type: ignore[call-arg]  # its stub lacks the default
    return kept.read_bytes().decode()


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_FILES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters |= {
        "clock": clock,
        "shortened": _shortened,
        "number": _number,
        "kilobytes": _kilobytes,
        "executions": _executions,
    }
    return environment


def _shown(value: Any) -> Any:
    """Return text with its control characters as escapes; markup of the page itself is unchanged."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}\n-- {len(text) - _LONGEST} more characters are in the file\n"


def _number(count: int) -> str:
    return f"{count:,}"


def _kilobytes(size: int) -> str:
    return f"{size / 1000:,.0f} kB"


def _executions(counts: LineCounts) -> str:
    """Return the numbers of executions of a line and, for each condition in it, of both of its branches."""
    pairs = zip(counts.branches[::2], counts.branches[1::2], strict=True)
    conditions = "; ".join(f"true {_number(yes)}, false {_number(no)}" for yes, no in pairs)
    return f"executions: {_number(counts.executions)}{f'; conditions: {conditions}' if conditions else ''}"


def plots(samples: Sequence[ProgressPoint]) -> dict[str, Any]:
    """Return title -> Vega-Lite document; empty if the campaign has fewer than two samples."""
    if len(samples) < 2:
        return {}
    rows, unit = _rows(thinned(samples)), time_unit(samples)
    drawn = {
        "Statements judged": _plot(rows, unit, {"statements": "statements"}),
        "Distinct plan shapes": _plot(rows, unit, {"shapes": "plan shapes"}),
        "Doubts": _plot(rows, unit, {"inconclusive": "inconclusive", "unstable": "unstable"}, step=True),
        "Findings": _plot(rows, unit, {"findings": "findings"}, step=True),
    }
    if any(sample.edges for sample in samples):
        drawn |= {"Edges reached": _plot(rows, unit, {"edges": "edges"})}
    if any(sample.memory for sample in samples):
        drawn |= {
            "Memory of all processes, in MB": _plot(rows, unit, {"memory": "MB"}),
            "Disk space of servers and store, in MB": _plot(rows, unit, {"disk": "MB"}),
            "Open files of all processes": _plot(rows, unit, {"files": "open files"}),
        }
    return drawn


def disk_plot(runs: Sequence[ReportedRun]) -> dict[str, Any]:
    """Return a plot of the bytes on disk of each run, over the time of all runs."""
    times = list(accumulate(run.seconds for run in runs))
    rows = [
        {"seconds": time, "cases": run.cases, "size": round(run.size / 1000)}
        for time, run in zip(times, runs, strict=True)
    ]
    return _plot(rows, _unit_of(times[-1]), {"size": "kB"})


def time_unit(samples: Sequence[ProgressPoint]) -> tuple[str, float]:
    """Return the unit of the time of a campaign, and its seconds."""
    return _unit_of(samples[-1].seconds if samples else 0.0)


def _unit_of(seconds: float) -> tuple[str, float]:
    return ("hours", 3600.0) if seconds > _LONG else ("minutes", 60.0)


def bench_plot(rows: Sequence[BenchRow], unit: str) -> dict[str, Any]:
    """Return a plot of an arm's ratios with their intervals, and of the mail's figures, by case."""
    values = [
        {"case": row.case, "ratio": row.ratio, "low": row.low, "high": row.high, "mail": row.mail} for row in rows
    ]
    against, arm = rows[0].arms
    title = f"{unit}: {arm} / {against}"
    y = alt.Y("case:N", sort=None, title=None, axis=alt.Axis(grid=True, labelLimit=240, minExtent=0))
    x = alt.X("ratio:Q", title=title, scale=alt.Scale(zero=False), axis=alt.Axis(grid=False))
    shown = [
        alt.Tooltip("case:N"),
        *(alt.Tooltip(f"{name}:Q", format=".3f") for name in ("ratio", "low", "high", "mail")),
    ]
    chart = alt.Chart(alt.InlineData(values=values)).encode(y=y)
    layers = alt.layer(
        alt.Chart(alt.InlineData(values=[{"one": 1}])).mark_rule(color="var(--muted)").encode(x="one:Q"),
        chart.mark_rule(color=_COLORS[0], strokeWidth=2).encode(x=alt.X("low:Q", title=title), x2="high:Q"),
        chart.mark_circle(color=_COLORS[0], size=60, opacity=1).encode(x=x, tooltip=shown),
        chart.mark_tick(color=_COLORS[1], thickness=3, size=14).encode(x="mail:Q", tooltip=shown),
    )
    return _finished(layers.properties(width="container", height=_STEP * len(rows)))


def thinned(samples: Sequence[ProgressPoint], points: int = _POINTS) -> list[ProgressPoint]:
    """Return at most `points` samples, evenly spaced, with the first and the last."""
    if len(samples) <= points:
        return list(samples)
    last = len(samples) - 1
    return [samples[round(number * last / (points - 1))] for number in range(points)]


def _rows(samples: Sequence[ProgressPoint]) -> list[dict[str, Any]]:
    """Return the samples as data, with memory and disk space in MB."""
    return [
        asdict(sample) | {"memory": round(sample.memory / _MB), "disk": round(sample.disk / _MB)} for sample in samples
    ]


def _plot(
    rows: Sequence[Mapping[str, Any]], unit: tuple[str, float], names: Mapping[str, str], *, step: bool = False
) -> dict[str, Any]:
    """Return a plot of fields over time. `names` has the fields' names in the legend."""
    time, seconds = unit
    values = [
        {time: round(row["seconds"] / seconds, 3), "cases": row["cases"], "count": row[field], "what": name}
        for row in rows
        for field, name in names.items()
    ]
    hover = alt.selection_point(nearest=True, on="pointerover", encodings=["x"], empty=False)
    x = alt.X(f"{time}:Q", title=time, scale=alt.Scale(nice=False), axis=alt.Axis(grid=False))
    y = alt.Y("count:Q", title=None, axis=alt.Axis(format=",d", tickMinStep=1))
    color = alt.Color(
        "what:N",
        scale=alt.Scale(domain=list(names.values()), range=list(_COLORS[: len(names)])),
        legend=alt.Legend() if len(names) > 1 else None,
    )
    lines = alt.Chart(alt.InlineData(values=values)).encode(x=x, y=y, color=color)
    drawn = lines.mark_line(strokeWidth=2, interpolate="step-after" if step else "linear")
    points = (
        lines.mark_circle(size=60)
        .encode(
            opacity=alt.condition(hover, alt.value(1), alt.value(0)),
            tooltip=[
                alt.Tooltip("what:N", title="what"),
                alt.Tooltip("count:Q", title="count", format=","),
                alt.Tooltip(f"{time}:Q", title=time, format=".1f"),
                alt.Tooltip("cases:Q", title="cases", format=","),
            ],
        )
        .add_params(hover)
    )
    layers = [drawn, points]
    if len(names) == 1:
        area = lines.mark_area(opacity=0.12, interpolate="step-after" if step else "linear")
        layers.insert(0, area)
    return _finished(alt.layer(*layers).properties(width="container", height=_HEIGHT))


def _finished(chart: alt.LayerChart | alt.FacetChart) -> dict[str, Any]:
    """Return a chart as a document, in the page's style and as wide as its place."""
    document: dict[str, Any] = chart.to_dict()
    return document | {"config": _CONFIG, "autosize": {"type": "fit-x", "contains": "padding"}}
