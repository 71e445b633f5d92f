"""Columns of tables and of queries, and cases without some of them.

A column of a table goes from all lists of columns, and from COPY data. A column of a query goes from all places that
depend on its position. These are the targets, or the values of each row, on all sides of UNION; numbers in ORDER BY and
GROUP BY; and lists of column names outside of the query.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from typing import Any

from pglast import ast
from pglast.enums import SetOperation

from fuzz.triage.reduction.trees import altered, constant, nodes, text_of, tree_of
from fuzz.triage.reproducer.copy_text import LINES
from oracles.model.case import Case, Step
from oracles.sql.total_order import integer, is_star

# Nodes that name a query's columns: the attribute with the names, and the one with the query.
_NAMING: dict[type[Any], tuple[str, str]] = {
    ast.InsertStmt: ("cols", "selectStmt"),
    ast.CommonTableExpr: ("aliascolnames", "ctequery"),
    ast.ViewStmt: ("aliases", "query"),
}


@dataclass(frozen=True, slots=True)
class RemovableItems:
    """The number of removable items of a node, and the function that returns the node with some of them only."""

    count: int
    with_only: Callable[[Sequence[int]], Any]


def width(query: Any) -> int | None:
    """Return the number of columns of a query; None if its text does not determine it."""
    if not isinstance(query, ast.SelectStmt):
        return None
    if query.op != SetOperation.SETOP_NONE:
        return _same({width(query.larg), width(query.rarg)})
    if query.valuesLists:
        return _same(set(map(len, query.valuesLists)))
    targets: Any = query.targetList or ()
    return None if any(is_star(target.val) for target in targets) else len(targets)


def _same(widths: set[Any]) -> int | None:
    return widths.pop() if len(widths) == 1 else None


def with_columns(query: Any, kept: Sequence[int]) -> Any:
    """Return the query with the columns at these positions only."""
    if query.op != SetOperation.SETOP_NONE:
        sides = {"larg": with_columns(query.larg, kept), "rarg": with_columns(query.rarg, kept)}
    elif query.valuesLists:
        sides = {"valuesLists": tuple(tuple(row[position] for position in kept) for row in query.valuesLists)}
    else:
        sides = {"targetList": tuple(query.targetList[position] for position in kept)}
    orders = {name: _renumbered(getattr(query, name), kept) for name in ("groupClause", "sortClause")}
    return altered(query, **sides, **orders)


def _renumbered(clause: Any, kept: Sequence[int]) -> Any:
    """Return ORDER BY or GROUP BY with adjusted column numbers; those of removed columns are omitted."""
    return tuple(filter(None, (_numbered(item, kept) for item in clause or ()))) or None


def _numbered(item: Any, kept: Sequence[int]) -> Any:
    number = integer(item.node if isinstance(item, ast.SortBy) else item)
    if number is None:
        return item
    if number - 1 not in kept:
        return None
    other = constant(ast.Integer(kept.index(number - 1) + 1))
    return altered(item, node=other) if isinstance(item, ast.SortBy) else other


def columns_at(node: Any, above: Any) -> RemovableItems | None:
    """Return the columns that can be removed at a node; None if there are none. `above` is the node around it.

    Columns are removed at the node that names a query's columns, or else at the query itself.
    """
    if isinstance(node, ast.SelectStmt):
        apart = _is_side(node, above) or _names_outside(above)
        count = None if apart else width(node)
        return None if count is None else RemovableItems(count, partial(with_columns, node))
    names = _names_outside(node)
    return (
        RemovableItems(len(names), partial(named_columns, node))
        if names and width(_query(node)) == len(names)
        else None
    )


def named_columns(node: Any, kept: Sequence[int]) -> Any:
    """Return a node that names a query's columns, with the columns at these positions only."""
    names = tuple(_names_outside(node)[position] for position in kept)
    query = with_columns(_query(node), kept)
    if isinstance(node, ast.RangeSubselect):
        return altered(node, alias=altered(node.alias, colnames=names), subquery=query)
    attribute, of_query = _NAMING[type(node)]
    return altered(node, **{attribute: names, of_query: query})


def _is_side(query: Any, above: Any) -> bool:
    return isinstance(above, ast.SelectStmt) and (above.larg is query or above.rarg is query)


