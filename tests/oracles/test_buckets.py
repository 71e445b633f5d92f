"""Tests of the oracle `buckets` on hand-made plans: inconsistent and legal figures of hash tables."""

from typing import Any

import pytest

from oracles.buckets import Buckets
from oracles.explain.nodes import EXPLAINED
from oracles.model.oracle import Agree, Verdict
from tests.oracles.explained import Node, explained_case, hash_join, node
from tests.oracles.observed import case, finding, judged, query

CASE = case(query(), samples=(EXPLAINED,))
SETTINGS = {"work_mem": "1MB", "hash_mem_multiplier": "1"}


def table(tuples: float, *, expected: float | None = None, alone: bool = True, loops: int = 1, **fields: Any) -> Node:
    """Return a hash join in a single batch, with this number of tuples in its hash table."""
    figures = {
        "Hash Batches": 1,
        "Original Hash Batches": 1,
        "Hash Buckets": 1024,
        "Original Hash Buckets": 1024,
        "Peak Memory Usage": 200,
        "Plan Rows": tuples if expected is None else expected,
    } | {name.replace("_", " "): value for name, value in fields.items()}
    return hash_join("Inner", 1, 10, tuples, table=figures, shared=not alone, loops=loops)


def shared(tuples: float, **fields: Any) -> Node:
    """Return a join with a Parallel Hash, in which each of three participants read this number of rows."""
    return table(tuples, alone=False, loops=3, **fields)


def gathered(join: Node, *, workers: int = 2, loops: int = 1) -> Node:
    return node("Gather", 1, join, loops=loops, Workers_Planned=workers)


def duel(plan: Node, settings: dict[str, str] = SETTINGS) -> tuple[Verdict, ...]:
    """Judge an arm with this plan; the reference has none."""
    return judged(Buckets(), CASE, lambda run: explained_case(plan if run.arm == "patched" else None, settings))


@pytest.mark.parametrize(
    ("plan", "identity"),
    [
        (table(1025, Hash_Buckets=1025), "buckets are a power of two"),
        (table(9, Original_Hash_Buckets=2048, Hash_Buckets=1024), "no more buckets at first than expected"),
        (table(1024, expected=1024, Original_Hash_Buckets=2048), "no more buckets at first than expected"),
        (table(1024, Hash_Buckets=2048), "no more buckets than tuples deserve"),
        (table(1024, Hash_Buckets=4096, Hash_Batches=4), "no more buckets than tuples deserve"),
        (table(4098, Hash_Buckets=4096), "no fewer buckets than tuples deserve"),
        (table(4097, expected=9000, Hash_Buckets=2048, Original_Hash_Buckets=16384), "no fewer buckets"),
        (
            gathered(shared(900, Original_Hash_Buckets=2048, Hash_Buckets=2048, expected=400)),
            "no more buckets at first",
        ),
        (gathered(shared(900, Hash_Buckets=8192, expected=100)), "no more buckets than tuples"),
        (gathered(shared(2000, Hash_Buckets=8192, expected=100, Peak_Memory_Usage=60)), "memory holds the buckets"),
        (table(1000, Peak_Memory_Usage=31), "memory holds the tuples"),
        (table(9000, Hash_Buckets=16384, Peak_Memory_Usage=127, Hash_Batches=4), "memory holds the buckets"),
        (table(4096, Hash_Buckets=4096, Peak_Memory_Usage=159), "memory holds tuples and buckets"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_inconsistent_figures_are_a_finding(plan: Node, identity: str) -> None:
    found = finding(duel(plan))
    assert found.origin.startswith(identity)
    assert found.arms == ("master", "patched")


@pytest.mark.parametrize(
    "plan",
    [
        table(1),
        table(0, Peak_Memory_Usage=0),  # buckets not counted
        table(9000, Peak_Memory_Usage=300),  # fixed by the planner for several batches
        table(9, expected=9000, Original_Hash_Buckets=16384, Hash_Buckets=16384, Peak_Memory_Usage=1),
        table(4096, Hash_Buckets=4096, Peak_Memory_Usage=160),
        table(4097, Hash_Buckets=8192, Peak_Memory_Usage=200),
        table(4097, Hash_Buckets=4096, Peak_Memory_Usage=200),  # PostgreSQL checks before it counts the tuple
        table(9, expected=9000, Original_Hash_Buckets=16384, Peak_Memory_Usage=9),  # built with all tuples
        table(9000, expected=9, Hash_Buckets=4096, Peak_Memory_Usage=1000),  # twice as many would not fit
        table(90000, expected=9, Hash_Buckets=32768, Hash_Batches=8, Peak_Memory_Usage=1100),
        table(9000, expected=9, Hash_Buckets=2048, Hash_Batches=8),  # buckets of one batch
        table(300000, expected=300000, Original_Hash_Buckets=65536, Original_Hash_Batches=8, Hash_Batches=8),
        table(1.5, loops=700, Hash_Buckets=2048),  # rescans: the average may be below the maximum
        table(100, loops=3, Hash_Buckets=1024, Original_Hash_Buckets=2048, expected=1100, Peak_Memory_Usage=12),
        gathered(shared(1000, Hash_Buckets=4096, expected=9, Peak_Memory_Usage=0)),  # no participant read its size
        gathered(shared(1000, Hash_Buckets=4096, expected=9, Peak_Memory_Usage=9, Hash_Batches=2)),  # of one batch only
        gathered(shared(1000, Peak_Memory_Usage=8)),  # rows with NULL keys are not in the table
        gathered(shared(2400, Original_Hash_Buckets=8192, Hash_Buckets=8192, Peak_Memory_Usage=400)),
        # the last of two scans had more buckets, and ended before a participant recorded its memory
        gathered(shared(1000, Hash_Buckets=4096, expected=9, Peak_Memory_Usage=9), loops=2),
        hash_join("Inner", 0, 0, 0, loops=0),
        node("Merge Join", 5, node("Hash", 5)),
    ],
)
def test_legal_figures_are_no_finding(plan: Node) -> None:
    assert duel(plan) == (Agree(1),)


def test_a_parallel_hash_may_expect_rows_of_more_workers_than_the_gather_has() -> None:
    # 1200 rows divided by 2.4 for two workers of the inner path; the outer path has one worker
    plan = gathered(shared(100, expected=500, Original_Hash_Buckets=2048, Hash_Buckets=2048), workers=1)
    assert duel(plan) == (Agree(1),)
    one_worker = duel(plan, SETTINGS | {"max_parallel_workers_per_gather": "1"})
    assert finding(one_worker).origin == "no more buckets at first than expected tuples deserve: Parallel Hash"
    too_many = gathered(shared(100, expected=500, Original_Hash_Buckets=4096, Hash_Buckets=4096), workers=1)
    assert finding(duel(too_many, SETTINGS | {"max_parallel_workers_per_gather": "3"}))


def test_the_memory_limit_comes_from_the_settings() -> None:
    crowded = table(9000, expected=9, Hash_Buckets=4096, Peak_Memory_Usage=1000)
    assert duel(crowded) == (Agree(1),)
    more_memory = duel(crowded, SETTINGS | {"hash_mem_multiplier": "2"})
    assert finding(more_memory).origin == "no fewer buckets than tuples deserve: Hash"
