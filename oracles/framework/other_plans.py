"""Modes that change plans but no rows, so that an arm can be compared with itself.

`result` uses them to decide whether a difference is a fault of the suspect. For `dqp`, each difference between them is
a fault.
"""

from typing import Final

from oracles.model.mode import Mode

_SERIAL: Final = ("max_parallel_workers_per_gather", "0")

# Each method of joining, aggregating and scanning is disabled at least once; memory is large, default and small.
# Partition-wise plans are off in one and on in another, so one of them differs from each mode of a case.
OTHER_PLANS: Final = (
    Mode(
        "hashed",
        (
            ("enable_mergejoin", "off"),
            ("enable_nestloop", "off"),
            ("enable_sort", "off"),
            ("enable_partitionwise_join", "off"),
            ("enable_partitionwise_aggregate", "off"),
            ("work_mem", "64MB"),
            _SERIAL,
        ),
    ),
    Mode(
        "sorted",
        (
            ("enable_hashjoin", "off"),
            ("enable_nestloop", "off"),
            ("enable_hashagg", "off"),
            ("enable_indexscan", "off"),
            ("enable_bitmapscan", "off"),
            _SERIAL,
        ),
    ),
    Mode(
        "looped",
        (
            ("enable_hashjoin", "off"),
            ("enable_mergejoin", "off"),
            ("enable_memoize", "off"),
            ("enable_partition_pruning", "off"),
            _SERIAL,
        ),
    ),
    Mode(
        "indexed",
        (("enable_seqscan", "off"), ("enable_partitionwise_join", "on"), ("enable_partitionwise_aggregate", "on")),
    ),
    Mode(
        "workers",
        (
            ("max_parallel_workers_per_gather", "2"),
            ("parallel_setup_cost", "0"),
            ("parallel_tuple_cost", "0"),
            ("min_parallel_table_scan_size", "0"),
            ("work_mem", "64kB"),
            ("hash_mem_multiplier", "1"),
        ),
    ),
)
