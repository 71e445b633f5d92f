"""SQLancer's logs: statements, one a line, and above them, where it reports something, what and why.

Line breaks within a statement are written as backslash and n, which nobody can tell from a backslash and n of its own;
a statement is taken as it stands.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_HEAD: Final = re.compile(r"^(?:--)?-- (Time|Database|Database version|seed value): .*$", re.MULTILINE)
_SEED: Final = re.compile(r"^-- seed value: (\d+)$", re.MULTILINE)
_TRACE: Final = re.compile(r"\t(at |\.\.\. )")
_ITS_OWN: Final = re.compile(r"(DROP|CREATE) DATABASE\b", re.IGNORECASE)
_ENDING: Final = re.compile(r"(;|\\[nr]|\s)+$")


@dataclass(frozen=True, slots=True)
class Log:
    """A log file: `complaint` is why SQLancer stopped; empty in the log of what it does."""

    seed: int
    statements: tuple[str, ...]
    complaint: str


def read_log(text: str) -> Log:
    """Read a log. Statements about whole databases are left out."""
    heads = list(_HEAD.finditer(text))
    top, rest = (text[: heads[0].start()], text[heads[-1].end() :]) if heads else ("", text)
    seed = _SEED.search(text)
    return Log(int(seed[1]) if seed else 0, tuple(_statements(rest)), _complaint(top))


def divided(log: Log) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what comes before the first query, and what follows."""
    first = next((n for n, sql in enumerate(log.statements) if sql.startswith("SELECT")), len(log.statements))
    return log.statements[:first], log.statements[first:]


def _statements(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        sql = _ENDING.sub("", line).strip()
        if sql and not sql.startswith(("--", "\\")) and not _ITS_OWN.match(sql):
            yield sql


def _complaint(text: str) -> str:
    """Return what was thrown and what caused it, without the traces; each of its lines is a comment in the log."""
    said = (line.removeprefix("--") for line in text.splitlines())
    return "\n".join(line for line in said if not _TRACE.match(line)).strip()
