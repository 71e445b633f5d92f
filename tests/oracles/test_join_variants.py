"""Tests of `rewritten`: variants of queries with joins."""

import pytest

from oracles.metamorphic_joins import Rewriting, rewritten

LEFT = "SELECT a.x, b.y FROM a LEFT JOIN b ON a.k = b.k"


DIGEST = "SELECT count(*), sum(hashtextextended(CAST(q.* AS text), 0))"


def test_a_left_join_becomes_an_inner_join_and_unmatched_rows() -> None:
    assert rewritten(f"{LEFT} WHERE b.y IS NULL OR a.x > 0 ORDER BY 1").parts == (
        "SELECT a.x, b.y FROM a INNER JOIN b ON a.k = b.k WHERE b.y IS NULL OR a.x > 0 UNION ALL "
        "SELECT a.x, b.y FROM a LEFT JOIN b ON FALSE "
        "WHERE NOT EXISTS (SELECT 1 FROM b WHERE a.k = b.k) AND (b.y IS NULL OR a.x > 0)"
    )


def test_a_full_join_becomes_a_left_join_and_unmatched_rows() -> None:
    assert rewritten("SELECT * FROM a FULL JOIN b ON a.k = b.k").parts == (
        "SELECT * FROM a LEFT JOIN b ON a.k = b.k UNION ALL "
        "SELECT * FROM a RIGHT JOIN b ON FALSE WHERE NOT EXISTS (SELECT 1 FROM a WHERE a.k = b.k)"
    )


def test_sides_and_halves_come_from_a_join() -> None:
    right = rewritten("SELECT a.x FROM a RIGHT JOIN b ON a.k = b.k")
    assert (right.whole, right.halves) == (
        f"{DIGEST} FROM (SELECT * FROM b) AS q",
        f"{DIGEST} FROM (SELECT * FROM b WHERE EXISTS (SELECT 1 FROM a WHERE a.k = b.k) UNION ALL "
        "SELECT * FROM b WHERE NOT EXISTS (SELECT 1 FROM a WHERE a.k = b.k)) AS q",
    )


def test_sides_and_halves_come_from_exists() -> None:
    made = rewritten("SELECT x FROM a WHERE x > 0 AND NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)")
    assert (made.parts, made.whole) == ("", "SELECT x FROM a WHERE x > 0")
    assert made.halves.count(" EXISTS") == 2
    assert made.halves.count("x > 0") == 2


def test_an_aggregated_subquery_is_rewritten() -> None:
    made = rewritten(f"WITH a AS (TABLE c) SELECT count(*), sum(hashtextextended(q::text, 0)) FROM ({LEFT}) AS q")
    assert made.parts.startswith("WITH a AS (SELECT * FROM c) SELECT count(*), sum(")
    assert made.parts.endswith(") AS q")


@pytest.mark.parametrize(
    ("above", "kept"),
    [
        ("", "WITH b AS (SELECT * FROM e) SELECT"),
        ("WITH c AS (TABLE d)", "WITH c AS (SELECT * FROM d), b AS (SELECT * FROM e) SELECT"),
    ],
)
def test_the_with_clauses_of_query_and_subquery_both_stay(above: str, kept: str) -> None:
    made = rewritten(f"{above} SELECT count(*) FROM (WITH b AS (TABLE e) {LEFT}) AS q")
    assert made.whole.startswith(kept)
    assert made.halves.startswith(kept)


def test_aggregates_read_a_subquery() -> None:
    made = rewritten("SELECT count(*), sum(b.y + 1), max(a.x) AS m FROM a LEFT JOIN b ON a.k = b.k WHERE a.x > 0")
    assert made.parts == (
        "SELECT count(*), sum(c2), max(c3) AS m FROM ("
        "SELECT b.y + 1 AS c2, a.x AS c3 FROM a INNER JOIN b ON a.k = b.k WHERE a.x > 0 UNION ALL "
        "SELECT b.y + 1 AS c2, a.x AS c3 FROM a LEFT JOIN b ON FALSE "
        "WHERE NOT EXISTS (SELECT 1 FROM b WHERE a.k = b.k) AND a.x > 0) AS q"
    )
    assert made.whole == f"{DIGEST} FROM (SELECT * FROM a) AS q"


