"""Tests of passes on syntax trees: statements are reduced to their necessary parts."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pglast import ast
from pglast.enums import JoinType

from fuzz.triage.reduction.passes.prune import prune_commands, prune_queries
from fuzz.triage.reduction.passes.shorten import shorten_literals, shorten_series
from fuzz.triage.reduction.problem import restated
from fuzz.triage.reduction.reducer import Pass, reduce
from fuzz.triage.reduction.trees import nodes, tree_of
from oracles.model.case import Case, Kind, Step

JOINS = """
WITH c AS MATERIALIZED (
  SELECT b2.k1 AS k1, b2.i1 AS i1, b2.i2 AS i2, b2.i3 AS i3, b2.w1 AS w1
  FROM (SELECT * FROM r1 WHERE i1 <= 1023 AND (i1 - 1) / 1023 = 0) AS b2
  RIGHT JOIN (SELECT * FROM r1 WHERE i1 <= 1281 AND (i1 - 1) / 1281 = 0) AS b1
    ON b2.k1::varchar = b1.k1::varchar
)
SELECT count(*), sum(hashtextextended(q::text, 0))
FROM (
  SELECT
    a1.i3,
    count(*),
    sum(a2.i1) FILTER (WHERE a2.i1 IS NOT NULL),
    max(CASE WHEN a2.i2 > 3 THEN a1.i1 ELSE coalesce(a1.i2, a2.i2, 0) END),
    sum(length(a2.w1))
  FROM (
      SELECT a2.k1 AS k1, a2.k2 AS k2, a2.i1 AS i1, a2.i2 AS i2, a2.i3 AS i3, a2.w1 AS w1
      FROM r2 AS a2
      WHERE (a2.k2 * 2) % 2 = 0
    ) AS a2
    FULL JOIN (
      SELECT a1.k1 AS k1, a1.i1 AS i1, a1.i2 AS i2, a1.i3 AS i3, a1.w1 AS w1
      FROM r3 AS a1
      WHERE a1.i1 NOT IN (SELECT x.i1 FROM r4 AS x WHERE x.i1 IS NOT NULL)
    ) AS a1 ON a2.k1 = a1.k1 AND a2.i1 < a1.i1
    LEFT JOIN c ON c.k1 = a1.k1
  WHERE a2.k1 > 3
    OR a1.k1 BETWEEN 2 AND 17
  GROUP BY a1.i3
  HAVING count(*) > 1 AND bool_or(a1.i1 > 7)
  ORDER BY 1, 2 DESC
  LIMIT 3
) AS q
"""


def pruned(sql: str, is_interesting: Callable[[str], bool], *passes: Pass, kind: Kind = Kind.QUERY) -> str:
    """Return the statement after reduction, which keeps it a single step."""
    case = Case("g", (), (Step(sql, kind),))
    left = reduce(
        case,
        lambda tried: len(tried.steps) == 1 and is_interesting(tried.steps[0].sql),
        seconds=60,
        replay="",
        passes=passes or (prune_queries, prune_commands),
    )
    return left.case.steps[0].sql


def joins_in_full(sql: str) -> bool:
    """Return whether the statement counts the rows of a full join of r2 and r3."""
    tree = tree_of(sql)
    joins = [each for each in nodes(tree) if isinstance(each, ast.JoinExpr) and each.jointype is JoinType.JOIN_FULL]
    tables = [{node.relname for node in nodes(join) if isinstance(node, ast.RangeVar)} for join in joins]
    return "SELECT count(*)" in sql and any({"r2", "r3"} <= each for each in tables)


def test_a_long_query_is_reduced_to_its_necessary_parts() -> None:
    tried: list[str] = []

    def is_interesting(sql: str) -> bool:
        tried.append(sql)
        return joins_in_full(sql)

    assert pruned(JOINS, is_interesting) == "SELECT count(*) FROM r2 FULL JOIN r3 ON TRUE"
    assert len(tried) < 150


@pytest.mark.parametrize(
    ("sql", "needed", "left"),
    [
        ("SELECT a, b FROM t WHERE c AND d > 1 ORDER BY 2 LIMIT 3", ("b", "t", "d"), "SELECT b FROM t WHERE d"),
        ("SELECT a, b, c FROM t ORDER BY 3, 1", ("c", "ORDER BY"), "SELECT c ORDER BY 1"),
        ("SELECT a, b FROM t UNION ALL SELECT c, d FROM u", ("UNION", "b", "d"), "SELECT b UNION SELECT d"),
        ("SELECT a FROM t UNION ALL SELECT c FROM u", ("c",), "SELECT c"),
        ("SELECT d, avg(x) FROM t GROUP BY 1", ("avg(x)",), "SELECT avg(x)"),
        ("SELECT x FROM (SELECT a, b FROM t) AS q (x, y)", ("(SELECT", "b", "y"), "SELECT 1 FROM (SELECT b) AS q (y)"),
        ("SELECT CASE WHEN a THEN b ELSE f(c) END", ("f(c)",), "SELECT f(c)"),
        ("SELECT (SELECT max(a) FROM t WHERE b = 1)", ("max(a)",), "SELECT max(a)"),
        ("SELECT count(*) FILTER (WHERE a) OVER (PARTITION BY b) FROM t", ("(*)", "OVER"), "SELECT count(*) OVER ()"),
        ("SELECT DISTINCT a::numeric(10, 2) FROM t", ("numeric", "a"), "SELECT CAST(a AS numeric)"),
    ],
)
def test_unnecessary_parts_of_queries_are_dropped(sql: str, needed: tuple[str, ...], left: str) -> None:
    assert pruned(sql, lambda tried: all(word in tried for word in needed)) == left


def test_parameters_are_dropped_with_the_parts_that_use_them() -> None:
    step = Step("SELECT a FROM t WHERE b = $1 AND c = $2", Kind.QUERY, params=("8", "9"))
    assert step.with_statement("SELECT a FROM t WHERE c = $2") == replace(
        step, sql="SELECT a FROM t WHERE c = $1", params=("9",)
    )
    left = reduce(
        Case("g", (), (step,)),
        lambda tried: bool(tried.steps) and "c = $" in tried.steps[0].sql and tried.steps[0].params[-1:] == ("9",),
        seconds=60,
        replay="",
        passes=(prune_queries,),
    )
    assert left.case.steps == (replace(step, sql="SELECT 1 WHERE c = $1", params=("9",)),)


@pytest.mark.parametrize(
    ("sql", "needed", "left"),
    [
        (
            'CREATE TABLE t (a int NOT NULL, b text COLLATE "C", CHECK (a > 1)) PARTITION BY RANGE (a)',
            ("t", "b"),
            "CREATE TABLE t (b text)",
        ),
        (
            "INSERT INTO t (a, b) SELECT g, (g * 7)::int8 FROM generate_series(1, 9) AS g ON CONFLICT DO NOTHING",
            ("b", "g * 7", "generate_series(1, 9)"),
            "INSERT INTO t (b) SELECT g * 7 FROM generate_series(1, 9)",
        ),
        ("INSERT INTO t (a, b) VALUES (1, 2), (3, 4) RETURNING a", ("b", "4"), "INSERT INTO t (b) VALUES (2), (4)"),
        ("UPDATE t SET a = 1, b = b + 1 FROM u WHERE t.a = u.a RETURNING *", ("b =",), "UPDATE t SET b = 1"),
        ("CREATE UNIQUE INDEX ON t (a, b DESC) WHERE a > 1", ("b",), "CREATE INDEX ON t (b)"),
        ("VACUUM (ANALYZE) t (a), u", ("VACUUM",), "VACUUM t"),
    ],
)
def test_unnecessary_parts_of_commands_are_dropped(sql: str, needed: tuple[str, ...], left: str) -> None:
    assert pruned(sql, lambda tried: all(word in tried for word in needed), kind=Kind.COMMAND) == left


@pytest.mark.parametrize("sql", ["SELECT 1 FROM WHERE", "SELECT 1; SELECT 2", "", "BEGIN ATOMIC"])
def test_unparsable_statements_stay(sql: str) -> None:
    assert pruned(sql, lambda tried: True) == sql


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ("SELECT a, b FROM t ORDER BY a, b LIMIT 2", "SELECT a FROM t ORDER BY a LIMIT 2", True),
        ("SELECT a, b FROM t ORDER BY a, b LIMIT 2", "SELECT a, b FROM t ORDER BY a LIMIT 2", False),
        ("SELECT a, b FROM t ORDER BY a, b LIMIT 2", "SELECT a FROM (SELECT b FROM t) AS q", True),
        (
            "SELECT count(*) FROM (SELECT a FROM t LIMIT 2) AS q",
            "SELECT count(*) FROM (SELECT FROM t LIMIT 2) AS q",
            True,
        ),
    ],
)
def test_limits_stay_under_a_total_order(before: str, after: str, *, kept: bool) -> None:
    assert (restated(Step(before), after) is not None) == kept


def test_rows_are_compared_in_order_if_the_query_determines_it() -> None:
    step = Step("SELECT a, b FROM t ORDER BY a, b", Kind.QUERY, ordered=True)
    for sql, ordered in (("SELECT b FROM t ORDER BY b", True), ("SELECT a, b FROM t ORDER BY a", False)):
        assert restated(step, sql) == Step(sql, Kind.QUERY, ordered=ordered)


@pytest.mark.parametrize(
    "sql",
    [
        "CALL f(1 + 2)",
        "SELECT a, b FROM t UNION SELECT * FROM u",
        "SELECT a, b FROM t UNION SELECT c FROM u",
        "VALUES (1, 2), (3)",
        "INSERT INTO t DEFAULT VALUES",
        "INSERT INTO t (a, b) SELECT 1 ON CONFLICT (a) DO UPDATE SET b = excluded.b WHERE t.a > 1",
        "MERGE INTO t USING u ON a = c WHEN MATCHED THEN UPDATE SET b = 1 WHEN NOT MATCHED THEN INSERT VALUES (1, 2)",
        "EXPLAIN (ANALYZE, COSTS OFF) SELECT generate_series()",
        "CREATE FUNCTION f(a int) RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT a + 1; END",
        "CREATE STATISTICS ON a, b FROM (SELECT 1) AS t",
        "COPY (SELECT a FROM t) TO STDOUT",
        "PREPARE p AS SELECT $1 || 'x'",
        "DECLARE c CURSOR FOR SELECT a FROM t FOR UPDATE OF t SKIP LOCKED",
        "CREATE TRIGGER g BEFORE INSERT OR UPDATE OF a ON t FOR EACH ROW WHEN (new.a > 1) EXECUTE FUNCTION f('x')",
        "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 1), ALTER b TYPE int8 USING b::int8",
        "ALTER TABLE t ATTACH PARTITION u FOR VALUES IN (1, NULL)",
        "CREATE TABLE t (a int GENERATED ALWAYS AS IDENTITY, b int REFERENCES u, EXCLUDE USING gist (a WITH =))",
        "SELECT * FROM XMLTABLE('/r' PASSING x COLUMNS a int PATH '@a') AS q, ROWS FROM (f(1), g(2)) WITH ORDINALITY",
        "SELECT rank() OVER w, a[1:2], (r).*, ARRAY[1, 2], x::date AT TIME ZONE 'UTC' FROM t TABLESAMPLE system (1) "
        "WINDOW w AS (PARTITION BY a ORDER BY b ROWS 1 PRECEDING) ORDER BY 1 FETCH FIRST 2 ROWS WITH TIES",
    ],
)
def test_reduction_handles_each_kind_of_statement(sql: str) -> None:
    start = Case("g", (Step("CREATE TABLE t (a int, b int)"),), (Step(sql, Kind.QUERY), Step(sql)))
    assert tree_of(sql) is not None
    assert reduce(start, lambda case: case == start, seconds=60, replay="").case == start


def test_series_are_shortened() -> None:
    sql = "INSERT INTO t SELECT g FROM generate_series(10, 5000) AS g"

    def is_interesting(tried: str) -> bool:
        return int(tried.partition(", ")[2].partition(")")[0]) >= 42

    assert "generate_series(42, 42)" in pruned(sql, is_interesting, shorten_series)


def test_series_keep_their_start_if_the_last_row_needs_others() -> None:
    sql = "INSERT INTO t SELECT g FROM generate_series(10, 5000) AS g"
    assert "generate_series(10, 42)" in pruned(
        sql, lambda tried: "(10," in tried and int(tried.partition(", ")[2].partition(")")[0]) >= 42, shorten_series
    )


def test_literals_get_shorter() -> None:
    sql = "SELECT * FROM t WHERE a = 4711 AND b = 'abcdef' AND c = 815 AND d = 'xyz'"
    left = pruned(sql, lambda tried: "4711" not in tried or "abc" in tried, shorten_literals)
    assert left == "SELECT * FROM t WHERE a = 0 AND b = '' AND c = 0 AND d = ''"
    left = pruned(sql, lambda tried: "abc" in tried and "1" in tried, shorten_literals)
    assert left == "SELECT * FROM t WHERE a = 0 AND b = 'abc' AND c = 1 AND d = ''"


def any_test(sql: str) -> bool:
    raise NotImplementedError


@settings(max_examples=30)
@given(st.functions(like=any_test, returns=st.booleans(), pure=True))
def test_only_interesting_statements_are_kept(is_interesting: Callable[[str], bool]) -> None:
    sql = "SELECT a, count(*) FROM t JOIN u ON t.a = u.a WHERE b = 'xyz' GROUP BY 1 ORDER BY 2, 1 LIMIT 3"
    if is_interesting(sql):
        assert is_interesting(pruned(sql, is_interesting, prune_queries, shorten_literals))