def _names_outside(node: Any) -> tuple[Any, ...]:
    if isinstance(node, ast.RangeSubselect):
        return (node.alias and node.alias.colnames) or ()
    return getattr(node, _NAMING[type(node)][0]) or () if type(node) in _NAMING else ()


def _query(node: Any) -> Any:
    return node.subquery if isinstance(node, ast.RangeSubselect) else getattr(node, _NAMING[type(node)][1])


class Fields:
    """The undecoded fields of lines of COPY data in text or CSV format. Binary data are one line without fields."""

    def __init__(self, copy: Any) -> None:
        options = {option.defname: getattr(option.arg, "sval", "") for option in copy.options or ()}
        form = options.get("format", "text")
        self._binary = form == "binary"
        self._delimiter = (options.get("delimiter") or ("," if form == "csv" else "\t")).encode()
        apart = re.escape(self._delimiter)
        quote = re.escape((options.get("quote") or '"').encode())
        escape = re.escape((options.get("escape") or options.get("quote") or '"').encode())
        quoted = rb"%b(?:%b.|[^%b])*?%b(?!%b)" % (quote, escape, quote, quote, quote)
        field = rb"(?:%b|[^%b%b])*" % (quoted, apart, quote) if form == "csv" else rb"(?:\\.|[^\\%b])*" % apart
        self._field = re.compile(field, re.DOTALL)

    def changed(self, data: bytes, change: Callable[[list[bytes]], list[bytes]]) -> bytes:
        """Return the data with the fields of each line changed; invalid lines stay."""
        return b"".join(
            self._delimiter.join(change(fields)) + end if fields else end for fields, end in self._lines(data)
        )

    def widths(self, data: bytes) -> list[int]:
        """Return the length of the longest field of each column."""
        lines = [map(len, fields) for fields, _ in self._lines(data)]
        return [max(lengths) for lengths in zip_longest(*lines, fillvalue=0)]

    def _lines(self, data: bytes) -> Iterator[tuple[list[bytes], bytes]]:
        """Yield the fields of each line, and the rest of the line: no fields and the whole of an invalid line."""
        for line in [data] if self._binary else LINES.findall(data):
            text = line.rstrip(b"\r\n")
            fields = [] if self._binary else list(self._fields(text))
            yield (fields, line[len(text) :]) if self._delimiter.join(fields) == text else ([], line)

    def _fields(self, text: bytes) -> Iterator[bytes]:
        start = 0
        while match := self._field.match(text, start):
            yield match[0]
            if match.end() == len(text):
                return
            start = match.end() + len(self._delimiter)


IsRemoved = Callable[[str, str], bool]  # (table, column) -> whether the column is removed
Tables = Mapping[str, tuple[str, ...]]


def tables_of(case: Case) -> Tables:
    """Return the columns of each table, from CREATE TABLE and ALTER TABLE."""
    tables: dict[str, tuple[str, ...]] = {}
    for step in case.all_steps:
        tree: Any = tree_of(step.sql)
        if isinstance(tree, ast.CreateStmt | ast.AlterTableStmt):
            table = _table(tree)
            tables[table] = (*tables.get(table, ()), *(each.colname for each in _defined(tree)))
    return tables


def _table(tree: Any) -> str:
    return str(tree.relation.relname)


def _defined(tree: Any) -> Iterator[Any]:
    """Return the columns that a CREATE TABLE or ALTER TABLE defines."""
    alters = isinstance(tree, ast.AlterTableStmt)
    elements = (command.def_ for command in tree.cmds) if alters else tree.tableElts or ()
    return (each for each in elements if isinstance(each, ast.ColumnDef) and each.colname)


def mentioned(case: Case) -> set[str]:
    """Return the names of columns that statements use, apart from mere lists of a table's columns."""
    trees = [tree for step in case.all_steps if (tree := tree_of(step.sql)) is not None]
    wanted = [tree for tree in trees if not isinstance(tree, ast.CreateStmt | ast.IndexStmt)]
    keys = [tree.partspec for tree in trees if isinstance(tree, ast.CreateStmt) and tree.partspec]
    return {name for tree in (*wanted, *keys) for name in _names(tree)}


