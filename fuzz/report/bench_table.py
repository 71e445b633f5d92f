"""A bench's rows as a table beside the mail's figures, and as JSON."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from fuzz.bench.run import Row
from fuzz.bench.statistics import CONFIDENCE


def print_rows(console: Console, rows: Sequence[Row], unit: str) -> None:
    """Print the table."""
    table = Table()
    for title in ("case", "arms", unit, "ratio", f"{CONFIDENCE:.0%} interval", "mail"):
        table.add_column(title, justify="left" if title in ("case", "arms") else "right")
    for row in rows:
        table.add_row(
            row.case,
            f"{row.arm} / {row.against}",
            f"{row.median:.0f} / {row.median_against:.0f}",
            f"{row.ratio:.3f}",
            f"{row.low:.3f} to {row.high:.3f}",
            "" if row.mail is None else f"{row.mail:.2f}",
        )
    console.print(table)


def row_json(row: Row) -> dict[str, Any]:
    """Return a row as `--json` writes it: `ratio` is that of the medians, `low` and `high` the ends of its interval."""
    return {
        "case": row.case,
        "arms": [row.against, row.arm],
        "ratio": round(row.ratio, 4),
        "low": round(row.low, 4),
        "high": round(row.high, 4),
        "mail": row.mail,
        "medians": {row.against: row.median_against, row.arm: row.median},
        "samples": {row.against: list(row.samples_against), row.arm: list(row.samples)},
    }
