"""Analysis of a statement by the arm's own parser: whether the data determine its result, and its estimated cost.

The statement becomes the body of an SQL function that is rolled back. The catalogs then contain its node tree
(pg_node_tree), which names each function, operator and relation by OID. Overloading is resolved, which a parser without
catalogs cannot do.

Rows that compare as equal are assumed to be identical, as elsewhere in pgduel. Two cases are not detected here: an
update that finds a row twice, and an error that only one plan raises. The reference's second run settles these.

Cost is the planner's estimate. It is equal on every machine, unlike a time, and a statement that exceeds
statement_timeout is wasted.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg

from fuzz.sources.determinism.catalog import Catalog

MOST_COST: Final = 500_000  # a few seconds on an assert build
MOST_ROWS: Final = 20_000


def is_quick(connection: psycopg.Connection[Any], sql: str) -> bool:
    """Return whether the planner's estimates are within limits; True for statements that EXPLAIN refuses.

    Raises psycopg.OperationalError.
    """
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
    """A node of a node tree: its kind (such as QUERY or OPEXPR), and its fields.

    A field is a list of words and nodes, with nested lists flattened.
    """

    kind: str
    fields: dict[str, list["str | Node"]] = field(default_factory=dict)

    def word(self, name: str) -> str:
        """Return the first word of a field; "" if the field is absent or null."""
        first = next(iter(self.fields.get(name, ())), "")
        return first if isinstance(first, str) and first != "<>" else ""

    def number(self, name: str) -> int:
        """Return an integer field; 0 if it is absent."""
        return int(self.word(name) or 0)

    def children(self, name: str) -> list["Node"]:
        """Return the nodes of a field, including those in its lists."""
        return [value for value in self.fields.get(name, ()) if isinstance(value, Node)]

    def walk(self) -> Iterator["Node"]:
        """Yield this node and all nodes below it."""
        yield self
        for name in self.fields:
            for child in self.children(name):
                yield from child.walk()


def read_nodes(text: str) -> list[Node]:
    """Return the topmost nodes of a node tree."""
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
_SELECT, _UPDATE, _INSERT = 1, 2, 3  # values of CmdType
_WITH_TIES: Final = 1  # a value of LimitOption
_FRAME_ROWS: Final = 0x4  # FRAMEOPTION_ROWS, where peers are distinguished
_BODY: Final = """
    SELECT prosqlbody FROM pg_proc WHERE oid = 'pg_temp.pgduel_analysed'::regproc
"""
# Queries of views, and NULL for the relations of pgduel itself: what these hold depends on earlier cases.
_VIEWS: Final = """
    SELECT CASE WHEN n.nspname <> 'pgduel_tools' THEN r.ev_action END
    FROM pg_class AS c
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    LEFT JOIN pg_rewrite AS r ON r.ev_class = c.oid
    WHERE (c.relkind = 'v' OR n.nspname = 'pgduel_tools') AND c.oid = ANY (%s)
"""


class Unanalysable(Exception):
    """Raised if the server's parser refuses the statement."""


def doubts(connection: psycopg.Connection[Any], catalog: Catalog, sql: str) -> frozenset[str]:
    """Return the reasons why a SELECT, INSERT, UPDATE, DELETE or MERGE is nondeterministic, as short texts.

    Its own queries that keep some of their rows are repaired. Raises Unanalysable, psycopg.OperationalError.
    """
    return _analysed(connection, catalog, sql)[0]


def is_determined_query(connection: psycopg.Connection[Any], catalog: Catalog, sql: str) -> bool:
    """Return whether a statement that nobody repaired only reads, and is deterministic.

    Raises Unanalysable, psycopg.OperationalError.
    """
    reasons, nodes = _analysed(connection, catalog, sql)
    queries = [node for node in nodes if node.kind == "QUERY"]
    reads = all(node.number("commandType") == _SELECT and not node.children("rowMarks") for node in queries)
    return reads and not reasons and not any(map(_picks_rows, queries))


def _analysed(connection: psycopg.Connection[Any], catalog: Catalog, sql: str) -> tuple[frozenset[str], list[Node]]:
    """Return the reasons of `doubts`, and all nodes of the statement itself."""
    with connection.transaction(force_rollback=True):
        try:
            made = f"CREATE FUNCTION pg_temp.pgduel_analysed() RETURNS void LANGUAGE sql BEGIN ATOMIC {sql}\n; END"
            # The extended protocol refuses several statements.
            connection.execute(made.encode(), prepare=True)
            row = connection.execute(_BODY).fetchone()
        except psycopg.Error as error:
            if connection.broken:
                raise
            raise Unanalysable(str(error)) from error
        assert row is not None
        trees = read_nodes(row[0])
        reasons = frozenset(_with_views(connection, catalog, trees))
        return reasons, [node for tree in trees for node in tree.walk()]


def _with_views(connection: psycopg.Connection[Any], catalog: Catalog, trees: list[Node]) -> Iterator[str]:
    """Yield the reasons in the trees, and in all views that they read."""
    known: set[int] = set()
    while trees:
        nodes = [node for tree in trees for node in tree.walk()]
        yield from _doubts(catalog, nodes)
        relations = {node.number("relid") for node in nodes if node.kind == "RANGETBLENTRY"} - known
        known |= relations
        rows = connection.execute(_VIEWS, [sorted(relations)]).fetchall() if relations else []
        if any(action is None for (action,) in rows):
            yield "relation of pgduel"
        trees = [tree for (action,) in rows if action is not None for tree in read_nodes(action)]
        if any(_picks_rows(node) for tree in trees for node in tree.walk()):
            yield "view of some rows"


def _picks_rows(node: Node) -> bool:
    """Return whether a view's query keeps some of its rows, but not by an order of all its columns.

    The queries of a statement itself have such an order after repair.
    """
    cut, skipped = (bool(node.children(name)) for name in ("limitCount", "limitOffset"))
    first_of_each = node.word("hasDistinctOn") == "true"
    with_ties = node.number("limitOption") == _WITH_TIES and not skipped
    if node.kind != "QUERY" or not (first_of_each or skipped or (cut and not with_ties)):
        return False
    keys = {clause.number("tleSortGroupRef") for clause in node.children("sortClause")}
    columns = {each.number("ressortgroupref") for each in node.children("targetList") if each.word("resjunk") != "true"}
    return not columns <= keys


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
    """Return a reason if an UPDATE of joined relations may find a row twice, or if inserted rows may conflict."""
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