def _names(tree: Any) -> set[str]:
    """Return the names of columns in a tree."""
    found = set()
    node: Any
    for node in nodes(tree):
        if isinstance(node, ast.ColumnRef):
            found.add(getattr((node.fields or (None,))[-1], "sval", "*"))
        elif isinstance(node, ast.Constraint):
            found |= {key.sval for key in (*(node.keys or ()), *(node.fk_attrs or ()))}
        elif isinstance(node, ast.IndexElem | ast.PartitionElem | ast.StatsElem):
            found.add(node.name)
    return found


def without(case: Case, removed: IsRemoved) -> Case:
    """Return the case without some columns, in tables, their data, indexes and statistics objects."""
    tables = tables_of(case)
    scene, steps = (
        tuple(left for step in part if (left := _without(step, tables, removed)) is not None)
        for part in (case.scene, case.steps)
    )
    return replace(case, scene=scene, steps=steps)


def _without(step: Step, tables: Tables, removed: IsRemoved) -> Step | None:
    """Return the step without the columns; None if nothing is left of it."""
    tree = tree_of(step.sql)
    if isinstance(tree, ast.CopyStmt) and tree.relation and step.copy_data:
        return _copy(step, tree, tables, removed)
    if type(tree) not in _CHANGES:
        return step
    changed = _CHANGES[type(tree)](tree, tables, removed)
    if changed is None:
        return None
    return step if changed == tree else replace(step, sql=text_of(changed) or step.sql)


def _create(tree: Any, _tables: Tables, removed: IsRemoved) -> Any:
    table = _table(tree)
    kept = (each for each in tree.tableElts or () if not _about(each, table, removed))
    return altered(tree, tableElts=tuple(kept) or None)


def _about(element: Any, table: str, removed: IsRemoved) -> bool:
    """Return whether an element of a table, a column or a constraint, uses a removed column."""
    names: Any = [element.colname] if isinstance(element, ast.ColumnDef) else _names(element)
    return any(removed(table, name) for name in names)


def _alter(tree: Any, _tables: Tables, removed: IsRemoved) -> Any:
    table = _table(tree)
    kept = tuple(
        each for each in tree.cmds if not (isinstance(each.def_, ast.ColumnDef) and _about(each.def_, table, removed))
    )
    return altered(tree, cmds=kept) if kept else None


def _insert(tree: Any, tables: Tables, removed: IsRemoved) -> Any:
    table = _table(tree)
    names = [column.name for column in tree.cols or ()] or tables.get(table, ())
    kept = _kept(table, names, removed)
    if width(tree.selectStmt) != len(names) or not kept:
        return tree
    return named_columns(tree, kept) if tree.cols else altered(tree, selectStmt=with_columns(tree.selectStmt, kept))


def _kept(table: str, names: Sequence[str], removed: IsRemoved) -> list[int]:
    return [position for position, name in enumerate(names) if not removed(table, name)]


def _index(tree: Any, _tables: Tables, removed: IsRemoved) -> Any:
    table = _table(tree)
    kept = tuple(each for each in tree.indexParams if not removed(table, each.name))
    return altered(tree, indexParams=kept) if kept else None


def _statistics(tree: Any, _tables: Tables, removed: IsRemoved) -> Any:
    table = getattr(tree.relations[0], "relname", "")
    kept = tuple(each for each in tree.exprs if not removed(table, each.name))
    return altered(tree, exprs=kept) if kept else None


_CHANGES: dict[type[Any], Callable[[Any, Tables, IsRemoved], Any]] = {
    ast.CreateStmt: _create,
    ast.AlterTableStmt: _alter,
    ast.InsertStmt: _insert,
    ast.IndexStmt: _index,
    ast.CreateStatsStmt: _statistics,
}


def _copy(step: Step, tree: Any, tables: Tables, removed: IsRemoved) -> Step:
    """Return a COPY FROM STDIN and its data without some columns; lines with another number of fields stay."""
    names = [column.sval for column in tree.attlist or ()] or tables.get(tree.relation.relname, ())
    kept = _kept(tree.relation.relname, names, removed)
    if len(kept) in (0, len(names)):
        return step

    def change(line: list[bytes]) -> list[bytes]:
        return [line[position] for position in kept] if len(line) == len(names) else line

    columns = tree.attlist and tuple(tree.attlist[position] for position in kept)
    sql = text_of(altered(tree, attlist=columns)) if columns else step.sql
    return replace(step, sql=sql or step.sql, copy_data=Fields(tree).changed(step.copy_data or b"", change))
