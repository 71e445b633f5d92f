"""Table of the loads of simulated workers, for people and for programs."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from rich.table import Table

from fuzz.bench.store_load import Load, bend
from fuzz.report.console import Console

_TITLES = ("store", "workers", "ranges\na second", "cases\na second", "findings\na second", "workers\nbusy", "driver")


def print_loads(console: Console, loads: Sequence[Load]) -> None:
    """Print a table for each number of plan shapes, and the point at which each store's curve bends."""
    for shapes, alike in _grouped(loads, "shapes"):
        table = Table(title=f"{shapes} plan shapes before", title_justify="left", box=None, pad_edge=False)
        for title in _TITLES:
            table.add_column(title, justify="left" if title == "store" else "right")
        for store, of_store in _grouped(alike, "store"):
            for each in of_store:
                table.add_row(*_cells(each))
            bent = bend(of_store)
            table.caption = f"{table.caption or ''}{store}: {_words(bent)}\n"
        console.print(table)


def _grouped(loads: Sequence[Load], name: str) -> list[tuple[Any, list[Load]]]:
    def key(load: Load) -> tuple[Any, ...]:
        return getattr(load, name), load.workers

    return [(value, list(each)) for value, each in groupby(sorted(loads, key=key), lambda load: getattr(load, name))]


def _cells(load: Load) -> list[str]:
    rates = (f"{rate:.1f}" for rate in (load.ranges, load.cases, load.findings))
    return [load.store, str(load.workers), *rates, f"{load.busy:.0%}", f"{load.driver:.0%}"]


def _words(bent: Load | None) -> str:
    return "does not bend" if bent is None else f"bends at {bent.workers} workers, {bent.ranges:.0f} ranges a second"


def load_json(load: Load) -> Mapping[str, Any]:
    """Return the data of one number of workers for `--json`."""
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in asdict(load).items()}
