"""Sort keys of a query as expressions of its output columns, and the statement that compares rows by them.

A key is known if it is an output column, by position, name or text, or an expression of such columns without functions
and subqueries. Keys after the first unknown one decide nothing, because they order only rows with equal keys before.

The statement (`SortCheck`) compares each row with the row before it, by the operators and collations of the sort keys.
It does not sort. The keys' values are literals. Their types and collations are those of the query's output columns,
from which a subquery without rows takes a NULL:

    WITH t AS (SELECT c1 FROM (the query) AS q (c1) WHERE false),
      v (n, c1) AS (VALUES (0, (SELECT c1 FROM t)), (1, '3'), (2, '7')), ...

Literals of floating-point numbers, times, intervals and arrays have their value only under some settings, which the
statement tests. It returns the number 0 under other settings.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pglast import ast
from pglast.enums import SetOperation, SortByDir, SortByNulls
from pglast.visitors import Visitor

from oracles.model.observation import ResultColumn
from oracles.sql.building import fresh_select, has_subquery, snippet, text_of, trees
from oracles.sql.determinism import is_deterministic
from oracles.sql.reading import Reader
from oracles.sql.total_order import integer, is_star


@dataclass(frozen=True, slots=True)
class SortKey:
    """A sort key: an expression of the output columns c1, c2 ..., its direction, and the place of NULLs."""

    sql: str
    columns: frozenset[int]  # positions of its output columns, from 0
    descending: bool
    nulls_first: bool


def sort_keys(sql: str, columns: Sequence[ResultColumn]) -> tuple[SortKey, ...]:
    """Return the leading sort keys that the output columns determine; none for a statement without ORDER BY."""
    known = trees(sql)
    select = known[0].stmt if len(known) == 1 else None
    if not isinstance(select, ast.SelectStmt) or not select.sortClause:
        return ()
    return tuple(_leading_keys(fresh_select(sql), columns))


def _leading_keys(select: Any, columns: Sequence[ResultColumn]) -> Iterator[SortKey]:
    outputs = _Outputs(select, columns)
    for item in select.sortClause:
        descends = _descends(item)
        found = outputs.expression_of(item.node)
        if found is None or descends is None:
            return
        if found[1]:  # a constant key orders nothing
            default = item.sortby_nulls == SortByNulls.SORTBY_NULLS_DEFAULT
            first = descends if default else item.sortby_nulls == SortByNulls.SORTBY_NULLS_FIRST
            yield SortKey(*found, descends, first)


def _descends(item: Any) -> bool | None:
    """Return whether a key sorts in descending order; None if that is unknown."""
    if item.sortby_dir == SortByDir.SORTBY_USING:
        return {"<": False, ">": True}.get(item.useOp[-1].sval)
    return bool(item.sortby_dir == SortByDir.SORTBY_DESC)


class _Outputs:
    """The output columns of a query, found by the nodes of its sort keys."""

    def __init__(self, select: Any, columns: Sequence[ResultColumn]) -> None:
        self._names = [column.name for column in columns]
        self._computed = select.op == SetOperation.SETOP_NONE and not select.valuesLists
        self._grouped = any(isinstance(each, ast.GroupingSet) for each in select.groupClause or ())
        self._targets = list(_positions(select, len(columns))) if self._computed else []

    def expression_of(self, key: Any) -> tuple[str, frozenset[int]] | None:
        """Return a sort key as an expression of c1, c2 ..., and their positions; None if it is unknown."""
        position = self._position(key)
        if position is not None:
            return f"c{position + 1}", frozenset({position})
        if not self._computed or self._grouped or integer(key) is not None or not _is_plain(key):
            return None
        holder = snippet("SELECT 1")
        holder.targetList[0].val = key
        replaced = _InOutputs(self)
        replaced(holder)
        sql = "" if replaced.unknown else text_of(holder.targetList[0].val)
        return (f"({sql})", frozenset(replaced.positions)) if sql else None

    def _position(self, key: Any) -> int | None:
        number = integer(key)
        if number is not None:
            return number - 1 if 0 < number <= len(self._names) else None
        name = _name(key)  # names of output columns hide those of input columns
        return self._names.index(name) if name in self._names else self.position_of_text(key)

    def position_of_text(self, value: Any) -> int | None:
        """Return the position of the output column that is computed by this expression."""
        return next((position for position, target in self._targets if target.val == value), None)


def _positions(select: Any, columns: int) -> Iterator[tuple[int, Any]]:
    """Yield targets with their positions among the output columns, as far as stars leave these known."""
    targets = select.targetList or ()
    stars = [index for index, target in enumerate(targets) if is_star(target.val)]
    for index, target in enumerate(targets):
        if not stars or index < stars[0]:
            yield index, target
        elif index > stars[-1]:
            yield columns - len(targets) + index, target


def _name(key: Any) -> str | None:
    """Return the name of a column without qualifier; None for any other expression."""
    fields: Any = key.fields if isinstance(key, ast.ColumnRef) else ()
    return fields[0].sval if len(fields) == 1 and isinstance(fields[0], ast.String) else None


def _is_plain(key: Any) -> bool:
    """Return whether an expression is deterministic and has neither functions, aggregates nor subqueries."""
    calls = _Calls()
    calls(key)
    return not calls.found and not has_subquery(key) and is_deterministic(key)


class _Calls(Reader):
    def __init__(self) -> None:
        super().__init__()
        self.found = False

    def visit_FuncCall(self, _ancestors: Any, _node: Any) -> None:
        self.found = True


class _InOutputs(Visitor):
    """Replaces input columns by the output columns that return them."""

    def __init__(self, outputs: _Outputs) -> None:
        super().__init__()
        self.positions: set[int] = set()
        self.unknown = False
        self._outputs = outputs

    def visit_ColumnRef(self, _ancestors: Any, node: Any) -> Any:
        position = self._outputs.position_of_text(node)
        if position is None:
            self.unknown = True
            return None
        self.positions.add(position)
        return ast.ColumnRef(fields=(ast.String(f"c{position + 1}"),))


# OIDs of types whose text form no setting changes: bool, bytea, name, int8, int2, int4, text, oid, bpchar, varchar,
# numeric, uuid
_PLAIN_TEXT: Final = frozenset({"16", "17", "19", "20", "21", "23", "25", "26", "1042", "1043", "1700", "2950"})
# A literal of type name has collation "C", which leaves the column without any if the query's has another. One of type
# text has no effect on the collation, and is compared alike.
_NAME: Final = "19"
_EXACT: Final = (
    "current_setting('extra_float_digits')::int > 0 AND current_setting('DateStyle') LIKE 'ISO%' "
    "AND current_setting('IntervalStyle') = 'postgres' AND current_setting('array_nulls')::bool"
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
        values = "".join(f",\n({number}, {', '.join(self._literals(row))})" for number, row in rows)
        types = f"SELECT {', '.join(names)} FROM {self._subquery()} WHERE false"
        unordered = self._unordered(f"t AS ({types}), v (n, {', '.join(names)}) AS (VALUES (0, {typed}){values})")
        if all(self.columns[position].type in _PLAIN_TEXT for position in self.positions):
            return unordered
        nothing = ", NULL" * 2 * len(self.keys)
        return f"{unordered} UNION ALL SELECT {INEXACT}{nothing} WHERE NOT ({_EXACT})"

    def _literals(self, row: Sequence[str | None]) -> Iterator[str]:
        for position, value in zip(self.positions, row, strict=True):
            yield _literal(value) + ("::text" if self.columns[position].type == _NAME else "")

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
