"""The table of a comparison of fuzzers, for people and for programs."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from fuzz.bench.fuzzers import DIRECTORIES, Figures
from fuzz.report.console import Console


def print_figures(console: Console, measured: Sequence[Figures]) -> None:
    """Print a line for each fuzzer."""
    table = Table()
    table.add_column("fuzzer", no_wrap=True)
    titles = ["statements\na second", "without\nerror", "answers judged\na second", "plan\nshapes"]
    reached = [name for name in DIRECTORIES if any(name in each.reached for each in measured)]
    titles += [f"{name.rpartition('/')[2]}\n{what}" for name in reached for what in ("lines", "branches")]
    for title in titles:
        table.add_column(title, justify="right")
    for each in measured:
        table.add_row(*_cells(each))
    console.print(table)


def _cells(figures: Figures) -> list[str]:
    total = figures.succeeded + figures.failed
    run, judged = (f"{count / figures.seconds:.0f}" for count in (total, figures.judged))
    cells = [figures.fuzzer, run, f"{figures.valid_share:.1%}", judged, str(figures.shapes)]
    for covered in figures.reached.values():
        cells += [f"{covered.lines_reached / covered.lines:.1%}", f"{covered.branches_reached / covered.branches:.1%}"]
    return cells


def figures_json(figures: Figures) -> Mapping[str, Any]:
    """Return the data of one fuzzer for `--json`."""
    return asdict(figures) | {"valid_share": round(figures.valid_share, 5)}
