"""Which queries return the same rows each time, as far as their text tells."""

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
        "SELECT 'known'::text, '2024-01-01'::date, now FROM t AS now (now)",
    ],
)
def test_what_is_ordered_is_known(sql: str) -> None:
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
        """SELECT x FROM t ORDER BY x::text COLLATE "de-x-icu" LIMIT 3""",
        """SELECT x FROM t ORDER BY x::int COLLATE "C" LIMIT 3""",
        "SELECT array_agg(x), string_agg(y, ',') FROM t",
        "SELECT x FROM t; SELECT x FROM t",
        "not SQL",
    ],
)
def test_what_comes_in_no_order_is_not_known(sql: str) -> None:
    assert not is_known(sql)


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
    ],
)
def test_what_depends_on_the_clock_or_the_server_is_not_known(value: str) -> None:
    assert not is_known(f"SELECT {value} FROM t")
