"""Tests of `restrictions` and `is_simple`: pairs of a query and a more restrictive one."""

import pytest

from oracles.cert.oracle import is_simple
from oracles.cert.restrictions import MOST, restrictions


def named(sql: str) -> set[tuple[str, str, str]]:
    return {(pair.name, pair.wide, pair.narrow) for pair in restrictions(sql)}


def test_a_condition_is_added_and_an_alternative_taken_away() -> None:
    assert named("SELECT count(*) FROM a WHERE x <> 1 ORDER BY 1") == {
        ("one more condition", "SELECT 1 FROM a WHERE x <> 1", "SELECT 1 FROM a WHERE (x <> 1) AND x IS NOT NULL"),
        ("without an alternative", "SELECT 1 FROM a WHERE (x <> 1) OR x IS NULL", "SELECT 1 FROM a WHERE x <> 1"),
    }


def test_a_bound_is_between_the_widest_and_the_narrowest() -> None:
    for operator, widest, narrowest in (("<=", "2147483647", "'-2147483648'::int4"),):
        found = named(f"SELECT 1 FROM a WHERE x {operator} 5 AND y LIKE 'b'")
        given = f"SELECT 1 FROM a WHERE x {operator} 5"
        assert ("a tighter bound", f"SELECT 1 FROM a WHERE x {operator} {widest}", given) in found
        assert ("a tighter bound", given, f"SELECT 1 FROM a WHERE x {operator} {narrowest}") in found
    assert (
        "a tighter bound",
        "SELECT 1 FROM a WHERE x > '-2147483648'::int4",
        "SELECT 1 FROM a WHERE x > 5",
    ) in (named("SELECT 1 FROM a WHERE x > 5"))


def test_distinct_rows_are_no_more_than_rows() -> None:
    assert ("DISTINCT", "SELECT x, y FROM a", "SELECT DISTINCT x, y FROM a") in named("SELECT x, y FROM a")


def test_an_inner_join_gets_only_one_more_condition() -> None:
    kinds = {pair.name for pair in restrictions("SELECT a.x FROM a JOIN b ON a.k = b.k WHERE a.x > 5 AND b.y = 1")}
    assert kinds == {"one more condition", "DISTINCT"}


def test_tables_of_a_larger_or_outer_join_have_pairs_of_their_own() -> None:
    joins = "a AS x LEFT JOIN b ON x.k = b.k AND b.y > 5 JOIN c ON c.z = x.z AND x.w <> c.w"
    sql = f"SELECT 1 FROM {joins} WHERE x.v IN (1, 2)"
    froms = {pair.wide.partition(" WHERE ")[0].partition(" FROM ")[2] for pair in restrictions(sql)}
    assert froms == {"a AS x", "b", "c"}
    assert any(pair.narrow == "SELECT 1 FROM b WHERE (b.y > 5) AND b.k IS NOT NULL" for pair in restrictions(sql))
    assert not any("x.w <> c.w" in pair.narrow for pair in restrictions(sql))


@pytest.mark.parametrize(
    "condition",
    [
        "x = y AND x = 5", "NULL OR x = x", "x <> 1 AND y IS NOT NULL", "x <> 1 AND NOT y IS NULL",
        "x = 1 AND x = 1", "x = 1 AND 1 = x", "NOT (x <> 1 OR x <> 2)", "x = 1 AND (y <> 2 AND x IN (1))",
    ],
)  # fmt: skip
def test_conditions_with_other_estimates_within_or_get_no_alternative(condition: str) -> None:
    names = {pair.name for pair in restrictions(f"SELECT 1 FROM a WHERE {condition}")}
    assert names == {"one more condition"}


@pytest.mark.parametrize("condition", ["x = 1 OR x = 2", "x = 1 AND y = 1", "x IN (1, 2)", "NOT x = 1"])
def test_other_conditions_get_an_alternative(condition: str) -> None:
    assert "without an alternative" in {pair.name for pair in restrictions(f"SELECT 1 FROM a WHERE {condition}")}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT x FROM a WHERE x > random()",
        "SELECT x FROM a WHERE x IN (SELECT y FROM b)",
        "SELECT x FROM generate_series(1, 3) AS x WHERE x > 1",
        "SELECT x FROM (SELECT y AS x FROM a) AS q WHERE x > 1",
        "WITH c AS (SELECT 1 AS x) SELECT x FROM c WHERE x > 0",
        "SELECT x FROM a TABLESAMPLE system (50) WHERE x > 1",
        "SELECT ctid FROM a",
        "DELETE FROM a WHERE x > 1",
        "SELECT x FROM a WHERE x > 1 UNION SELECT x FROM b",
    ],
)
def test_other_queries_have_no_pairs(sql: str) -> None:
    assert restrictions(sql) == ()


def test_the_number_of_pairs_is_limited() -> None:
    joins = " ".join(f"LEFT JOIN t{n} ON t{n}.a = t0.a AND t{n}.b > {n}" for n in range(1, 9))
    assert len(restrictions(f"SELECT 1 FROM t0 {joins}")) == MOST


def node(kind: str, *below: dict[str, object], **more: object) -> dict[str, object]:
    return {"Node Type": kind, "Plan Rows": 5, "Plans": list(below), **more}


def test_plans_of_scans_and_one_inner_join_are_simple() -> None:
    scan = node("Seq Scan")
    append = node("Append", scan, scan)
    join = node("Hash Join", scan, node("Hash", scan), **{"Join Type": "Inner"})
    assert is_simple(scan)
    assert is_simple(append)
    assert is_simple(join)
    assert not is_simple(node("Hash Join", scan, node("Hash", append), **{"Join Type": "Inner"}))
    assert is_simple(node("Unique", node("Sort", join)))


def test_other_plans_are_not_simple() -> None:
    scan = node("Seq Scan")
    join = node("Nested Loop", scan, scan, **{"Join Type": "Inner"})
    assert not is_simple(node("Nested Loop", scan, join, **{"Join Type": "Inner"}))
    assert not is_simple(node("Nested Loop", scan, scan, **{"Join Type": "Left"}))
    assert not is_simple(node("Subquery Scan", scan))
    assert not is_simple(node("Append", node("Limit", scan)))
    assert not is_simple(node("Seq Scan", node("Seq Scan", **{"Subplan Name": "SubPlan 1"})))
