"""Tests of the oracle `eet`: equivalent transformations of expressions."""

import pytest
from pglast import parse_sql

from oracles.eet import transformed


def test_all_conditions_change_and_nothing_else() -> None:
    sql = "SELECT x FROM a JOIN b ON a.k = b.k WHERE x > 1 AND EXISTS (SELECT 1 FROM c WHERE c.k = a.k) ORDER BY x"
    changed = transformed(sql)
    assert parse_sql(changed)
    assert changed.startswith("SELECT x FROM a INNER JOIN b ON ")
    assert changed.endswith(" ORDER BY x")  # a value that ORDER BY refers to stays
    assert all(condition in changed for condition in ("a.k = b.k", "x > 1", "c.k = a.k"))
    assert len(changed) > len(sql) + 3 * len("NOT NOT")


def test_join_conditions_stay_conditions() -> None:
    for number in range(20):
        changed = transformed(f"SELECT {number} AS n FROM a LEFT JOIN b ON a.k = b.k")
        assert "ON CASE" not in changed
        assert ") OR ((a.k" not in changed


def test_a_full_join_keeps_its_condition() -> None:
    sql = "SELECT count(*) FROM a FULL JOIN b ON a.k = b.k"
    assert "ON a.k = b.k" in transformed(sql)


def test_a_subquery_is_not_duplicated() -> None:
    for number in range(30):
        changed = transformed(f"SELECT x FROM a WHERE a.k IN (SELECT k FROM b WHERE y > {number})")
        assert changed.count("FROM b") == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT",
        "not SQL",
        "SELECT * FROM a",
        "SELECT x FROM a WHERE x > random()",
        "SELECT x FROM a LIMIT 1",
        "SELECT unnest(x) FROM a",  # CASE allows no set-returning function
        "SELECT x, count(*) FROM a GROUP BY x",  # GROUP BY needs the same expression
        "SELECT DISTINCT x FROM a ORDER BY x",
        "SELECT x FROM a UNION SELECT y FROM b",
        "UPDATE a SET x = 1 WHERE x > 1",
    ],
)
def test_other_queries_are_not_rewritten(sql: str) -> None:
    assert transformed(sql) == ""
