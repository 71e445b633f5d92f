"""Tests of `reach`: counters of plans, on hand-made excerpts of EXPLAIN (ANALYZE, FORMAT JSON)."""

from typing import Any

import pytest

from fuzz.campaign.reach import reach
from tests.features import SHIPPED


def node(kind: str, *children: dict[str, Any], loops: int = 1, role: str = "Outer", **more: Any) -> dict[str, Any]:
    return {
        "Node Type": kind,
        "Parent Relationship": role,
        "Parallel Aware": False,
        "Actual Rows": 1,
        "Actual Loops": loops,
        "Plans": list(children),
        **more,
    }


def hash_join(kind: str, **of_hash: Any) -> dict[str, Any]:
    scan = node("Seq Scan", Alias="a1")
    return node("Hash Join", scan, node("Hash", scan, role="Inner") | of_hash) | {"Join Type": kind}


def member(kind: str, loops: int = 1, alias: str = "a1_1", **more: Any) -> dict[str, Any]:
    return node(kind, node("Seq Scan", Alias=alias), loops=loops, role="Member") | more


def test_a_counter_is_at_most_one_per_statement() -> None:
    plan = node("Append", hash_join("Left") | {"Parent Relationship": "Member"}, hash_join("Left"))
    assert reach({"Plan": plan})["hash_join"] == 1
    assert reach(plan) == reach({"Plan": plan, "Execution Time": 1.0})


@pytest.mark.parametrize(
    ("kind", "counter"),
    [("Inner", "inner"), ("Right Anti", "right_anti"), ("Semi", "semi"), ("Full", "full")],
)
def test_joins_count_by_method_and_type(kind: str, counter: str) -> None:
    assert set(reach(hash_join(kind))) == {"explained", "rows", "hash_join", counter, f"hash_join.{counter}"}


def test_workers_that_share_a_hash_table_are_cut_off_below_a_limit() -> None:
    shared = hash_join("Inner", **{"Parallel Aware": True})
    assert reach(node("Limit", node("Gather", shared) | {"Workers Launched": 2}))["parallel_hash.left_early"] == 1
    assert "parallel_hash.left_early" not in reach(node("Limit", node("Gather", shared) | {"Workers Launched": 0}))
    assert "parallel_hash.left_early" not in reach(node("Gather", node("Limit", shared)) | {"Workers Launched": 2})


@pytest.mark.parametrize(
    ("of_hash", "counters"),
    [
        ({"Hash Batches": 1, "Original Hash Batches": 1}, set()),
        ({"Hash Batches": 4, "Original Hash Batches": 4}, {"hash_join.multi_batch"}),
        ({"Hash Batches": 4, "Original Hash Batches": 1}, {"hash_join.multi_batch", "hash_join.grown_batches"}),
        ({"Hash Buckets": 2048, "Original Hash Buckets": 1024}, {"hash_join.grown_buckets"}),
        ({"Hash Buckets": 1024, "Original Hash Buckets": 2048}, {"hash_join.fewer_buckets"}),
        (
            {"Hash Batches": 2, "Original Hash Batches": 1, "Hash Buckets": 2048, "Original Hash Buckets": 1024},
            {"hash_join.multi_batch"} | {f"hash_join.grown_{what}" for what in ("batches", "buckets", "both")},
        ),
        ({"Parallel Aware": True}, {"parallel_hash"}),
        (
            {"Parallel Aware": True, "Hash Batches": 2},
            {"hash_join.multi_batch", "parallel_hash", "parallel_hash.multi_batch"},
        ),
        ({"Parallel Aware": True, "Actual Loops": 0}, set()),
    ],
)
def test_counters_of_a_hash_table(of_hash: dict[str, Any], counters: set[str]) -> None:
    plain = set(reach(hash_join("Inner")))
    assert set(reach(hash_join("Inner", **of_hash))) == plain | counters


