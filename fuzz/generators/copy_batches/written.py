"""COPY FROM STDIN into small tables, with data that is written byte by byte instead of being formatted from rows."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from oracles.model.case import Kind, Step

# Tables of the scene whose only purpose is such data.
HELPERS: Final = (
    "CREATE TABLE one_text (s text)",
    "CREATE TABLE two_columns (n int4, s text)",
)
_TABLES: Final = ("one_text", "two_columns")


@dataclass(frozen=True, slots=True)
class WrittenCopy:
    """A COPY FROM STDIN: table with column list, options as SQL, data, and whether the statement fails."""

    target: str
    options: str
    data: bytes
    tag: str
    fails: bool = False
    where: str = ""  # the WHERE clause, with a space before it

    @property
    def step(self) -> Step:
        """Return the COPY as a step."""
        options = f" WITH ({self.options})" if self.options else ""
        tags = (
            "copy.written",
            f"copy.written.{self.tag}",
            *((f"copy.written.{self.tag}.error",) if self.fails else ()),
        )
        sql = f"COPY {self.target} FROM STDIN{options}{self.where}"
        return Step(sql, Kind.COPY_IN, copy_data=self.data, may_fail=self.fails, tags=tags)


def contents(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Return queries of the tables of HELPERS that the steps name. Long values are hashed."""
    named = [table for table in _TABLES if any(table in step.sql for step in steps)]
    shown = "length(s), left(s, 40) AS first, right(s, 10) AS last, md5(s)"
    return tuple(
        Step(f"SELECT {'n, ' if table == 'two_columns' else ''}{shown} FROM {table}", Kind.QUERY) for table in named
    )
