"""Analysis: what the arm itself makes of a statement, and whether it returns the same each time.

The statement becomes the body of an SQL function that is never kept: what the server's parser then has in its catalogs
names each function, operator and relation by OID, with all overloading resolved, which no reading of the text could.
As everywhere, rows that compare as equal are taken to be identical. What cannot be told here (an update that meets a
row twice, an error that one plan meets and another does not) is left to the re-checking on the reference.

Node trees: how PostgreSQL writes what its parser made of a statement (pg_node_tree), read back as objects.

Cost: whether a statement is quick enough to be worth a case's time, by the planner's estimate.

An estimate is the same on every machine; a time is not, and what takes longer than statement_timeout proves nothing.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg

from fuzz.sources.determinism.catalog import Catalog

MOST_COST: Final = 500_000  # some seconds on a server with assertions
MOST_ROWS: Final = 20_000


def is_quick(connection: psycopg.Connection[Any], sql: str) -> bool:
    """Tell what the planner expects; what it refuses takes no time. Raises psycopg.OperationalError."""
    try:
        row = connection.execute(f"EXPLAIN (FORMAT JSON) {sql}".encode()).fetchone()
    except psycopg.Error:
        if connection.broken:
            raise
        return True
    assert row is not None
    plan = row[0][0]["Plan"]
    return bool(plan["Total Cost"] <= MOST_COST and plan["Plan Rows"] <= MOST_ROWS)


_TOKEN = re.compile(r"[(){}]|(?:\\.|[^\s(){}\\])+", re.DOTALL)


@dataclass(slots=True)
class Node:
    """A node: its kind, as QUERY or OPEXPR, and its fields, each a list of words and nodes. Lists are flattened."""

    kind: str
    fields: dict[str, list["str | Node"]] = field(default_factory=dict)

    def word(self, name: str) -> str:
        """Return the first word of a field; empty where there is none, or the field is null."""
        first = next(iter(self.fields.get(name, ())), "")
        return first if isinstance(first, str) and first != "<>" else ""

    def number(self, name: str) -> int:
        """Return a field that is an integer; 0 where there is no such field."""
        return int(self.word(name) or 0)

    def children(self, name: str) -> list["Node"]:
        """Return the nodes of a field, those of lists within it too."""
        return [value for value in self.fields.get(name, ()) if isinstance(value, Node)]

    def walk(self) -> Iterator["Node"]:
        """Yield this node and all below it."""
        yield self
        for name in self.fields:
            for child in self.children(name):
                yield from child.walk()


def read_nodes(text: str) -> list[Node]:
    """Return the nodes at the top of a node tree."""
    top = Node("")
    stack = [top]
    current: list[str | Node] = top.fields.setdefault("", [])
    currents = [current]
    words = iter(_TOKEN.findall(text))
    for word in words:
        if word == "{":
            node = Node(next(words))
            currents[-1].append(node)
            stack.append(node)
            currents.append([])
        elif word == "}":
            stack.pop()
            currents.pop()
        elif word.startswith(":"):
            currents[-1] = stack[-1].fields.setdefault(word[1:], [])
        elif word not in "()":
            currents[-1].append(word)
    return top.children("")


FIRST_USER_OID: Final = 16384
_UPDATE, _INSERT = 2, 3  # CmdType
_FRAME_ROWS: Final = 0x4  # windowapi: peers are told apart
_BODY: Final = """
    SELECT prosqlbody FROM pg_proc WHERE oid = 'pg_temp.pgduel_analysed'::regproc
"""
_VIEWS: Final = """
    SELECT r.ev_action FROM pg_class AS c JOIN pg_rewrite AS r ON r.ev_class = c.oid
    WHERE c.relkind = 'v' AND c.oid = ANY (%s)
"""


class Unanalysable(Exception):
    """The server's parser refuses the statement."""


