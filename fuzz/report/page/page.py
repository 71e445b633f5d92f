"""The page: one HTML file that needs no network, and whose policy forbids any request.

The policy names the page's own scripts by their hashes, so no other script runs, whatever the campaign's data contain.
Jinja2 escapes all of the data.
"""

import base64
import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import vl_convert
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from fuzz import __version__, workdir
from fuzz.output import visible
from fuzz.report.bench_result import BenchResult
from fuzz.report.campaign_report import CampaignReport
from fuzz.report.page.plots import bench_plot, disk_plot, plots, thinned, time_unit
from fuzz.report.summary import KINDS
from fuzz.report.terminal import clock

_FILES: Final = Path(__file__).parent
_ROWS: Final = 25  # of the table of samples
_LONGEST: Final = 20_000  # characters of a script


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
    environment.filters |= {"clock": clock, "shortened": _shortened, "number": _number, "kilobytes": _kilobytes}
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
