"""Tests of the oracle `order`: sort keys of queries, and rows that the server compares by them."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from fuzz.execution.executor import Executor
from fuzz.execution.judging import assignments, judge_case
from fuzz.execution.modes import MODES
from fuzz.servers.arm import Arm
from oracles.model.case import Case, Kind, Step
from oracles.model.finding import Finding
from oracles.model.mode import Mode, Protocol
from oracles.model.observation import CaseObservation, Observation, Outcome, ResultColumn, Run
from oracles.model.oracle import Agree, Inconclusive, NotApplicable, Unstable, Verdict
from oracles.order.oracle import ORDERED, Order
from oracles.order.sort_keys import sort_keys
from tests.oracles.observed import case, error, finding, judged, ok, query, row, seen

COLUMNS = (ResultColumn("a", "23"), ResultColumn("b", "25"), ResultColumn("c", "701"))
QUERY = "SELECT a FROM t ORDER BY a"
ROWS = replace(ok("1", "2", "2", "3"), columns=COLUMNS[:1])
DEFAULT = Mode("prepared", protocol=Protocol.PREPARED)


@pytest.mark.parametrize(
    ("sql", "keys"),
    [
        ("SELECT a, b, c FROM t ORDER BY 3, b DESC", ["c3", "c2 DESC NULLS FIRST"]),
        ("SELECT a AS x, b, c FROM t ORDER BY a NULLS FIRST", ["c1 NULLS FIRST"]),
        ("SELECT a AS b, a, c FROM t ORDER BY b", ["c2"]),  # the output column named b
        ("SELECT *, f(a) FROM t ORDER BY f(a) DESC NULLS LAST", ["c3 DESC"]),
        ("SELECT * FROM t ORDER BY t.a, b", []),
        ("SELECT a, b, c FROM t UNION SELECT 1, '', 2 ORDER BY c USING >", ["c3 DESC NULLS FIRST"]),
        ("SELECT a, b, c FROM t UNION SELECT 1, '', 2 ORDER BY c USING <<", []),
        ('SELECT t.a, t.b, c FROM t ORDER BY t.b COLLATE "C", t.a + 1', ['(c2 COLLATE "C")', "(c1 + 1)"]),
        ("SELECT a, b, c FROM t ORDER BY lower(b), a", []),
        ("SELECT a, b, c FROM t ORDER BY a, (SELECT 1), b", ["c1"]),
        ("SELECT a, b, c FROM t GROUP BY ROLLUP (a, a + 1), b, c ORDER BY b, a + 1", ["c2"]),
        ("SELECT a, b, c FROM t ORDER BY 'x'::text, a", ["c1"]),
        ("SELECT a, b, c FROM t", []),
        ("VALUES (1, '', 2) ORDER BY 1", ["c1"]),
        ("UPDATE t SET a = 1", []),
    ],
)
def test_the_leading_keys_that_output_columns_determine_are_known(sql: str, keys: list[str]) -> None:
    found = sort_keys(sql, COLUMNS)
    shown = [f"{key.sql}{' DESC' * key.descending}{' NULLS FIRST' * key.nulls_first}" for key in found]
    assert shown == keys


def respond_with(rows: Observation, check: Callable[[Run], Observation]) -> Callable[[Run], CaseObservation]:
    return lambda run: seen(check(run) if run.instead else rows)


def verdicts(check: Callable[[Run], Observation], rows: Observation = ROWS) -> tuple[Verdict, ...]:
    return judged(Order(), case(query(QUERY), samples=(ORDERED,)), respond_with(rows, check), ("master",))


def test_rows_with_different_keys_are_compared() -> None:
    def check(run: Run) -> Observation:
        ((_, sql),) = run.instead
        assert "(1, '1'),\n(2, '2'),\n(3, '3'))" in sql.partition("VALUES")[2].replace("(0, (SELECT c1 FROM t)),\n", "")
        return ok()

    assert verdicts(check) == (Agree(1),)


def test_a_row_that_must_precede_the_one_before_is_found() -> None:
    found = finding(verdicts(lambda _: ok("3")))
    assert (found.symptom, found.step, found.arms) == ("rows that are not sorted", 0, ("master", "master"))
    assert "  2: 2\n  3: 3" in found.actual
    assert QUERY in found.evidence[0].sql


def test_two_executions_of_a_prepared_statement_are_not_compared_with_each_other() -> None:
    def check(run: Run) -> Observation:
        assert all(number in run.instead[0][1] for number in ("(1, '1')", "(2, '2')", "(4, '1')", "(5, '2')"))
        return ok()

    twice = replace(ok("1", "2", "1", "2"), columns=COLUMNS[:1], tags=("SELECT 2", "SELECT 2"))
    prepared = replace(case(query(QUERY), samples=(ORDERED,)), modes=(DEFAULT,))
    sequences = judged(Order(), prepared, respond_with(twice, check), ("master",))
    assert sequences == (Agree(1),)


def test_the_comparison_must_be_the_same_again() -> None:
    assert Unstable("rows that are not sorted: not in each comparison") in verdicts(
        lambda run: ok() if run.repetition else ok("3")
    )


@pytest.mark.parametrize(
    ("seen_instead", "reason"),
    [
        (error("0A000"), "sort keys are not compared"),
        (Observation(Outcome.TIMEOUT, "57014"), "comparison of sort keys cut short"),
        (ok("0"), "sort keys are rounded in text"),
    ],
)
def test_failed_comparisons_are_inconclusive(seen_instead: Observation, reason: str) -> None:
    doubt, _ = verdicts(lambda _: seen_instead)
    assert isinstance(doubt, Inconclusive)
    assert (doubt.reason, doubt.step, any(doubt.sides)) == (reason, 0, True)


@pytest.mark.parametrize("rows", [ok(), ok("1"), ok("1", "1"), replace(ROWS, rows=(row("1", "1"), b"x", row("2")))])
def test_rows_with_one_key_are_not_compared(rows: Observation) -> None:
    assert verdicts(lambda _: ok("2"), replace(rows, columns=COLUMNS[:1])) == (NotApplicable(),)


def test_cases_with_operators_of_their_own_are_not_judged() -> None:
    steps = (Step("CREATE OPERATOR < (FUNCTION = f, LEFTARG = int, RIGHTARG = int)"), query(QUERY))
    own = case(*steps, samples=(ORDERED,))
    assert judged(Order(), own, lambda _: seen(ok(), ROWS), ("master",)) == (NotApplicable(),)


KEYS = """
    CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
    CREATE TYPE pair AS (x int, y text);
    CREATE DOMAIN small AS int CHECK (VALUE < 100);
    CREATE TABLE a (i int, t text, n numeric, f float8, m mood, p pair, s small, r int4range, e int[], z timestamptz,
      b bytea, c char(5), v interval, j jsonb, u "char", o oidvector, l bit varying);
    INSERT INTO a SELECT g, CASE WHEN g % 5 > 0 THEN chr(90 + g) || '\\''' END, g % 7 / 3.0, 1 / g::float8,
      (enum_range(NULL::mood))[g % 4], CASE WHEN g % 4 > 0 THEN (NULLIF(g % 3, 0), NULL)::pair END, g % 6,
      int4range(g % 4, 5), ARRAY[g % 3, NULL], '2000-01-01'::timestamptz + g % 5 * interval '1.000001 s',
      decode(md5(g::text), 'hex'), chr(97 + g % 9), g % 5 * interval '1 month 30 days', to_jsonb(g % 3),
      chr(97 + g % 5)::"char", (g % 3 || ' 4')::oidvector, g::bit(4)
      FROM generate_series(1, 40) AS g;
