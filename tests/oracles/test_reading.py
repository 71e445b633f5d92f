"""Readers of syntax trees call the same methods as pglast's visitors, in the same order, with the same places."""

from typing import Any

import pytest
from pglast import parse_sql
from pglast.enums import SubLinkType
from pglast.visitors import Skip, Visitor

from oracles.sql.reading import Reader

STATEMENTS = (
    "WITH x AS (SELECT DISTINCT a, b::numeric(3, 2)[] FROM t GROUP BY ROLLUP (a), (b, c)) SELECT x.*, count(*) FILTER "
    "(WHERE a > 1) OVER (PARTITION BY z) FROM x, ROWS FROM (generate_series(1, 2), f()) ORDER BY 1 DESC LIMIT 3",
    "SELECT FROM t LEFT JOIN (VALUES (1, 2), (3, 4)) AS v (p, q) ON t.a = v.p AND EXISTS (SELECT 1 FROM u WHERE NOT b) "
    "WHERE a IN (1, 2) AND b = ANY (SELECT c FROM y WHERE c) AND (d, e) = ROW (1, 'x')",
    "INSERT INTO t VALUES (1, 'a'), (2, DEFAULT) ON CONFLICT DO NOTHING RETURNING *",
    "CREATE TABLE p (a int PRIMARY KEY, b text CHECK (b <> '') DEFAULT 'x') PARTITION BY RANGE (a, (b || 'z'))",
)


class _Seen:
    """Methods that record nodes and their places, and skip subqueries of EXISTS."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, ...]] = []

    def visit(self, ancestors: Any, node: Any) -> None:
        self.seen.append(("any", repr(node), repr(ancestors), repr(ancestors.node)))

    def visit_SubLink(self, ancestors: Any, node: Any) -> Any:
        self.seen.append(("link", repr(node), repr(ancestors), repr(ancestors.node)))
        return Skip if node.subLinkType == SubLinkType.EXISTS_SUBLINK else None


class _ByReader(_Seen, Reader): ...


class _ByVisitor(_Seen, Visitor): ...  # type: ignore[misc]  # `visit` is a variable in the stubs of pglast


@pytest.mark.parametrize("sql", STATEMENTS)
@pytest.mark.parametrize("whole", [True, False])
def test_a_reader_reads_as_the_visitors_of_pglast_do(sql: str, *, whole: bool) -> None:
    statements: Any = parse_sql(sql)
    tree = statements if whole else statements[0].stmt
    reader, visitor = _ByReader(), _ByVisitor()
    reader(tree)
    visitor(tree)
    assert reader.seen == visitor.seen
    assert len(reader.seen) > 10


def test_a_reader_reads_only_what_it_has_methods_for() -> None:
    class Columns(Reader):
        def __init__(self) -> None:
            self.names: list[str] = []

        def visit_ColumnRef(self, _ancestors: Any, node: Any) -> None:
            self.names.append(node.fields[-1].sval)

    columns = Columns()
    columns(parse_sql("SELECT a, 1 FROM t WHERE t.b = 'c'"))
    assert columns.names == ["a", "b"]
