"""Tests of the oracle `pqs`: pivot rows, and queries rectified to select them."""

from collections.abc import Callable

import pytest

from oracles.model.observation import CaseObservation, Observation, Run
from oracles.model.oracle import Agree, Inconclusive, NotApplicable
from oracles.pqs import PIVOTED, Pqs, pivots
from tests.oracles.observed import case, error, finding, judged, ok, query, seen

SQL = "SELECT max(a.x) FROM a LEFT JOIN b ON a.k = b.k WHERE a.x > 3 AND NOT b.y IN (1, 2) GROUP BY a.y"
ROWS = ["'(1,2)'", "'(3,4)'"]


def test_conditions_are_turned_into_true_ones() -> None:
    made = pivots(SQL)
    assert made is not None
    assert made.pick().endswith("AND (a.k = b.k) IS TRUE")
    assert made.truths(ROWS) == (
        "SELECT (a.x > 3)::bool, (NOT b.y IN (1, 2))::bool FROM "
        """(SELECT ('(1,2)'::"a").*) AS "a", (SELECT ('(3,4)'::"b").*) AS "b\""""
    )
    rectified = made.rectified(ROWS, ["f", "NULL"])
    assert "LEFT JOIN b ON a.k = b.k WHERE NOT (a.x > 3) AND (NOT b.y IN (1, 2)) IS NULL OFFSET 0" in rectified
    assert rectified.endswith("WHERE p0 = '(1,2)' AND p1 = '(3,4)'")


def test_names_with_quotes_stay_names() -> None:
    made = pivots('SELECT x FROM "a""b" WHERE x > 1')
    assert made is not None
    assert made.truths(["'(1)'"]) == """SELECT (x > 1)::bool FROM (SELECT ('(1)'::"a""b").*) AS "a""b\""""


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT x FROM a",
        "SELECT x FROM (SELECT x FROM a) AS q JOIN b ON q.x = b.x WHERE q.x > 1",
        "SELECT x FROM a JOIN b USING (x) WHERE x > 1",
        "SELECT x FROM ONLY a WHERE x > 1",
        "SELECT x FROM a AS c (x) WHERE x > 1",
        "SELECT x FROM generate_series(1, 3) AS a (x) WHERE x > 1",
        "WITH a AS (TABLE b) SELECT x FROM a WHERE x > 1",
        "SELECT x FROM a WHERE x > random()",
        "SELECT x FROM a TABLESAMPLE system (50) WHERE x > 1",
    ],
)
def test_other_queries_have_no_pivot_rows(sql: str) -> None:
    assert pivots(sql) is None


def answering(picked: Observation, truths: Observation, found: Observation) -> Callable[[Run], CaseObservation]:
    """Return a response with these answers to the three queries."""

    def respond(run: Run) -> CaseObservation:
        sql = dict(run.instead).get(0, "")
        return seen(ok("5") if not sql else found if "DISTINCT" in sql else picked if "ORDER BY" in sql else truths)

    return respond


ONE = case(query("SELECT a.x FROM a WHERE a.x > 3"), samples=(PIVOTED,))


def test_a_row_that_is_found_agrees() -> None:
    assert judged(Pqs(), ONE, answering(ok("'(5)'"), ok("t"), ok("'(5)'"))) == (Agree(1),)


def test_a_row_that_is_not_found_is_a_finding() -> None:
    found = finding(judged(Pqs(), ONE, answering(ok("'(5)'"), ok("t"), ok())))
    assert found.origin == "a row that meets all conditions is missing"
    assert "WHERE (a.x > 3) OFFSET 0" in found.actual


def test_all_three_queries_are_evidence() -> None:
    picked, truths, rectified = finding(judged(Pqs(), ONE, answering(ok("'(5)'"), ok("t"), ok()))).evidence
    assert "ORDER BY" in picked.sql
    assert truths.sql.startswith("SELECT (a.x > 3)::bool FROM")
    assert "DISTINCT" in rectified.sql


def test_an_empty_table_has_no_row_to_find() -> None:
    assert judged(Pqs(), ONE, answering(ok(), ok("t"), ok())) == (NotApplicable(),)


@pytest.mark.parametrize(
    ("picked", "truths", "reason"),
    [
        (ok("'(5)'"), error("22012"), "the query for truth values fails"),
        (error("22P02"), ok("t"), "the query for pivot rows fails"),
    ],
)
def test_a_query_of_the_oracle_that_may_fail_is_inconclusive(
    picked: Observation, truths: Observation, reason: str
) -> None:
    doubt, *_ = judged(Pqs(), ONE, answering(picked, truths, ok()))
    assert isinstance(doubt, Inconclusive)
    assert (doubt.reason, doubt.step) == (reason, 0)
    assert "query: SELECT" in doubt.sides[1]
