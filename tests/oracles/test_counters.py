"""Tests of the oracle `counters` on hand-made plans: inconsistent and legal figures of EXPLAIN."""

from dataclasses import replace
from typing import Any

import pytest

from oracles.counters import Counters
from oracles.explain.nodes import EXPLAINED
from oracles.model.oracle import Agree, Inconclusive, Verdict
from tests.features import SHIPPED
from tests.oracles.explained import Node, explained_case, hash_join, node
from tests.oracles.observed import LOST, agreed, case, finding, judged, query, seen

CASE = case(query(), samples=(EXPLAINED,))
FILTER = {
    "Bits": 8192,
    "Probes": 100,
    "Rows Discarded": 0,
    "Rows Emitted At Once": 0,
    "Rows Passed": 100,
    "False Positives": 3,
    "False Positive Rate": 0.03,
    "Rows Not Probed": 20,
}


def duel(plan: Node | None, other: Node | None = None) -> tuple[Verdict, ...]:
    """Judge an arm with this plan; the reference has another, or none."""
    return judged(Counters().of(SHIPPED), CASE, lambda run: explained_case(plan if run.arm == "patched" else other))


def filtered(kind: str, rows: float, outer: float, **fields: Any) -> Node:
    figures = FILTER | {name.replace("_", " "): value for name, value in fields.items()}
    return hash_join(kind, rows, outer, 50, Bloom_Filter=figures)