def doubts(connection: psycopg.Connection[Any], catalog: Catalog, sql: str) -> frozenset[str]:
    """Return what in a SELECT, INSERT, UPDATE, DELETE or MERGE may differ from one time to the next, in a word each.

    Raises Unanalysable, psycopg.OperationalError.
    """
    with connection.transaction(force_rollback=True):
        try:
            made = f"CREATE FUNCTION pg_temp.pgduel_analysed() RETURNS void LANGUAGE sql BEGIN ATOMIC {sql}\n; END"
            connection.execute(made.encode(), prepare=True)  # so that it can be only one statement
            row = connection.execute(_BODY).fetchone()
        except psycopg.Error as error:
            if connection.broken:
                raise
            raise Unanalysable(str(error)) from error
        assert row is not None
        return frozenset(_with_views(connection, catalog, read_nodes(row[0])))


def _with_views(connection: psycopg.Connection[Any], catalog: Catalog, trees: list[Node]) -> Iterator[str]:
    """Yield doubts of the trees and of all views that they read."""
    known: set[int] = set()
    while trees:
        nodes = [node for tree in trees for node in tree.walk()]
        yield from _doubts(catalog, nodes)
        relations = {node.number("relid") for node in nodes if node.kind == "RANGETBLENTRY"} - known
        known |= relations
        rows = connection.execute(_VIEWS, [sorted(relations)]).fetchall() if relations else []
        trees = [tree for (action,) in rows for tree in read_nodes(action)]


def _doubts(catalog: Catalog, nodes: Iterable[Node]) -> Iterator[str]:
    for node in nodes:
        judge = _JUDGES.get(node.kind)
        if judge and (doubt := judge(catalog, node)):
            yield doubt


def _of_function(catalog: Catalog, node: Node) -> str:
    oid = node.number("funcid")
    return "" if catalog.fit(oid) else f"function {_named(catalog, oid)}"


def _of_operator(catalog: Catalog, node: Node) -> str:
    oid = catalog.operators.get(node.number("opno"), 0)
    return "" if catalog.fit(oid) else f"operator of {_named(catalog, oid)}"


def _of_aggregate(catalog: Catalog, node: Node) -> str:
    oid = node.number("aggfnoid")
    ordered = node.children("aggorder") or node.children("aggdistinct")
    return "" if catalog.fit(oid) or ordered else f"aggregate {_named(catalog, oid)}"


def _of_window(catalog: Catalog, node: Node) -> str:
    oid = node.number("winfnoid")
    return "" if catalog.fit(oid) else f"window function {_named(catalog, oid)}"


def _of_relation(_: Catalog, node: Node) -> str:
    is_catalog = node.number("rtekind") == 0 and 0 < node.number("relid") < FIRST_USER_OID
    return "system catalog" if is_catalog else ""


def _of_query(_: Catalog, node: Node) -> str:
    """An update by several relations may meet a row more than once; so may rows that conflict with each other."""
    sources = [each for tree in node.children("jointree") for each in tree.children("fromlist")]
    if node.number("commandType") == _UPDATE and len(sources) > 1:
        return "update by a join"
    if node.number("commandType") == _INSERT and node.children("onConflict") and sources:
        return "several rows in conflict"
    return ""


def _named(catalog: Catalog, oid: int) -> str:
    return catalog.functions[oid].name if oid in catalog.functions else str(oid)


_JUDGES: Final[Mapping[str, Callable[[Catalog, Node], str]]] = {
    "FUNCEXPR": _of_function,
    "OPEXPR": _of_operator,
    "DISTINCTEXPR": _of_operator,
    "NULLIFEXPR": _of_operator,
    "SCALARARRAYOPEXPR": _of_operator,
    "AGGREF": _of_aggregate,
    "WINDOWFUNC": _of_window,
    "RANGETBLENTRY": _of_relation,
    "QUERY": _of_query,
    "SQLVALUEFUNCTION": lambda _, __: "session's value",
    "TABLESAMPLECLAUSE": lambda _, __: "random sample",
    "VAR": lambda _, node: "system column" if node.number("varattno") < 0 else "",
    "WINDOWCLAUSE": lambda _, node: "frame of rows" if node.number("frameOptions") & _FRAME_ROWS else "",
}
