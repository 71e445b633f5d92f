"""A table with medians from $PGDUEL_BUGS, which has one line of JSON per injected bug.

python -m tests.injected_bugs.table FILE
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from rich.table import Table

from fuzz.report.console import Console

_FIGURES = ("statements before", "statements", "settings", "rows", "characters", "found in", "reduced in")
_YES_OR_NO = ("blamed", "by psql")


def table_of(bugs: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table with a row per bug, and a row with the medians of figures and the counts of successes."""
    table = Table(box=None, pad_edge=False)
    for name in ("bug", "oracle"):
        table.add_column(name)
    for name in (*_FIGURES, "shown", *_YES_OR_NO):
        table.add_column(name, justify="right")
    for bug in bugs:
        shown = "{} of {}".format(*bug["shown"])
        answers = ("yes" if bug[name] else "no" for name in _YES_OR_NO)
        table.add_row(bug["bug"], bug["oracle"], *(_figure(bug[name]) for name in _FIGURES), shown, *answers)
    medians = (_figure(median(bug[name] for bug in bugs if bug[name] is not None)) for name in _FIGURES)
    yes = (f"{sum(bool(bug[name]) for bug in bugs)} of {len(bugs)}" for name in _YES_OR_NO)
    table.add_section()
    table.add_row(f"median of {len(bugs)}", "", *medians, "", *yes)
    return table


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


if __name__ == "__main__":
    Console().print(table_of([json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]))