@pytest.mark.parametrize(
    ("join", "identity"),
    [
        (hash_join("Inner", 51, 10, 5), "inner join returns no more than all pairs"),
        (hash_join("Semi", 11, 10, 50), "no row is returned twice"),
        (hash_join("Anti", 11, 10, 50), "no row is returned twice"),
        (hash_join("Right Anti", 6, 10, 5), "no inner row is returned twice"),
        (hash_join("Left", 9, 10, 5), "every outer row is kept"),
        (hash_join("Full", 9, 10, 5), "every outer row is kept"),
        (hash_join("Full", 10, 3, 11), "every inner row is kept"),
        (hash_join("Right", 4, 10, 5), "every inner row is kept"),
        (hash_join("Inner", 5, 10, 5, read=4), "hash table holds no more than was read"),
        (hash_join("Inner", 5, 10, 5, table={"Hash Batches": 6}), "batches are a power of two"),
        (hash_join("Inner", 5, 10, 5, table={"Original Hash Batches": 8}), "batches never become fewer"),
        (filtered("Inner", 90, 120, Rows_Passed=-1, Rows_Discarded=101), "no more rows are excluded than probed"),
        (filtered("Inner", 90, 120, False_Positive_Rate=1.5), "false positive rate is a share"),
        (filtered("Left", 120, 120, Rows_Passed=90, Rows_Discarded=10), "no row is discarded"),
        (filtered("Right", 90, 120, Rows_Passed=90, Rows_Emitted_At_Once=10), "no row is emitted at once"),
        (
            filtered("Anti", 9, 120, Rows_Passed=90, Rows_Emitted_At_Once=10),
            "rows emitted at once are returned or filtered",
        ),
        (filtered("Inner", 90, 119), "no outer row is probed twice"),
        (filtered("Inner", 90, 120, Bits=8191), "filter's bits are a power of two"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_inconsistent_figures_are_a_finding(join: Node, identity: str) -> None:
    found = finding(duel(join))
    assert found.origin.startswith(identity)
    assert found.arms == ("master", "patched")


@pytest.mark.parametrize(
    "plan",
    [
        hash_join("Left", 10, 10, 5),
        hash_join("Left", 30, 10, 5),
        hash_join("Left", 2, 10, 5, Rows_Removed_by_Filter=8),  # WHERE b.x IS NULL
        hash_join("Right", 5, 10, 5),
        hash_join("Full", 12, 10, 5),
        hash_join("Anti", 0, 10, 5),
        hash_join("Semi", 10, 10, 5),
        hash_join("Left", 4, 3, 5, loops=3),  # EXPLAIN prints 10 rows of 3 loops as 3 of each, and 11 as 4
        hash_join("Left", 3, 3, 5, loops=3),
        hash_join("Left", 3.33, 3.34, 5, loops=3),  # PostgreSQL 18 prints decimals
        node("Limit", 1, hash_join("Left", 1, 10, 5)),  # ended by LIMIT
        node("Limit", 1, node("Subquery Scan", 1, hash_join("Right", 1, 10, 5))),
        node("Nested Loop", 1, node("Result", 1), hash_join("Left", 1, 10, 5) | {"Parent Relationship": "Inner"})
        | {"Join Type": "Semi"},
        node("Merge Join", 1, hash_join("Left", 1, 10, 5) | {"Parent Relationship": "Outer"}),
        node("Result", 1, hash_join("Left", 1, 10, 5) | {"Parent Relationship": "InitPlan"}),  # EXISTS
        node("SetOp", 0, hash_join("Right", 1, 9, 5) | {"Parent Relationship": "Inner"}, Strategy="Sorted"),
        hash_join("Inner", 0, 0, 0, loops=0, table={"Hash Batches": 0}),  # never ran
        filtered("Inner", 90, 120),
        filtered("Semi", 90, 120, Rows_Passed=60, Rows_Discarded=40),
        filtered("Left", 120, 120, Rows_Passed=60, Rows_Emitted_At_Once=40),
        filtered("Anti", 40, 120, Rows_Passed=60, Rows_Emitted_At_Once=40),
        filtered("Anti", 30, 120, Rows_Passed=60, Rows_Emitted_At_Once=40) | {"Rows Removed by Filter": 10},
        node("Merge Join", 5, node("Hash", 5)),
        None,
    ],
)
def test_consistent_figures_are_no_finding(plan: Node | None) -> None:
    assert duel(plan) == (agreed(0 if plan is None else 1),)


def test_a_sort_below_a_limit_reads_all_rows() -> None:
    assert finding(duel(node("Limit", 1, node("Sort", 1, hash_join("Left", 9, 10, 5))))).step == 0


@pytest.mark.parametrize(("side", "strategy"), [("Outer", "Sorted"), ("Inner", "Hashed"), ("Outer", "Hashed")])
def test_set_operations_read_all_rows_unless_the_second_input_is_sorted(side: str, strategy: str) -> None:
    plan = node("SetOp", 1, hash_join("Left", 9, 10, 5) | {"Parent Relationship": side}, Strategy=strategy)
    assert finding(duel(plan)).origin == "every outer row is kept: Hash Left Join"


def test_the_outer_side_is_not_read_to_its_end_when_the_hash_table_is_empty() -> None:
    above = hash_join("Inner", 0, 1, 0)
    above["Plans"][0] = hash_join("Left", 1, 10, 5) | {"Parent Relationship": "Outer"}
    assert duel(above) == (Agree(1),)
    above["Plans"][1]["Actual Rows"] = above["Plans"][1]["Plans"][0]["Actual Rows"] = 1
    assert finding(duel(above)).origin == "every outer row is kept: Hash Left Join"


def test_wrong_figures_of_all_arms_are_about_the_base() -> None:
    wrong = hash_join("Left", 9, 10, 5)
    verdicts = duel(wrong, wrong)
    assert finding(verdicts).arms == ("master", "master")
    assert verdicts[1:] == (Agree(1),)


def test_figures_of_the_first_arm_are_judged_too() -> None:
    assert finding(duel(None, hash_join("Left", 9, 10, 5))).arms == ("patched", "master")


def test_a_lost_connection_is_inconclusive() -> None:
    lost = replace(seen(LOST), residue=None)
    assert judged(Counters(), CASE, lambda run: lost) == (Inconclusive("connection lost"),)


def test_other_cases_are_not_explained() -> None:
    runs = [Counters().runs(case(query(f"SELECT {number}")), ("a", "b")) for number in range(1200)]
    share = sum(len(each) == 4 for each in runs) / len(runs)
    assert 0.6 < share * EXPLAINED.share < 1.4
