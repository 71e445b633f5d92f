"""Tests of the oracle `tlp`: partitions of queries by the three values of a condition."""

import pytest

from oracles.tlp import Shape, partitioned

DIGEST = "SELECT count(*), sum(hashtextextended(CAST(q.* AS text), 0)) FROM"
LEFT = "SELECT a.x, b.y FROM a LEFT JOIN b ON a.k = b.k"


def shape(sql: str) -> Shape | None:
    made = partitioned(sql)
    return None if made is None else made.shape


def test_rows_are_partitioned_by_where() -> None:
    made = partitioned("SELECT x FROM a WHERE x > 1 ORDER BY x LIMIT 3")
    assert made is not None
    assert made.whole == f"{DIGEST} (SELECT x FROM a) AS q"
    assert made.parts == (
        f"{DIGEST} (SELECT x FROM a WHERE (x > 1) UNION ALL SELECT x FROM a WHERE (NOT (x > 1)) UNION ALL "
        "SELECT x FROM a WHERE ((x > 1) IS NULL)) AS q"
    )


def test_the_digest_is_of_whole_rows_also_if_a_column_has_its_alias() -> None:
    made = partitioned("SELECT x AS q, y FROM a WHERE x > 1")
    assert made is not None
    assert made.whole == f"{DIGEST} (SELECT x AS q, y FROM a) AS q"
    assert "CAST(q.* AS text)" in made.whole


def test_other_conditions_stay_on_both_sides() -> None:
    made = partitioned("SELECT x FROM a WHERE x > 1 AND y IN (SELECT z FROM b)")
    assert made is not None
    kept = [each for each in ("x > 1", "y IN (SELECT z FROM b)") if each in made.whole]
    assert len(kept) == 1
    assert made.parts.count(kept[0]) == 3


def test_groups_are_partitioned_by_having() -> None:
    made = partitioned("SELECT x, count(*) FROM a WHERE y > 0 GROUP BY 1 HAVING count(*) > 1")
    assert made is not None
    assert (made.shape, made.whole.count("HAVING"), made.parts.count("y > 0")) == (Shape.HAVING, 0, 3)
    assert "HAVING (NOT (count(*) > 1))" in made.parts


def test_all_rows_as_one_group_are_partitioned_by_having() -> None:
    made = partitioned("SELECT count(*) FROM a WHERE y > 0 HAVING count(*) > 1")
    assert made is not None
    assert (made.shape, made.whole) == (Shape.HAVING, f"{DIGEST} (SELECT count(*) FROM a WHERE y > 0 HAVING TRUE) AS q")
    assert made.parts.count("WHERE y > 0 HAVING (") == 3


def test_a_query_with_having_alone_stays_one_group() -> None:
    made = partitioned("SELECT 1 FROM a WHERE y > 0 HAVING max(x) > 1")
    assert made is not None
    assert made.whole == f"{DIGEST} (SELECT 1 FROM a WHERE y > 0 HAVING TRUE) AS q"


def test_aggregates_are_computed_from_those_of_the_parts() -> None:
    made = partitioned("SELECT count(*), sum(x), min(x), bool_or(y) FILTER (WHERE x > 0) FROM a WHERE x > 1")
    assert made is not None
    assert made.whole == "SELECT count(*), sum(x), min(x), bool_or(y) FILTER (WHERE x > 0) FROM a"
    assert made.parts.startswith("SELECT sum(c1), sum(c2), min(c3), bool_or(c4) FROM (SELECT count(*) AS c1")


def test_bit_aggregates_are_partitioned_and_variances_are_not() -> None:
    made = partitioned("SELECT bit_and(x), bit_or(x), bit_xor(x) FROM a WHERE x > 1")
    assert made is not None
    assert made.parts.startswith("SELECT bit_and(c1), bit_or(c2), bit_xor(c3) FROM (")
    assert partitioned("SELECT var_pop(x) FROM a WHERE x > 1") is None


def test_distinct_rows_of_parts_may_be_equal() -> None:
    made = partitioned("SELECT DISTINCT x FROM a WHERE y > 1")
    assert made is not None
    assert made.parts.startswith(f"{DIGEST} (SELECT DISTINCT * FROM (SELECT DISTINCT x FROM a WHERE (y > 1) UNION ALL")


def test_a_query_without_a_condition_gets_one() -> None:
    outer, inner = partitioned(LEFT), partitioned("SELECT x FROM a")
    assert outer is not None
    assert "WHERE (NOT (a.k = b.k))" in outer.parts
    assert inner is not None
    assert "WHERE (CAST(x AS text) < '5')" in inner.parts


def test_the_condition_of_a_list_of_tables_stays() -> None:
    made = partitioned("SELECT a.x FROM a, b WHERE a.k = b.k")
    assert made is not None
    assert "WHERE a.k = b.k" in made.whole


def test_an_aggregated_subquery_is_partitioned() -> None:
    made = partitioned(f"WITH a AS (TABLE c) SELECT count(*), sum(hashtextextended(q::text, 0)) FROM ({LEFT}) AS q")
    assert made is not None
    assert made.whole.startswith("WITH a AS (SELECT * FROM c) SELECT count(*)")
    assert made.parts.count("WITH") == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT",
        "SELECT 1",
        "not SQL",
        "SELECT x FROM a; SELECT x FROM a",
        "SELECT * FROM a",  # no column for a condition
        "SELECT avg(x) FROM a WHERE x > 1",  # an average of averages is another value
        "SELECT stddev(x) FROM a WHERE x > 1",
        "SELECT count(DISTINCT x) FROM a WHERE y > 1",  # parts may have equal values
        "SELECT sum(x) + 1 FROM a WHERE x > 1",
        "SELECT x, rank() OVER (ORDER BY x) FROM a WHERE x > 1",  # ranks depend on the partition
        "SELECT DISTINCT ON (x) x, y FROM a WHERE x > 1",
        "SELECT DISTINCT x, count(*) FROM a GROUP BY x",  # groups of two parts may be equal
        "SELECT x FROM a WHERE x > 1 FOR UPDATE",
        "SELECT x FROM a WHERE x > random()",
        "SELECT x FROM a WHERE now() > y",
        "SELECT json_arrayagg(x) FROM a WHERE x > 1",
        "SELECT name FROM pg_settings WHERE setting > 'on'",
        "SELECT table_name FROM information_schema.tables WHERE table_name > 'a'",
        "SELECT x INTO b FROM a WHERE x > 1",
        "SELECT unnest(x) FROM a",  # not allowed in WHERE
        "SELECT x FROM (SELECT x FROM a LIMIT 3) AS q WHERE x > 1",
        "SELECT x FROM (SELECT x, y FROM a ORDER BY x LIMIT 3) AS q WHERE x > 1",  # x is no total order
        "SELECT x FROM a UNION SELECT x FROM b",
        "WITH c AS (DELETE FROM d RETURNING x) SELECT x FROM c WHERE x > 1",
        "VALUES (1), (2)",
    ],
)
def test_other_queries_are_not_rewritten(sql: str) -> None:
    assert partitioned(sql) is None


def test_limit_under_a_total_order_is_partitioned() -> None:
    for order in ("1, 2", "2 DESC, x", "y, x"):
        assert shape(f"SELECT x FROM (SELECT x, y FROM a ORDER BY {order} LIMIT 3) AS q WHERE x > 1") is Shape.WHERE
