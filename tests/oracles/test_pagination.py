"""Tests of the oracle `pagination`: pages in place of a query."""

from dataclasses import replace

import pytest

from oracles.model.case import Step
from oracles.model.observation import CaseObservation, ResultColumn, Run
from oracles.model.oracle import NotApplicable
from oracles.pagination import PAGED, Paged, Pagination, paged
from tests.oracles.observed import agreed, case, finding, judged, ok, query, seen

INTEGER, COUNT, TEXT, JSON = "23", "20", "25", "114"
TABLE = Step("CREATE TABLE a (x int, y int)")


def pages(text: str, *limits: str) -> str:
    """Return the union of a query's pages."""
    return " UNION ALL ".join(f"SELECT * FROM ({text} {limit}) AS page" for limit in limits)


ALL = ("LIMIT 1", "LIMIT 9 OFFSET 1", "OFFSET 10")


def test_the_pages_have_one_total_order() -> None:
    assert paged("SELECT x, y FROM a") == Paged(pages("SELECT x, y FROM a ORDER BY 1, 2", *ALL), is_within=False)


def test_columns_without_an_order_are_sorted_as_text() -> None:
    found = paged("SELECT x, y || 'z' AS z FROM a", (INTEGER, JSON))
    assert found
    assert found.sql == pages("SELECT x, y || 'z' AS z FROM a ORDER BY 1, CAST(y || 'z' AS text) COLLATE \"C\"", *ALL)
    assert paged("SELECT x FROM a ORDER BY 1", (JSON,)) == paged("SELECT x FROM a ORDER BY 1")


def test_keys_of_the_query_come_first() -> None:
    found = paged("SELECT x, y FROM a ORDER BY y DESC NULLS LAST, 1")
    assert found
    assert found.sql == pages("SELECT x, y FROM a ORDER BY y DESC NULLS LAST, 1, 2", *ALL)


def test_set_operations_are_divided_as_a_whole() -> None:
    found = paged("SELECT x FROM a UNION SELECT y FROM b")
    assert found
    assert found.sql == pages("SELECT x FROM a UNION SELECT y FROM b ORDER BY 1", *ALL)


def test_common_tables_stay_outside_of_the_pages() -> None:
    found = paged("WITH c AS (SELECT x FROM a) SELECT x FROM c")
    assert found
    assert found.sql.startswith("WITH c AS (SELECT x FROM a)")
    assert found.sql.count("FROM a") == 1


def test_the_subquery_of_aggregates_is_divided() -> None:
    found = paged("SELECT count(*), sum(q.x) FROM (SELECT x FROM a) AS q")
    inner = pages("SELECT x FROM a ORDER BY 1", *ALL)
    assert found == Paged(f"SELECT count(*), sum(q.x) FROM ({inner}) AS q", is_within=True)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("LIMIT 2", ("LIMIT 1", "LIMIT 1 OFFSET 1")),
        ("LIMIT 10", ("LIMIT 1", "LIMIT 9 OFFSET 1")),
        ("LIMIT 12 OFFSET 3", ("LIMIT 1 OFFSET 3", "LIMIT 9 OFFSET 4", "LIMIT 2 OFFSET 13")),
        ("OFFSET 3", ("LIMIT 1 OFFSET 3", "LIMIT 9 OFFSET 4", "OFFSET 13")),
    ],
)
def test_pages_of_a_query_with_limit_end_at_its_limit(limit: str, expected: tuple[str, ...]) -> None:
    found = paged(f"SELECT x FROM a ORDER BY 1 {limit}")
    assert found
    assert found.sql == pages("SELECT x FROM a ORDER BY 1", *expected)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT",
        "not SQL",
        "SELECT FROM a",
        "SELECT * FROM a",
        "SELECT (a.pair).* FROM a",
        "SELECT x FROM a WHERE x > random()",
        "SELECT x FROM a FOR UPDATE",
        "SELECT x, row_number() OVER () FROM a",
        "SELECT DISTINCT ON (x) x, y FROM a",
        "SELECT count(*) FROM a",
        "SELECT count(*), max(y) FROM (SELECT sum(y) AS y FROM a) AS q",
        "SELECT x FROM a ORDER BY 1 LIMIT 1",
        "SELECT x FROM a ORDER BY 1 LIMIT $1",
        "SELECT x FROM a ORDER BY 1 LIMIT (SELECT 3)",
        "SELECT x FROM a ORDER BY 1 FETCH FIRST 3 ROWS WITH TIES",
        "SELECT 1, x FROM a GROUP BY CUBE (1, 2)",
        "DELETE FROM a",
    ],
)
def test_other_queries_are_not_divided(sql: str) -> None:
    assert paged(sql) is None


def test_rows_of_a_group_are_divided() -> None:
    assert paged("SELECT count(*) FROM a GROUP BY x")


@pytest.mark.parametrize(
    ("sql", "column", "table", "verdict"),
    [
        ("SELECT x FROM a", INTEGER, "CREATE TABLE a (x int, f float8)", agreed(1)),
        ("SELECT x FROM a", TEXT, "CREATE TABLE a (x text)", agreed(1)),
        # equal, but distinguishable: each page may sort them in another way
        ("SELECT x FROM a", "1700", "CREATE TABLE a (x numeric)", NotApplicable()),
        ("SELECT count(*) FROM (SELECT x FROM a) AS q", COUNT, "CREATE TABLE a (x numeric)", NotApplicable()),
        ("SELECT count(*) FROM (SELECT x FROM a) AS q", COUNT, "CREATE TABLE a (x numeric(5, 1))", agreed(1)),
        ("SELECT sum(x) FROM (SELECT x * 1.5 AS x FROM a) AS q", "1700", "CREATE TABLE a (x numeric)", NotApplicable()),
    ],
)
def test_queries_with_equal_but_distinguishable_rows_are_not_divided(
    sql: str, column: str, table: str, verdict: object
) -> None:
    tested = case(query(sql), Step(table), samples=(PAGED,))

    def respond(_: Run) -> CaseObservation:
        return seen(*(replace(ok("1"), columns=(ResultColumn("x", column),)) for _ in tested.all_steps))

    assert judged(Pagination(), tested, respond) == (verdict,)


def test_rows_that_a_page_lacks_are_a_finding() -> None:
    tested = case(query("SELECT x FROM a"), TABLE, samples=(PAGED,))

    def respond(run: Run) -> CaseObservation:
        lacks = run.arm == "patched" and "LIMIT" in dict(run.instead).get(0, "")
        return seen(replace(ok("1", *(() if lacks else ("2",))), columns=(ResultColumn("x", INTEGER),)), ok())

    found = finding(judged(Pagination(), tested, respond)[:1])
    assert (found.oracle, found.origin, found.step) == ("pagination", "rows are not those of the pages", 0)
    assert found.evidence[0].sql.count("LIMIT") == 2
