"""Plots as Vega-Lite documents: progress over time, and ratios of benches.

Colours and fonts are variables of the page's style sheet, so one plot serves light and dark pages, and paper.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import altair as alt

from fuzz.campaign.sample import Sample
from fuzz.report.bench_result import BenchRow

_POINTS: Final = 300  # of a line
_HEIGHT: Final = 150
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


def plots(samples: Sequence[Sample]) -> dict[str, Any]:
    """Return title -> Vega-Lite document; empty if the campaign has fewer than two samples."""
    if len(samples) < 2:
        return {}
    rows = _rows(thinned(samples))
    return {
        "Statements judged": _plot(rows, {"statements": "statements"}),
        "Distinct plan shapes": _plot(rows, {"shapes": "plan shapes"}),
        "Doubts": _plot(rows, {"inconclusive": "inconclusive", "unstable": "unstable"}, step=True),
        "Findings": _plot(rows, {"findings": "findings"}, step=True),
    }


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


def thinned(samples: Sequence[Sample], points: int = _POINTS) -> list[Sample]:
    """Return at most so many samples, evenly spaced, with the first and the last."""
    if len(samples) <= points:
        return list(samples)
    last = len(samples) - 1
    return [samples[round(number * last / (points - 1))] for number in range(points)]


def _rows(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    return [asdict(sample) | {"minutes": round(sample.seconds / 60, 3)} for sample in samples]


def _plot(rows: Sequence[Mapping[str, Any]], names: Mapping[str, str], *, step: bool = False) -> dict[str, Any]:
    """Return a plot of fields over minutes. `names` has the fields' names in the legend."""
    values = [
        {"minutes": row["minutes"], "cases": row["cases"], "count": row[field], "what": name}
        for row in rows
        for field, name in names.items()
    ]
    hover = alt.selection_point(nearest=True, on="pointerover", encodings=["x"], empty=False)
    x = alt.X("minutes:Q", title="minutes", scale=alt.Scale(nice=False), axis=alt.Axis(grid=False))
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
                alt.Tooltip("minutes:Q", title="minutes", format=".1f"),
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
