"""Modes of parallel query."""

from typing import Final

from oracles.model.mode import Mode

PARALLEL: Final = Mode(
    "parallel",
    (
        ("max_parallel_workers_per_gather", "3"),
        ("parallel_setup_cost", "5"),  # high enough to avoid Gather on the inner side of nested loops
        ("parallel_tuple_cost", "0"),
        ("min_parallel_table_scan_size", "0"),
        ("min_parallel_index_scan_size", "0"),
        ("debug_parallel_query", "off"),
    ),
)
ONE: Final = Mode("one_worker", (("max_parallel_workers_per_gather", "1"),))
TWO: Final = Mode("two_workers", (("max_parallel_workers_per_gather", "2"),))
FOUR: Final = Mode("four_workers", (("max_parallel_workers_per_gather", "4"),))
