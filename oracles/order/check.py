"""Statement that compares each row with the row before it, by the operators and collations of the sort keys.

The statement does not sort. The keys' values are literals. Their types and collations are those of the query's output
columns, from which a subquery without rows takes a NULL:

    WITH t AS (SELECT c1 FROM (the query) AS q (c1) WHERE false),
      v (n, c1) AS (VALUES (0, (SELECT c1 FROM t)), (1, '3'), (2, '7')), ...

Literals of floating-point numbers, times and intervals have their value only under some settings, which the statement
tests. It returns the number 0 under other settings.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from oracles.model.observation import ResultColumn
from oracles.order.sort_keys import SortKey

# OIDs of types whose text form no setting changes: bool, bytea, name, int8, int2, int4, text, oid, bpchar, varchar,
# numeric, uuid
_PLAIN_TEXT: Final = frozenset({"16", "17", "19", "20", "21", "23", "25", "26", "1042", "1043", "1700", "2950"})
_EXACT: Final = (
    "current_setting('extra_float_digits')::int > 0 AND current_setting('DateStyle') LIKE 'ISO%' "
    "AND current_setting('IntervalStyle') = 'postgres'"
)
INEXACT: Final = 0  # the number that the statement returns if literals may not have the rows' values


@dataclass(frozen=True, slots=True)
class SortCheck:
    """The comparison of neighbouring rows of a query, by its leading sort keys."""

    query: str
    keys: tuple[SortKey, ...]
    columns: tuple[ResultColumn, ...]  # of the query

    @property
    def positions(self) -> tuple[int, ...]:
        """Return the positions of the columns in sort keys."""
        return tuple(sorted(frozenset().union(*(key.columns for key in self.keys))))

    def of_rows(self, rows: Iterable[tuple[int, Sequence[str | None]]]) -> str:
        """Return the statement for numbered rows, each with its values at `positions`.

        It returns the number of each row that must precede the one with the number before.
        """
        names = self._names()
        typed = ", ".join(f"(SELECT {name} FROM t)" for name in names)
        values = "".join(f",\n({number}, {', '.join(map(_literal, row))})" for number, row in rows)
        types = f"SELECT {', '.join(names)} FROM {self._subquery()} WHERE false"
        unordered = self._unordered(f"t AS ({types}), v (n, {', '.join(names)}) AS (VALUES (0, {typed}){values})")
        if all(self.columns[position].type in _PLAIN_TEXT for position in self.positions):
            return unordered
        nothing = ", NULL" * 2 * len(self.keys)
        return f"{unordered} UNION ALL SELECT {INEXACT}{nothing} WHERE NOT ({_EXACT})"

    def of_query(self) -> str:
        """Return the statement for the rows of the query itself, executed as a subquery."""
        return self._unordered(f"v AS (SELECT row_number() OVER () AS n, q.* FROM {self._subquery()})")

    def _names(self) -> list[str]:
        return [f"c{position + 1}" for position in self.positions]

    def _subquery(self) -> str:
        names = ", ".join(f"c{number}" for number, _ in enumerate(self.columns, 1))
        return f"(\n{self.query}\n) AS q ({names})"

    def _unordered(self, values: str) -> str:
        numbers = range(1, len(self.keys) + 1)
        keys = ", ".join(f"{key.sql} AS k{number}" for number, key in zip(numbers, self.keys, strict=True))
        before = ", ".join(f"lag(k{number}) OVER () AS p{number}" for number in numbers)
        shown = ", ".join(f"p{number}, k{number}" for number in numbers)
        return (
            f"WITH {values}, k AS (SELECT n, {keys} FROM v WHERE n > 0), "
            f"p AS (SELECT *, lag(n) OVER () AS m, {before} FROM k) "
            f"SELECT n, {shown} FROM p WHERE m = n - 1 AND {_precedes(self.keys)}"
        )


def _precedes(keys: Sequence[SortKey], number: int = 1) -> str:
    """Return the condition that a row's keys, from this number on, must precede those of the row before."""
    key, before, now = keys[0], f"p{number}", f"k{number}"
    null_before, null_now = (f"{each} IS NOT DISTINCT FROM NULL" for each in (before, now))
    after_null, at_null = ("false", "true") if key.nulls_first else ("true", "false")
    first = (
        f"CASE WHEN {null_before} AND {null_now} THEN false WHEN {null_before} THEN {after_null} "
        f"WHEN {null_now} THEN {at_null} ELSE {now} {'>' if key.descending else '<'} {before} END"
    )
    if len(keys) == 1:
        return first
    return f"({first} OR ({now} IS NOT DISTINCT FROM {before} AND {_precedes(keys[1:], number + 1)}))"


def _literal(value: str | None) -> str:
    if value is None:
        return "NULL"
    quoted = value.replace("'", "''")
    return "E'" + quoted.replace("\\", "\\\\") + "'" if "\\" in value else f"'{quoted}'"
