"""How expressions are written otherwise; where they must stay as they are."""

import pytest
from pglast import parse_sql

from oracles.eet import transformed


def test_all_conditions_change_and_nothing_else() -> None:
    sql = "SELECT x FROM a JOIN b ON a.k = b.k WHERE x > 1 AND EXISTS (SELECT 1 FROM c WHERE c.k = a.k) ORDER BY x"
    changed = transformed(sql)
    assert parse_sql(changed)
    assert changed.startswith("SELECT x FROM a INNER JOIN b ON ")
    assert changed.endswith(" ORDER BY x")  # a value that ORDER BY names stays
    assert all(condition in changed for condition in ("a.k = b.k", "x > 1", "c.k = a.k"))
    assert len(changed) > len(sql) + 3 * len("NOT NOT")


def test_conditions_that_joins_are_made_by_stay_conditions() -> None:
    for number in range(20):
        changed = transformed(f"SELECT {number} AS n FROM a LEFT JOIN b ON a.k = b.k")
        assert "ON CASE" not in changed
        assert " OR (a.k" not in changed


def test_a_full_join_keeps_its_condition() -> None:
    sql = "SELECT count(*) FROM a FULL JOIN b ON a.k = b.k"
    assert "ON a.k = b.k" in transformed(sql)


def test_a_subquery_is_not_asked_twice() -> None:
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
        "SELECT unnest(x) FROM a",  # CASE takes no set
        "SELECT x, count(*) FROM a GROUP BY x",  # what it is grouped by has to be written alike
        "SELECT DISTINCT x FROM a ORDER BY x",
        "SELECT x FROM a UNION SELECT y FROM b",
        "UPDATE a SET x = 1 WHERE x > 1",
    ],
)
def test_what_may_mean_something_else_is_left_alone(sql: str) -> None:
    assert transformed(sql) == ""
