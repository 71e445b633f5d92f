"""Tests of the oracle `rescan`: a query whose last execution follows others that were read in part."""

from dataclasses import replace

import pytest

from oracles.model.case import Step
from oracles.model.observation import CaseObservation, ResultColumn, Run
from oracles.model.oracle import NotApplicable
from oracles.rescan import RESCANNED, Rescan, rescanned, rescanned_with_hidden_limits
from tests.oracles.observed import agreed, case, finding, judged, ok, query, seen

TABLE = Step("CREATE TABLE a (x int, y numeric)")


def within(sql: str) -> str:
    return f"FROM (SELECT * FROM (SELECT * FROM ({sql}) AS q LIMIT again.n) AS q OFFSET again.skipped) AS q"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.x, a.x FROM a WHERE a.x > $1",
        "SELECT FROM a",
        "SELECT DISTINCT x FROM a",
        "SELECT x FROM a ORDER BY 1 LIMIT 3",
        "SELECT x FROM a UNION SELECT y FROM b ORDER BY 1",
        "WITH c AS (SELECT x FROM a) SELECT x FROM c",
        "WITH RECURSIVE c AS (SELECT 1 AS x UNION SELECT x + 1 FROM c WHERE x < 9) SELECT x FROM c",
    ],
)
def test_the_query_stays_as_it_is_within_its_executions(sql: str) -> None:
    assert rescanned(sql).endswith(within(sql).removeprefix("FROM"))


def test_a_limit_between_the_query_and_the_other_one_hides_it() -> None:
    sql, hidden = "SELECT x FROM a", "SELECT * FROM (SELECT x FROM a) AS q OFFSET again.none"
    assert rescanned_with_hidden_limits(sql) == rescanned(sql).replace(sql, hidden)


def test_the_subquery_of_aggregates_is_executed_again() -> None:
    sql = "SELECT count(*) FROM (SELECT sum(r.y) FROM (SELECT DISTINCT y FROM a) AS r) AS q"
    assert rescanned(sql) == sql.replace("SELECT DISTINCT y FROM a", rescanned("SELECT DISTINCT y FROM a"))


@pytest.mark.parametrize("sql", ["SELECT count(*) FROM a", "SELECT x, count(*) FROM (SELECT x FROM a) AS q GROUP BY x"])
def test_other_aggregates_are_executed_again_as_a_whole(sql: str) -> None:
    assert rescanned(sql).endswith(within(sql).removeprefix("FROM"))


def test_only_the_last_execution_shows_rows() -> None:
    *early, last = [(0, 1), (1, 1), (None, 10**9), (2, 2), (None, 0)]
    executions = ", ".join(f"({'NULL' if n is None else n}, {skipped}, 0)" for n, skipped in (*early, last))
    assert f"VALUES {executions})" in rescanned("SELECT x FROM a")
    assert all(skipped >= (10**9 if n is None else n) for n, skipped in early)
    assert len({*early, last}) == 5


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
def test_other_queries_are_not_executed_again(sql: str) -> None:
    assert rescanned(sql) == ""


@pytest.mark.parametrize(("column", "verdict"), [("23", agreed(1)), ("1700", agreed(1)), ("701", NotApplicable())])
def test_rows_that_depend_on_their_order_are_not_judged(column: str, verdict: object) -> None:
    tested = case(query("SELECT sum(x) FROM a"), TABLE, samples=(RESCANNED,))

    def respond(run: Run) -> CaseObservation:
        value = "0.1" if column == "701" and run.instead else "0.2"
        return seen(replace(ok(value), columns=(ResultColumn("sum", column),)), ok())

    assert judged(Rescan(), tested, respond) == (verdict,)


def test_rows_that_the_last_execution_lacks_are_a_finding() -> None:
    tested = case(query("SELECT x FROM a"), TABLE, samples=(RESCANNED,))

    def respond(run: Run) -> CaseObservation:
        lacks = run.arm == "patched" and "again" in dict(run.instead).get(0, "")
        return seen(replace(ok("1", *(() if lacks else ("2",))), columns=(ResultColumn("x", "23"),)), ok())

    found = finding(judged(Rescan(), tested, respond)[:1])
    assert (found.oracle, found.origin) == ("rescan", "rows change when the plan is executed again")
    assert [each.sql for each in found.evidence] == [rescanned_with_hidden_limits("SELECT x FROM a")]


def test_rows_that_change_under_limits_only_are_a_finding_without_workers() -> None:
    tested = case(query("SELECT x FROM a"), TABLE, samples=(RESCANNED,))

    def respond(run: Run) -> CaseObservation:
        lacks = run.arm == "patched" and dict(run.instead).get(0) == rescanned("SELECT x FROM a")
        return seen(replace(ok("1", *(() if lacks else ("2",))), columns=(ResultColumn("x", "23"),)), ok())

    found = finding(judged(Rescan(), tested, respond)[:1])
    assert found.origin == "rows change when a limited plan is executed again"
    assert "max_parallel_workers_per_gather" in str(found.evidence)