def test_counters_of_live_and_pruned_partitions() -> None:
    both = node("Append", member("Seq Scan"), member("Seq Scan"))
    one = node("Append", member("Seq Scan"), member("Seq Scan", loops=0))
    removed = node("Append", member("Seq Scan")) | {"Subplans Removed": 3}
    never = node("Append", member("Seq Scan", loops=0), member("Seq Scan", loops=0), loops=0)
    assert "append.live>=2" in reach(both)
    assert "runtime_pruning" not in reach(both)
    assert "append.live>=2" not in reach(one)
    assert "runtime_pruning" in reach(one)
    assert "runtime_pruning" in reach(removed)
    assert not {"append.live>=2", "runtime_pruning"} & set(reach(never))


def test_partitionwise_plans_are_distinguished_from_unions() -> None:
    join: dict[str, Any] = {"Join Type": "Inner"}
    assert "partitionwise_join" in reach(node("Append", member("Merge Join", **join), member("Merge Join", **join)))
    assert "partitionwise_join" not in reach(node("Append", member("Merge Join", alias="b1", **join)))
    assert "partitionwise_aggregate" in reach(node("Append", member("Aggregate"), member("Aggregate")))


def test_nodes_that_did_not_run_do_not_count() -> None:
    assert "rows" not in reach(node("Result") | {"Actual Rows": 0})
    assert "nested_loop" not in reach(node("Nested Loop", loops=0) | {"Join Type": "Inner"})
    assert "parallel" not in reach(node("Gather") | {"Workers Launched": 0})
    assert {"parallel", "initplan"} <= set(
        reach(node("Gather", node("Result", role="InitPlan")) | {"Workers Launched": 2})
    )


FILTER = {
    "Built Late": 0,
    "Shared": False,
    "Probes": 100,
    "Probes Deferred": 0,
    "Rows Discarded": 0,
    "Rows Emitted At Once": 90,
    "False Positives": 2,
    "Times Switched Off": 0,
    "Rows Not Probed": 0,
}


@pytest.mark.parametrize(
    ("kind", "fields", "branches"),
    [
        ("Left", {}, {"left.emitted", "left.false_positive"}),
        (
            "Left",
            {"Built Late": 1, "Abandoned": 1},
            {"left.emitted", "left.false_positive", "left.late", "left.abandoned"},
        ),
        ("Left", {"Times Switched Off": 1, "Rows Not Probed": 9}, {"left.emitted", "left.switched_off"}),
        ("Left", {"Probes Deferred": 50}, {"left.emitted", "left.false_positive", "left.deferred"}),
        (
            "Right Anti",
            {"Rows Emitted At Once": 0, "Rows Discarded": 7, "False Positives": 0, "Shared": True},
            {"right_anti.discarded", "right_anti.shared"},
        ),
    ],
)
def test_counters_of_a_bloom_filter(kind: str, fields: dict[str, Any], branches: set[str]) -> None:
    counters = set(reach(hash_join(kind) | {"Bloom Filter": FILTER | fields}, SHIPPED)) - set(reach(hash_join(kind)))
    assert {name.removeprefix("bloom.") for name in counters if name.count(".") == 2} == branches
    assert "bloom" in counters


def test_expected_branches_are_counters() -> None:
    """Each campaign would report a name that no plan can have as unreached."""
    filters = [
        FILTER,
        {"Rows Discarded": 1, "Shared": True, "Built Late": 1, "Times Switched Off": 1, "Rows Not Probed": 1}
        | {"Probes Deferred": 1, "Rows Emitted At Once": 1},
    ]
    kinds = ("Inner", "Left", "Right", "Full", "Semi", "Anti", "Right Anti")
    plans = [hash_join(kind) | {"Bloom Filter": fields} for kind in kinds for fields in filters]
    (bloom,) = SHIPPED
    assert set(bloom.expected) <= {name for plan in plans for name in reach(plan, SHIPPED)}
