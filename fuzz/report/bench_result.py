"""The result of a bench, as `pgduel bench --json` writes it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzz.documents import DocumentError, from_data
from fuzz.errors import CaseError


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
