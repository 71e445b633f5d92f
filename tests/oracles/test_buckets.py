"""Buckets and memory that EXPLAIN tells of, made by hand: which contradict the tuples, and which only look so."""

from typing import Any

import pytest

from oracles.buckets import Buckets
from oracles.explain.nodes import EXPLAINED
from oracles.model.oracle import Agree, Verdict
from tests.oracles.explained import Node, explained_case, hash_join, node
from tests.oracles.observed import case, finding, judged, query

CASE = case(query(), samples=(EXPLAINED,))
SETTINGS = {"work_mem": "1MB", "hash_mem_multiplier": "1"}


def table(tuples: float, *, expected: float | None = None, alone: bool = True, loops: int = 1, **told: Any) -> Node:
    """Return a hash join in a single batch, whose hash table has so many tuples."""
    figures = {
        "Hash Batches": 1,
        "Original Hash Batches": 1,
        "Hash Buckets": 1024,
        "Original Hash Buckets": 1024,
        "Peak Memory Usage": 200,
        "Plan Rows": tuples if expected is None else expected,
    } | {name.replace("_", " "): value for name, value in told.items()}
    return hash_join("Inner", 1, 10, tuples, table=figures, shared=not alone, loops=loops)


def shared(tuples: float, **told: Any) -> Node:
    """Return a join with a Parallel Hash, of which each of three participants read so many rows."""
    return table(tuples, alone=False, loops=3, **told)


def gathered(join: Node) -> Node:
    return node("Gather", 1, join, Workers_Planned=2)


def duel(plan: Node) -> tuple[Verdict, ...]:
    """Judge an arm with this plan; the one it is held against has none."""
    return judged(Buckets(), CASE, lambda run: explained_case(plan if run.arm == "patched" else None, SETTINGS))


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
        (gathered(shared(900, Hash_Buckets=8192, expected=100)), "no more buckets than tuples"),
        (gathered(shared(2000, Hash_Buckets=8192, expected=100, Peak_Memory_Usage=60)), "memory holds the buckets"),
        (table(1000, Peak_Memory_Usage=31), "memory holds the tuples"),
        (table(9000, Hash_Buckets=16384, Peak_Memory_Usage=127, Hash_Batches=4), "memory holds the buckets"),
        (table(4096, Hash_Buckets=4096, Peak_Memory_Usage=159), "memory holds tuples and buckets"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_contradiction_is_a_finding(plan: Node, identity: str) -> None:
    found = finding(duel(plan))
    assert found.origin.startswith(identity)
    assert found.arms == ("master", "patched")


@pytest.mark.parametrize(
    "plan",
    [
        table(1),
        table(0, Peak_Memory_Usage=0),  # buckets not counted
        table(9000, Peak_Memory_Usage=300),  # chosen beforehand, and left as they were, whatever the tuples
        table(9, expected=9000, Original_Hash_Buckets=16384, Hash_Buckets=16384, Peak_Memory_Usage=1),
        table(4096, Hash_Buckets=4096, Peak_Memory_Usage=160),
        table(4097, Hash_Buckets=8192, Peak_Memory_Usage=200),
        table(4097, Hash_Buckets=4096, Peak_Memory_Usage=200),  # PostgreSQL asks for more before it counts the tuple
        table(9, expected=9000, Original_Hash_Buckets=16384, Peak_Memory_Usage=9),  # made when all tuples were there
        table(9000, expected=9, Hash_Buckets=4096, Peak_Memory_Usage=1000),  # twice as many would not fit
        table(90000, expected=9, Hash_Buckets=32768, Hash_Batches=8, Peak_Memory_Usage=1100),
        table(9000, expected=9, Hash_Buckets=2048, Hash_Batches=8),  # for one of the batches
        table(300000, expected=300000, Original_Hash_Buckets=65536, Original_Hash_Batches=8, Hash_Batches=8),
        table(1.5, loops=700, Hash_Buckets=2048),  # rescanned: most tuples at once
        table(100, loops=3, Hash_Buckets=1024, Original_Hash_Buckets=2048, expected=1100, Peak_Memory_Usage=12),
        gathered(shared(1000, Hash_Buckets=4096, expected=9, Peak_Memory_Usage=0)),  # nobody looked at it
        gathered(shared(1000, Hash_Buckets=4096, expected=9, Peak_Memory_Usage=9, Hash_Batches=2)),  # not at all of it
        gathered(shared(1000, Peak_Memory_Usage=8)),  # rows whose keys are NULL, and so not in the table
        gathered(shared(2400, Original_Hash_Buckets=8192, Hash_Buckets=8192, Peak_Memory_Usage=400)),
        hash_join("Inner", 0, 0, 0, loops=0),
        node("Merge Join", 5, node("Hash", 5)),
    ],
)
def test_what_agrees_with_the_tuples_is_none(plan: Node) -> None:
    assert duel(plan) == (Agree(1),)


def test_what_more_memory_would_have_held_is_told_by_the_settings() -> None:
    crowded = table(9000, expected=9, Hash_Buckets=4096, Peak_Memory_Usage=1000)
    assert duel(crowded) == (Agree(1),)
    more_memory = judged(Buckets(), CASE, lambda run: explained_case(crowded, SETTINGS | {"hash_mem_multiplier": "2"}))
    assert finding(more_memory).origin == "no fewer buckets than tuples deserve: Hash"
