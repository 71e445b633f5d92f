"""Tests of the oracle `optimization_fence`: subqueries in place of tables."""

import pytest

from oracles.model.case import Step
from oracles.model.observation import CaseObservation, Run
from oracles.model.oracle import NotApplicable
from oracles.optimization_fence import OptimizationFence, fenced
from tests.oracles.observed import agreed, case, judged, ok, query, seen


def test_each_table_of_each_from_becomes_a_subquery() -> None:
    sql = "SELECT a.x FROM a LEFT JOIN ONLY s.b AS c (k) ON a.k = c.k, d WHERE EXISTS (SELECT FROM e WHERE e.x = d.x)"
    assert fenced(sql) == (
        "SELECT a.x FROM (SELECT * FROM a OFFSET 0) AS a "
        "LEFT JOIN (SELECT * FROM ONLY s.b OFFSET 0) AS c (k) ON a.k = c.k, "
        "(SELECT * FROM d OFFSET 0) AS d "
        "WHERE EXISTS (SELECT FROM (SELECT * FROM e OFFSET 0) AS e WHERE e.x = d.x)"
    )


def test_common_tables_are_replaced_inside_and_outside() -> None:
    assert fenced("WITH c AS (SELECT x FROM a) SELECT * FROM c UNION SELECT y FROM b") == (
        "WITH c AS (SELECT x FROM (SELECT * FROM a OFFSET 0) AS a) SELECT * FROM (SELECT * FROM c OFFSET 0) AS c "
        "UNION SELECT y FROM (SELECT * FROM b OFFSET 0) AS b"
    )


def test_rows_of_subqueries_are_values() -> None:
    assert fenced("SELECT count(q), sum(hashtext(q::text)) FROM (SELECT a.* FROM a) AS q")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT",
        "not SQL",
        "SELECT g FROM generate_series(1, 3) AS g",
        "SELECT x FROM a WHERE x > random()",
        "SELECT x FROM a TABLESAMPLE system (50)",
        "SELECT x FROM a FOR UPDATE",
        "SELECT ctid FROM a",
        "SELECT a FROM a",
        "SELECT a.x FROM b AS a WHERE a IS NOT NULL",
        "SELECT ROW(a.*) FROM a",
        "SELECT count(a.*) FROM a",
        "SELECT s.a.x FROM s.a",
        "WITH RECURSIVE c AS (SELECT x FROM a UNION SELECT x + 1 FROM c WHERE x < 9) SELECT x FROM c",
        "DELETE FROM a",
    ],
)
def test_other_queries_are_not_rewritten(sql: str) -> None:
    assert fenced(sql) == ""


def test_columns_that_depend_on_a_primary_key_need_no_grouping() -> None:
    assert fenced("SELECT x FROM a GROUP BY k", keeps_grouped=True) == ""
    within = "SELECT k IN (SELECT y FROM b) FROM a GROUP BY k"
    assert fenced(within, keeps_grouped=True) == within.replace("FROM b", "FROM (SELECT * FROM b OFFSET 0) AS b")


@pytest.mark.parametrize(("key", "verdict"), [("", agreed(1)), ("PRIMARY KEY", NotApplicable())])
def test_tables_of_grouped_queries_stay_where_a_primary_key_is(key: str, verdict: object) -> None:
    table = Step(f"CREATE TABLE a (k int {key}, x int)")
    tested = case(query("SELECT x FROM a GROUP BY k, x"), table, samples=OptimizationFence.samples)

    def respond(_: Run) -> CaseObservation:
        return seen(*(ok("1") for _ in tested.all_steps))

    assert judged(OptimizationFence(), tested, respond) == (verdict,)