"""
LETTERS = "itnfmpsrezbcvjuol"


@pytest.mark.servers
@pytest.mark.parametrize("direction", ["", " DESC", " NULLS FIRST", " DESC NULLS LAST", " USING >"])
def test_the_server_compares_keys_of_all_types(executor: Executor, arms: tuple[Arm, ...], direction: str) -> None:
    queries = [f"SELECT {key}, i % 3 FROM a ORDER BY 1{direction}, 2{direction}" for key in LETTERS]
    queries += [f'SELECT t, m FROM a ORDER BY m{direction}, t COLLATE "C"{direction}']
    queries += [f"SELECT t::name FROM a ORDER BY 1{direction}"]
    queries += [f'SELECT upper(t)::name COLLATE "und-x-icu" FROM a ORDER BY 1{direction}']
    assert verdicts_of_servers(executor, arms, queries) == [Agree(len(queries))]


@pytest.mark.servers
def test_anonymous_records_are_not_read_back(executor: Executor, arms: tuple[Arm, ...]) -> None:
    found = verdicts_of_servers(executor, arms, ["SELECT (i, t) FROM a ORDER BY 1"])
    assert Inconclusive("sort keys are not compared") in found


@pytest.mark.servers
def test_rounded_keys_are_not_judged(executor: Executor, arms: tuple[Arm, ...]) -> None:
    found = verdicts_of_servers(executor, arms, ["SELECT f, i FROM a ORDER BY 1, 2"], "SET extra_float_digits = -14")
    assert Inconclusive("sort keys are rounded in text") in found


@pytest.mark.servers
def test_arrays_whose_nulls_would_be_read_as_text_are_not_judged(executor: Executor, arms: tuple[Arm, ...]) -> None:
    texts = "SELECT CASE WHEN t < 'z' THEN ARRAY[t] ELSE ARRAY[NULL::text] END FROM a ORDER BY 1"
    found = verdicts_of_servers(executor, arms, [texts], "SET array_nulls = off")
    assert Inconclusive("sort keys are rounded in text") in found


@pytest.mark.servers
def test_rows_in_binary_format_are_not_judged(executor: Executor, arms: tuple[Arm, ...]) -> None:
    numbers = Step(
        "SELECT n::int2 FROM (VALUES (11569), (11577)) AS q (n) ORDER BY 1", Kind.QUERY
    )  # as text, -1 and -9
    ordered = Case("by_hand", (), (numbers,), (MODES["binary"],), samples=(ORDERED.name,))
    judged = judge_case(executor, assignments([Order()], arms), ordered)
    assert [verdict for _, verdict in judged.verdicts] == [NotApplicable()]


def verdicts_of_servers(executor: Executor, arms: tuple[Arm, ...], queries: list[str], *commands: str) -> list[Verdict]:
    scene = tuple(Step(sql.strip()) for sql in [*KEYS.split(";")[:-1], *commands])
    ordered = Case("by_hand", scene, tuple(Step(sql, Kind.QUERY) for sql in queries), samples=(ORDERED.name,))
    judged = judge_case(executor, assignments([Order()], arms), ordered)
    assert not [verdict for _, verdict in judged.verdicts if isinstance(verdict, Finding)]
    return [verdict for _, verdict in judged.verdicts]
