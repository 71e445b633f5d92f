"""Tests of the oracle `coddtest`: constant subqueries, and constants that replace them."""

from collections.abc import Sequence

import pytest

from oracles.coddtest import FOLDED, Coddtest, folded, subquery_values, unfolded
from oracles.model.observation import CaseObservation, Run
from oracles.model.oracle import Inconclusive, NotApplicable, Verdict
from tests.oracles.observed import case, error, judged, ok, query, seen

IN = "SELECT a.x FROM a WHERE a.x NOT IN (SELECT b.y FROM b WHERE b.y > 0)"
SCALAR = "SELECT a.x FROM a WHERE a.x > (SELECT max(b.y) FROM b)"
EXISTS = "SELECT a.x FROM a WHERE EXISTS (SELECT 1 FROM b)"


def put(sql: str, answers: Sequence[tuple[int, str]]) -> str:
    return folded(sql, tuple(answers))


def test_values_are_requested_as_sql() -> None:
    assert subquery_values(SCALAR).startswith("SELECT 0, v FROM (SELECT CASE WHEN ")
    assert " THEN format('%L::%s%s', y, format_type(pg_typeof(y)::oid, -1), ' COLLATE ' || " in subquery_values(SCALAR)
    assert subquery_values(SCALAR).endswith("END FROM (SELECT (SELECT max(b.y) FROM b) AS y) AS s) AS a (v)")
    both = subquery_values(f"{IN} AND EXISTS (SELECT 1 FROM b)")
    assert "v FROM (SELECT EXISTS (SELECT 1 FROM b)::text) AS a (v)" in both
    assert "FROM (SELECT b.y FROM b WHERE b.y > 0) AS s (y)" in both
    assert "SELECT 0, v" in both.split(" UNION ALL ")[0]
    assert "SELECT 1, v" in both.split(" UNION ALL ")[1]


def test_a_list_holds_each_value_once_and_null() -> None:
    answers = [(0, "'7'::integer"), (0, "NULL::integer"), (0, "'7'::integer")]
    assert put(IN, answers) == (
        "SELECT a.x FROM a WHERE NOT a.x = ANY(ARRAY[CAST('7' AS integer), CAST(NULL AS integer)])"
    )


def test_arrays_are_no_elements_of_an_array() -> None:
    for collation in ("", ' COLLATE "C"'):
        assert " IN (CAST('{7}' AS text[])" in put(IN, [(0, f"'{{7}}'::text[]{collation}")])


def test_a_value_that_is_not_printed_whole_is_no_constant() -> None:
    assert put(IN, [(0, "'7'::real"), (0, "NULL")]) == put(SCALAR, [(0, "NULL")]) == ""


def test_an_empty_list_has_no_member() -> None:
    assert put(IN, []).endswith("WHERE NOT FALSE")
    assert put(IN.replace("NOT IN", "> ALL"), []).endswith("WHERE TRUE")


def test_operators_stay() -> None:
    assert put(IN.replace("NOT IN", "<= ANY"), [(0, "'7'::integer")]).endswith(
        "a.x <= ANY(ARRAY[CAST('7' AS integer)])"
    )


def test_a_single_value_and_existence() -> None:
    assert put(SCALAR, [(0, "NULL::integer")]).endswith("a.x > CAST(NULL AS integer)")
    assert put(EXISTS, [(0, "true")]).endswith("WHERE TRUE")


def test_a_long_list_stays_a_subquery() -> None:
    assert put(IN, [(0, f"'{number}'::integer") for number in range(200)]) == ""


@pytest.mark.parametrize(
    "sql",
    [
        "not SQL",
        "SELECT a.x FROM a",
        "SELECT a.x FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.y = a.x)",
        "SELECT a.x FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.y = k)",  # k may be a column of a
        "WITH b AS (TABLE c) SELECT a.x FROM a WHERE EXISTS (SELECT 1 FROM b)",  # outside of WITH, b is another table
        "SELECT a.x FROM a WHERE a.x IN (SELECT b.y FROM b WHERE b.y > $1::int)",
        "SELECT a.x FROM a WHERE (a.x, a.y) IN (SELECT b.x, b.y FROM b)",
        "SELECT a.x FROM a WHERE a.x = (SELECT b.y FROM b ORDER BY b.z LIMIT 1)",
        "SELECT a.x FROM a WHERE a.x > (SELECT max(b.y) FROM b) AND a.y > random()",
    ],
)
def test_other_subqueries_are_no_constants(sql: str) -> None:
    assert subquery_values(sql) == ""


def test_constants_become_subqueries_in_conditions() -> None:
    assert unfolded("SELECT a.x, 1 FROM a JOIN b ON a.k = b.k AND b.y < 7 WHERE a.d > '2024-01-01'::date") == (
        "SELECT a.x, 1 FROM a INNER JOIN b ON a.k = b.k AND b.y < (SELECT 7) "
        "WHERE a.d > (SELECT CAST('2024-01-01' AS date))"
    )


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.x FROM a WHERE a.t = 'k'",  # its type comes from the other side
        "SELECT a.x FROM a FULL JOIN b ON a.k = b.k AND b.y = 7",
        "SELECT count(*) FROM a GROUP BY 1 ORDER BY 1",
        "SELECT a.x FROM a WHERE a.x > 1 LIMIT 1",
    ],
)
def test_other_constants_stay(sql: str) -> None:
    assert unfolded(sql) == ""


def verdicts_after(sqlstate: str) -> tuple[Verdict, ...]:
    """Return the verdicts if the query for values of subqueries fails."""

    def respond(run: Run) -> CaseObservation:
        return seen(error(sqlstate) if "SELECT 0, v" in dict(run.instead).get(0, "") else ok("5"))

    only = case(query("SELECT a.x FROM a WHERE a.x = (SELECT max(b.y) FROM b)"), samples=(FOLDED,))
    return judged(Coddtest(), only, respond, ("master",))


def test_values_that_cannot_be_computed_are_inconclusive() -> None:
    doubt, *_ = verdicts_after("22012")
    assert isinstance(doubt, Inconclusive)
    assert (doubt.reason, doubt.step) == ("the query for values of subqueries fails", 0)


def test_a_correlated_subquery_is_no_doubt() -> None:
    assert verdicts_after("42703") == (NotApplicable(),)
