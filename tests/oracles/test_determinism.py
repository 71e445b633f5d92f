"""Tests of `is_known`: queries that return the same rows each time, to judge by their text."""

import pytest

from oracles.sql.determinism import is_known


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ARRAY(SELECT x FROM t ORDER BY x)",
        "SELECT ARRAY(SELECT x FROM t ORDER BY 1 LIMIT 3)",
        "SELECT ARRAY(SELECT unnest(ARRAY[2, 1]))",
        "SELECT x FROM t WHERE x IN (SELECT y FROM u)",
        "SELECT x FROM t ORDER BY x LIMIT 3",
        """SELECT x, y + 1 FROM t ORDER BY (y + 1)::text COLLATE "C" DESC, 1 LIMIT 3""",
        "SELECT to_date(x, 'YYYY'), to_char(x, '9'), range_merge(y, z), var_samp(i), sqrt(i) FROM t",
        "SELECT concat(x, y), format('%s', x), key FROM t, jsonb_each(z) AS e",
        "SELECT 'known'::text, '2024-01-01'::date, now FROM t AS now (now)",
        "SELECT x FROM t, LATERAL (SELECT y FROM u TABLESAMPLE bernoulli (100) REPEATABLE (x)) AS s",
    ],
)
def test_deterministic_queries(sql: str) -> None:
    assert is_known(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ARRAY(SELECT x FROM t)",
        "SELECT ARRAY(SELECT x FROM t ORDER BY y)",
        "SELECT x FROM u WHERE y = ARRAY(VALUES (1) UNION SELECT x FROM t)",
        "SELECT JSON_ARRAY(SELECT x FROM t)",
        "SELECT x FROM (VALUES (1, 2), (1, 3) ORDER BY 1 LIMIT 1) AS v (x, y)",
        "SELECT x FROM t ORDER BY y LIMIT 3",
        "SELECT (t.pair).* FROM t ORDER BY 1 LIMIT 3",
        "SELECT x AS y, y AS z FROM t ORDER BY y LIMIT 3",
        "SELECT CASE WHEN x THEN 1 ELSE y END, y AS z FROM t ORDER BY 1, y LIMIT 3",
        """SELECT x FROM t ORDER BY x::text COLLATE "de-x-icu" LIMIT 3""",
        """SELECT x FROM t ORDER BY x::int COLLATE "C" LIMIT 3""",
        "SELECT array_agg(x), string_agg(y, ',') FROM t",
        "SELECT x FROM t; SELECT x FROM t",
        "not SQL",
    ],
)
def test_queries_without_a_total_order(sql: str) -> None:
    assert not is_known(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT x AS z, t.y FROM t ORDER BY x, y LIMIT 3",
        "SELECT x AS y, t.y AS z, max(v) FROM t GROUP BY 1, 2 ORDER BY y, t.y, 3 LIMIT 3",
    ],
)
def test_names_of_output_columns_hide_those_of_input_columns(sql: str) -> None:
    assert is_known(sql)


@pytest.mark.parametrize(
    "value",
    [
        *(
            "random()",
            "now()",
            "age(x)",
            "'now'::timestamp",
            "date 'Today'",
            "'{yesterday,tomorrow 12:00}'::timestamp[]",
        ),
        *("current_setting('work_mem')", "pg_typeof(x)::oid", "hashenum(x)", "record_send(t)", "record_image_eq(t, u)"),
        *("(SELECT x FROM t TABLESAMPLE system (99))", "(SELECT x FROM t TABLESAMPLE system (x))"),
        *("pg_column_size(x)", "corr(x, y)", "percentile_cont(0.5) WITHIN GROUP (ORDER BY x)", "oidlarger(x, y)"),
    ],
)
def test_values_that_depend_on_the_clock_or_the_server(value: str) -> None:
    assert not is_known(f"SELECT {value} FROM t")
