"""Sort keys of a query as expressions of its output columns.

A key is known if it is an output column, by position, name or text, or an expression of such columns without functions
and subqueries. Keys after the first unknown one decide nothing, because they order only rows with equal keys before.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pglast import ast
from pglast.enums import SetOperation, SortByDir, SortByNulls
from pglast.visitors import Visitor

from oracles.model.observation import ResultColumn
from oracles.sql.building import has_subquery, snippet, text_of
from oracles.sql.determinism import is_deterministic
from oracles.sql.parsing import fresh_select, trees
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


class _Calls(Visitor):
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