def test_rows_without_columns_are_counted() -> None:
    made = rewritten("SELECT count(*) FROM a WHERE EXISTS (SELECT FROM b WHERE b.k = a.k)")
    assert made.whole == "SELECT count(*) FROM (SELECT FROM a) AS q"
    assert made.halves.startswith("SELECT count(*) FROM (SELECT FROM a WHERE EXISTS")


def test_a_side_keeps_with() -> None:
    made = rewritten("WITH c AS (TABLE d) SELECT count(*) FROM c LEFT JOIN b ON c.k = b.k")
    assert made.whole == f"WITH c AS (SELECT * FROM d) {DIGEST} FROM (SELECT * FROM c) AS q"


def test_offset_0_is_rewritten() -> None:
    assert rewritten(LEFT.replace("JOIN b", "JOIN (SELECT * FROM b OFFSET 0) AS b")).parts


def test_both_halves_have_with() -> None:
    assert rewritten(f"WITH a AS (TABLE c) {LEFT}").parts.startswith("WITH a AS (SELECT * FROM c) SELECT a.x, b.y")


def test_variants_keep_all_parameters() -> None:
    made = rewritten(f"{LEFT} WHERE a.x = $1::int")
    assert made.parts
    assert not made.whole


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT",
        "SELECT 1",
        "-- 1",
        "not SQL",
        "SELECT a.x FROM a JOIN b ON a.k = b.k",
        "SELECT a.x FROM a LEFT JOIN b USING (k)",  # k is a column of a in one part, and of b in another
        "SELECT a.x FROM a NATURAL LEFT JOIN b",
        "SELECT a.x FROM a LEFT JOIN b ON true",
        "SELECT j.x FROM (a LEFT JOIN b ON a.k = b.k) AS j",
        "SELECT a.x FROM a LEFT JOIN b ON a.k = b.k, c",
        "SELECT sum(a.x) + 1 FROM a LEFT JOIN b ON a.k = b.k",
        "SELECT sum(a.x) FILTER (WHERE a.x > 0) FROM a LEFT JOIN b ON a.k = b.k",
        "SELECT length(max(a.x)) FROM a LEFT JOIN b ON a.k = b.k",
        "SELECT max(max(a.x)) OVER () FROM a LEFT JOIN b ON a.k = b.k",
        "SELECT FROM a",
        "SELECT a.x, count(*) OVER () FROM a LEFT JOIN b ON a.k = b.k",
        "SELECT a.x FROM a LEFT JOIN b ON a.k = b.k GROUP BY a.x",
        f"{LEFT} LIMIT 3",
        f"{LEFT} OFFSET 3",
        f"{LEFT} FOR UPDATE OF a",
        f"{LEFT} UNION {LEFT}",
        f"{LEFT}; {LEFT}",
        LEFT.replace("SELECT", "SELECT DISTINCT"),
        LEFT.replace("a.x", "random()"),
        LEFT.replace("a.x", "nextval('s')"),
        LEFT.replace("a.x", "now()"),
        LEFT.replace("a.x", "json_arrayagg(a.x)"),
        LEFT.replace("a.x", "CURRENT_TIMESTAMP"),
        LEFT.replace("a.x", "a.ctid"),
        LEFT.replace("a.x", "rank() OVER (ORDER BY a.x)"),
        LEFT.replace("a.x", "generate(a.x)"),
        LEFT.replace("JOIN b", "JOIN (SELECT * FROM b LIMIT 3) AS b"),
        LEFT.replace("JOIN b", "JOIN (SELECT DISTINCT ON (k) * FROM b) AS b"),
        LEFT.replace("JOIN b", "JOIN (SELECT k, array_agg(f) AS y FROM b GROUP BY k) AS b"),
        LEFT.replace("JOIN b", "JOIN b TABLESAMPLE system (50)"),
        f"WITH c AS (DELETE FROM d RETURNING *) {LEFT}",
        f"SELECT array_agg(q) FROM ({LEFT}) AS q",
        'SELECT a.x FROM a LEFT JOIN b ON a.k::"bit" = b.k',  # the printed type differs from the written one
        "SELECT x FROM a WHERE k IN (SELECT k FROM b)",  # may be null
        "SELECT x FROM a WHERE x > 0 OR EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
    ],
)
def test_other_queries_are_not_rewritten(sql: str) -> None:
    assert rewritten(sql) == Rewriting()


def test_a_row_as_an_argument_of_an_aggregate_is_not_moved_into_a_subquery() -> None:
    assert rewritten("SELECT count(b.*) FROM a LEFT JOIN b ON a.k = b.k") == Rewriting()
