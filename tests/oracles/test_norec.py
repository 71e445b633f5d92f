"""Tests of the oracle `norec`: two counts of the rows that WHERE selects."""

import pytest

from oracles.norec import counts


def test_counts_of_selected_rows_and_of_true_conditions() -> None:
    assert counts("SELECT DISTINCT x FROM a JOIN b ON a.k = b.k WHERE x > 1 GROUP BY x ORDER BY x LIMIT 1") == (
        "SELECT count(*) FROM a INNER JOIN b ON a.k = b.k WHERE x > 1",
        "SELECT COALESCE(sum(CASE WHEN x > 1 THEN 1 ELSE 0 END), 0) FROM a INNER JOIN b ON a.k = b.k",
    )


def test_the_select_list_does_not_matter() -> None:
    for shown in ("random()", "rank() OVER (ORDER BY x)", "array_agg(x)", "avg(x) + 1"):
        assert counts(f"SELECT {shown} FROM a WHERE x > 1")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT x FROM a",
        "SELECT x FROM a, b WHERE a.k = b.k",  # without WHERE, a cross product
        "SELECT x FROM a WHERE x > random()",
        "SELECT x FROM random() AS a (x) WHERE x > 1",
        "SELECT x FROM a TABLESAMPLE system (50) WHERE x > 1",
        "SELECT x FROM a WHERE x > 1 UNION SELECT x FROM b",
        "DELETE FROM a WHERE x > 1",
    ],
)
def test_other_queries_are_not_rewritten(sql: str) -> None:
    assert counts(sql) is None
