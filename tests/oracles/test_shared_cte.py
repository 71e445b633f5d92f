"""Tests of the oracle `shared_cte`: a query as a CTE with two readers."""

from dataclasses import replace

import pytest

from oracles.model.case import Step
from oracles.model.observation import CaseObservation, ResultColumn, Run
from oracles.model.oracle import NotApplicable
from oracles.shared_cte import SHARED, SharedCte, shared
from oracles.sql.infallible import is_infallible
from tests.oracles.observed import agreed, case, finding, judged, ok, query, seen

TABLE = Step("CREATE TABLE a (x int, y numeric)")


def readers(sql: str) -> str:
    return (
        f"WITH shared AS MATERIALIZED ({sql}) (SELECT * FROM shared LIMIT 2) UNION ALL (SELECT * FROM shared OFFSET 2)"
    )


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.x, a.x FROM a WHERE a.x > $1",
        "SELECT FROM a",
        "SELECT x FROM shared",
        "SELECT x FROM a ORDER BY 1 LIMIT 3",
        "SELECT x FROM a UNION SELECT y FROM b ORDER BY 1",
        "WITH shared AS (SELECT x FROM a) SELECT x FROM shared",
        "SELECT count(*) FROM a",
        "SELECT x, count(*) FROM (SELECT x FROM a) AS q GROUP BY x",
    ],
)
def test_the_query_stays_as_it_is_within_the_cte(sql: str) -> None:
    assert shared(sql) == readers(sql)


def test_the_subquery_of_aggregates_is_shared() -> None:
    sql = "SELECT count(*) FROM (SELECT sum(r.y) FROM (SELECT DISTINCT y FROM a) AS r) AS q"
    assert shared(sql) == sql.replace("SELECT DISTINCT y FROM a", readers("SELECT DISTINCT y FROM a"))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT",
        "SELECT 1",
        "VALUES (1), (2)",
        "not SQL",
        "SELECT x FROM a WHERE x > random()",
        "SELECT x FROM a LIMIT 3",
        "SELECT x FROM a FOR UPDATE",
        "SELECT x, row_number() OVER () FROM a",
        "DELETE FROM a RETURNING x",
    ],
)
def test_other_queries_are_not_shared(sql: str) -> None:
    assert shared(sql) == ""


def test_the_readers_of_an_infallible_query_are_infallible() -> None:
    assert is_infallible(shared("SELECT x FROM a WHERE x > 1"), (Step("CREATE TABLE a (x int)"),))


@pytest.mark.parametrize(("column", "verdict"), [("23", agreed(1)), ("1700", agreed(1)), ("701", NotApplicable())])
def test_rows_that_depend_on_their_order_are_not_judged(column: str, verdict: object) -> None:
    tested = case(query("SELECT sum(x) FROM a"), TABLE, samples=(SHARED,))

    def respond(run: Run) -> CaseObservation:
        value = "0.1" if column == "701" and run.instead else "0.2"
        return seen(replace(ok(value), columns=(ResultColumn("sum", column),)), ok())

    assert judged(SharedCte(), tested, respond) == (verdict,)


def test_rows_that_the_readers_lack_are_a_finding() -> None:
    tested = case(query("SELECT x FROM a"), TABLE, samples=(SHARED,))

    def respond(run: Run) -> CaseObservation:
        lacks = run.arm == "patched" and "MATERIALIZED" in dict(run.instead).get(0, "")
        return seen(replace(ok("1", *(() if lacks else ("2",))), columns=(ResultColumn("x", "23"),)), ok())

    found = finding(judged(SharedCte(), tested, respond)[:1])
    assert (found.oracle, found.origin) == ("shared_cte", "rows change when two readers share a CTE")
    assert [each.sql for each in found.evidence] == [shared("SELECT x FROM a")]
