"""The result of a bench, as `pgduel bench --json` writes it, and as a table beside the figures of the mail, if any."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.table import Table

from fuzz.bench.run import CONFIDENCE, LEAST_ROUNDS, Row
from fuzz.documents import DocumentError, from_data
from fuzz.errors import CaseError
from fuzz.report.console import Console


@dataclass(frozen=True, slots=True)
class BenchRow:
    """The ratio of an arm to another one at a point of the bench, and the mail's figure."""

    case: str
    arms: tuple[str, str]  # (against, arm)
    ratio: float
    low: float  # ends of the interval
    high: float
    medians: dict[str, float]  # by arm
    mail: float | None = None


@dataclass(frozen=True, slots=True)
class BenchMail:
    """The mail whose table the bench repeats."""

    subject: str
    message_id: str
    claim: str = ""  # its result in words, if it has no figures


@dataclass(frozen=True, slots=True)
class BenchResult:
    """A bench and its rows."""

    bench: str
    unit: str
    mail: BenchMail | None
    rounds: int
    seconds: int
    processors: int
    rows: tuple[BenchRow, ...]

    @property
    def pairs(self) -> Mapping[tuple[str, str], list[BenchRow]]:
        """Return (against, arm) -> its rows."""
        found: dict[tuple[str, str], list[BenchRow]] = {}
        for row in self.rows:
            found.setdefault(row.arms, []).append(row)
        return found


def read_bench(file: Path) -> tuple[BenchResult, ...]:
    """Return the results in a file. Raises CaseError."""
    try:
        data: Any = json.loads(file.read_text(encoding="utf-8"))
        return tuple(from_data(each, BenchResult) for each in (data if isinstance(data, list) else [data]))
    except (OSError, ValueError, DocumentError) as error:
        raise CaseError(f"{file} cannot be read ({error}); give --bench a file of pgduel bench --json") from error


def print_rows(console: Console, rows: Sequence[Row], unit: str) -> None:
    """Print a table for each arm compared with the first one, as wide as necessary, so that no figure is cut.

    A note follows if rows have too few rounds for an interval.
    """
    for arm, against in dict.fromkeys((row.arm, row.against) for row in rows):
        table = Table()
        table.add_column("case", no_wrap=True)
        extras = tuple(dict.fromkeys(name for row in rows for name in row.extras))
        mails = ("mail",) if any(row.mail is not None for row in rows) else ()
        titles = (f"{arm}\n{unit}", f"{against}\n{unit}", "ratio", f"{CONFIDENCE:.0%}\ninterval", *mails, *extras)
        for title in titles:
            table.add_column(title.replace(" ", "\n"), justify="right")
        for row in rows:
            if row.arm == arm:
                mail = ("" if row.mail is None else f"{row.mail:.2f}" for _ in mails)
                table.add_row(*_cells(row), *mail, *(_short(row.extras.get(name)) for name in extras))
        console.print_whole(table)
    if any(len(row.samples) < LEAST_ROUNDS for row in rows):
        instead = "the lowest and highest ratio stand in its place"
        console.say(f"Fewer than {LEAST_ROUNDS} rounds have no {CONFIDENCE:.0%} interval: {instead}.")


def print_headlines(console: Console, results: Sequence[BenchResult]) -> None:
    """Print the ratios of all benches as one table in Markdown: a line for each row, a column for each arm.

    Results of mails without figures follow the table.
    """
    arms = list(dict.fromkeys(row.arms[1] for result in results for row in result.rows))
    console.say(_line(["bench", "row", *arms, "mail"]))
    console.say(_line(["---"] * (len(arms) + 3)))
    for result in results:
        for case, rows in groupby(sorted(result.rows, key=_place(result)), lambda row: row.case):
            by_arm = {row.arms[1]: row for row in rows}
            mail = next((f"{row.mail:.2f}" for row in by_arm.values() if row.mail is not None), "")
            console.say(_line([result.bench, case, *(_interval(by_arm.get(arm)) for arm in arms), mail]))
    for result in results:
        if result.mail is not None and result.mail.claim:
            console.say(f"\n{result.bench}, the mail: {result.mail.claim}")


def _place(result: BenchResult) -> Callable[[BenchRow], int]:
    cases = {case: place for place, case in enumerate(dict.fromkeys(row.case for row in result.rows))}
    return lambda row: cases[row.case]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _interval(row: BenchRow | None) -> str:
    return "" if row is None else f"{row.ratio:.2f} ({row.low:.2f} to {row.high:.2f})"


def _cells(row: Row) -> tuple[str, ...]:
    interval = f"{row.low:.3f}-{row.high:.3f}"
    return row.case, _four_digits(row.median), _four_digits(row.median_against), f"{row.ratio:.3f}", interval


def _four_digits(figure: float) -> str:
    """Return a figure with four significant digits, or as a whole number if it has more."""
    return f"{figure:.0f}" if figure >= 1000 else f"{figure:.4g}"


def _short(figure: float | None) -> str:
    """Return a count in full, anything else with three decimal places."""
    return "" if figure is None else f"{figure:.0f}" if float(figure).is_integer() else f"{figure:.3f}"


def row_json(row: Row) -> dict[str, Any]:
    """Return the data of a row for `--json`. `low` and `high` are the ends of the interval of `ratio`."""
    return {
        "case": row.case,
        "arms": [row.against, row.arm],
        "ratio": round(row.ratio, 4),
        "low": round(row.low, 4),
        "high": round(row.high, 4),
        "mail": row.mail,
        "medians": {row.against: row.median_against, row.arm: row.median},
        **{name.replace(" ", "_"): round(figure, 4) for name, figure in row.extras.items()},
        "samples": {row.against: list(row.samples_against), row.arm: list(row.samples)},
    }
