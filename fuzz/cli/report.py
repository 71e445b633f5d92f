"""`pgduel report`: a campaign's result as a page, or in a format for other programs."""

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fuzz.campaign.catalog import campaign_named
from fuzz.cli.app import app, write_files
from fuzz.output import write_exactly
from fuzz.report.bench_result import read_bench
from fuzz.report.campaign_report import CampaignReport, report_of
from fuzz.report.coverage_result import read_coverage
from fuzz.report.formats.format import Format, all_formats

FormatName = StrEnum("FormatName", list(all_formats()))  # type: ignore[misc]  # its members are the formats

_HTML = FormatName("html")
Formats = Annotated[
    list[FormatName] | None,
    typer.Option("--as", help="Format of the report (repeat the option). Default: html.", show_default=False),
]
Benches = Annotated[
    list[Path] | None,
    typer.Option(
        "--bench",
        metavar="FILE",
        help="Result of pgduel bench --json FILE, as a section of the page (repeat the option).",
        show_default=False,
    ),
]
Coverages = Annotated[
    list[Path] | None,
    typer.Option(
        "--coverage",
        metavar="FILE",
        help="Result of pgduel coverage --series --json FILE, as a section of the page (repeat the option).",
        show_default=False,
    ),
]


@app.command()
def report(
    campaign: Annotated[str, typer.Argument(help="Number of the campaign, or 'last'.")] = "last",
    formats: Formats = None,
    bench: Benches = None,
    coverage: Coverages = None,
    into: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Directory of the files. Default: print a single format, or write into the campaign's directory.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Report a campaign: bugs, doubts, plots over time, reach and builds.

    The page is one file that needs no network. The other formats have the same data. A running campaign may be
    reported, too. No servers are started.
    """
    directory = campaign_named(campaign)
    chosen = chosen_formats(formats)
    found = with_measurements(report_of(directory), bench, coverage)
    files = {f"pgduel-{found.name}.{each.suffix}": each.text(found) for each in chosen}
    if into is None and len(chosen) == 1 and chosen[0].printed:
        write_exactly(*files.values())
    else:
        write_files(into or directory, files)


def with_measurements(
    found: CampaignReport, benches: Sequence[Path] | None, coverages: Sequence[Path] | None
) -> CampaignReport:
    """Return a report with the results in the files of its options. Raises CaseError."""
    return replace(
        found,
        benches=tuple(result for file in benches or () for result in read_bench(file)),
        coverages=tuple(map(read_coverage, coverages or ())),
    )


def chosen_formats(names: Sequence[FormatName] | None) -> list[Format]:
    """Return the formats of the option, or the page."""
    return [all_formats()[name] for name in dict.fromkeys(names or [_HTML])]
