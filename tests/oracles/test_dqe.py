"""Tests of the oracle `dqe`: a query's condition in UPDATE and DELETE."""

from dataclasses import replace

import pytest

from oracles.dqe import CHANGED, Dqe, changes
from oracles.model.observation import CaseObservation, Observation, Run
from oracles.model.oracle import Agree, Inconclusive, NotApplicable
from tests.oracles.observed import case, error, finding, judged, ok, query, seen

SQL = "SELECT max(a.x) FROM t AS a WHERE a.x > 3 GROUP BY a.y ORDER BY 1 LIMIT 1"
CASE = case(query(SQL), samples=(CHANGED,))


def test_rows_are_selected_updated_and_deleted() -> None:
    digest = "SELECT count(*), sum(hashtextextended(r, 0)) FROM c;ROLLBACK"
    assert changes(SQL) == (
        "SELECT count(*), sum(hashtextextended((a.*)::text, 0)) FROM t AS a WHERE a.x > 3",
        f"BEGIN;WITH c AS (UPDATE t AS a SET x = a.x WHERE a.x > 3 RETURNING (a.*)::text AS r) {digest}",
        f"BEGIN;WITH c AS (DELETE FROM t AS a WHERE a.x > 3 RETURNING (a.*)::text AS r) {digest}",
    )


def test_names_are_quoted_where_they_have_to_be() -> None:
    made = changes('SELECT x FROM "1. t" WHERE "1. t"."A b" > 3')
    assert made is not None
    assert 'UPDATE "1. t" SET "A b" = "1. t"."A b" WHERE' in made[1]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT x FROM t",
        "SELECT x FROM t WHERE true",  # no column to set
        "SELECT x FROM t WHERE EXISTS (SELECT FROM u WHERE u.x > 1)",
        "SELECT t.x FROM t JOIN u ON t.x = u.x WHERE t.x > 1",
        "SELECT x FROM generate_series(1, 3) AS t (x) WHERE x > 1",
        "SELECT x FROM t AS a (x) WHERE x > 1",
        "WITH t AS (TABLE u) SELECT x FROM t WHERE x > 1",
        "SELECT x FROM t WHERE x > random()",
        "SELECT x FROM t TABLESAMPLE system (50) WHERE x > 1",
    ],
)
def test_other_queries_are_not_changed(sql: str) -> None:
    assert changes(sql) is None


def answer(run: Run, *, undisturbed: bool, deleted: str, transaction: str = "I") -> CaseObservation:
    sql = dict(run.instead).get(0, "")
    if "pg_trigger" in sql:
        return seen(ok(*(["1"] if undisturbed else [])))
    found: Observation = ok(deleted if "DELETE" in sql else "7", transaction=transaction)
    return seen(found)


def test_other_rows_are_a_finding() -> None:
    found = finding(judged(Dqe(), CASE, lambda run: answer(run, undisturbed=True, deleted="6"))[:1])
    assert found.origin == "DELETE changes other rows than SELECT returns"
    assert "DELETE FROM t" in found.actual


def test_equal_rows_agree() -> None:
    assert judged(Dqe(), CASE, lambda run: answer(run, undisturbed=True, deleted="7")) == (Agree(1),)


def test_tables_with_triggers_are_not_judged() -> None:
    assert judged(Dqe(), CASE, lambda run: answer(run, undisturbed=False, deleted="6")) == (NotApplicable(),)


def test_a_query_for_triggers_that_fails_is_inconclusive() -> None:
    def respond(run: Run) -> CaseObservation:
        return seen(error("57014") if "pg_trigger" in dict(run.instead).get(0, "") else ok("7"))

    doubt, *_ = judged(Dqe(), CASE, respond, ("master",))
    assert isinstance(doubt, Inconclusive)
    assert (doubt.reason, doubt.step) == ("the query for triggers and rules fails", 0)


def test_a_query_with_parameters_is_not_judged() -> None:
    given = case(replace(query("SELECT x FROM t WHERE x > $1 AND y > 0"), params=("3",)), samples=(CHANGED,))
    assert judged(Dqe(), given, lambda run: answer(run, undisturbed=True, deleted="6")) == (NotApplicable(),)


def test_an_open_transaction_is_not_judged() -> None:
    respond = judged(Dqe(), CASE, lambda run: answer(run, undisturbed=True, deleted="6", transaction="T"))
    assert respond == (NotApplicable(),)
