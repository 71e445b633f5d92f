"""Which queries return the same rows each time, as far as their text tells."""

import pytest

from oracles.determinism import is_known


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ARRAY(SELECT x FROM t ORDER BY x)",
        "SELECT ARRAY(SELECT x FROM t ORDER BY 1 LIMIT 3)",
        "SELECT ARRAY(SELECT unnest(ARRAY[2, 1]))",
        "SELECT x FROM t WHERE x IN (SELECT y FROM u)",
        "SELECT x FROM t ORDER BY x LIMIT 3",
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
        "SELECT x FROM t; SELECT x FROM t",
        "not SQL",
    ],
)
def test_what_comes_in_no_order_is_not_known(sql: str) -> None:
    assert not is_known(sql)
