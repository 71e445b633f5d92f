"""Tests of repairs, which make statements deterministic."""

import pglast
import pytest

from fuzz.sources.determinism.catalog import Catalog, Function
from fuzz.sources.determinism.repair import repair
from oracles.sql.building import sql_of

FUNCTIONS = (
    Function(1, "now", 0, "f", fit=False, returns="timestamp with time zone"),
    Function(2, "abs", 1, "f", fit=True, returns="integer"),
    Function(3, "array_agg", 1, "a", fit=False, returns="anyarray"),
    Function(4, "sum", 1, "a", fit=True, returns="bigint"),
    Function(5, "sum", 1, "a", fit=False, returns="double precision"),
    Function(6, "pg_sleep", 1, "f", fit=False, returns="void"),
)
CATALOG = Catalog({each.oid: each for each in FUNCTIONS}, {})


def repaired(sql: str, *, without_calls: bool = True) -> str | None:
    """Return the repaired statement, or None if it needs no repair."""
    (statement,) = pglast.parse_sql(sql)
    return sql_of(statement) if repair(statement, CATALOG, without_calls=without_calls) else None


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a, b FROM t LIMIT 3", "SELECT a, b FROM t ORDER BY 1, 2 LIMIT 3"),
        ("SELECT a, b FROM t ORDER BY b DESC LIMIT 3", "SELECT a, b FROM t ORDER BY b DESC, 1, 2 LIMIT 3"),
        ("SELECT a FROM t OFFSET 2", "SELECT a FROM t ORDER BY 1 OFFSET 2"),
        ("SELECT (SELECT a FROM t LIMIT 1)", "SELECT (SELECT a FROM t ORDER BY 1 LIMIT 1)"),
        ("SELECT * FROM t LIMIT 3", "SELECT * FROM t"),
        ("SELECT u.* FROM t u LIMIT 3", "SELECT u.* FROM t AS u"),
        ("SELECT a FROM t UNION SELECT b FROM u LIMIT 1", "SELECT a FROM t UNION SELECT b FROM u ORDER BY 1 LIMIT 1"),
        ("VALUES (1, 2), (3, 4) LIMIT 1", "VALUES (1, 2), (3, 4) ORDER BY 1, 2 LIMIT 1"),
        ("SELECT DISTINCT ON (a) a, b FROM t", "SELECT DISTINCT ON (a) a, b FROM t ORDER BY a, 1, 2"),
        ("SELECT a FROM t TABLESAMPLE system (5)", "SELECT a FROM t"),
        ("SELECT now() AS x, abs(a) FROM t", "SELECT CAST(NULL AS timestamp with time zone) AS x, abs(a) FROM t"),
        ("SELECT array_agg(a) FROM t", "SELECT array_agg(a ORDER BY a) FROM t"),
    ],
)  # fmt: skip
def test_nondeterministic_statements_are_repaired(sql: str, expected: str) -> None:
    assert repaired(sql) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a, sum(b) FROM t GROUP BY a ORDER BY 2",
        "SELECT DISTINCT a FROM t",
        "SELECT array_agg(a ORDER BY b), array_agg(DISTINCT a) FROM t",
        "SELECT pg_sleep(1)",  # type void has no NULL, so the analysis refuses it
        "SELECT somebodys(a) FROM t",
    ],
)
def test_other_statements_are_unchanged(sql: str) -> None:
    assert repaired(sql) is None


def test_calls_may_be_kept() -> None:
    assert repaired("SELECT now()", without_calls=False) is None
