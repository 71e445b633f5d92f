"""Modes that change how queries are planned and sent: methods, memory, workers, the features of patches, protocols."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from oracles.model import mode
from oracles.model.feature import Feature, forced_settings
from oracles.model.mode import Mode, Protocol

PLAIN: Final = Mode("plain")

# Plans
HASH_ONLY: Final = mode.HASH_ONLY
MERGE_ONLY: Final = Mode("merge_only", (("enable_hashjoin", "off"), ("enable_nestloop", "off")))
LOOP_ONLY: Final = Mode("loop_only", (("enable_hashjoin", "off"), ("enable_mergejoin", "off")))
NO_LOOPS: Final = Mode("no_loops", (("enable_nestloop", "off"),))
INDEXES: Final = Mode("indexes", (("enable_seqscan", "off"),))
PARTITIONWISE: Final = Mode(
    "partitionwise", (("enable_partitionwise_join", "on"), ("enable_partitionwise_aggregate", "on"))
)
NO_PRUNING: Final = Mode("no_pruning", (("enable_partition_pruning", "off"),))
GENETIC: Final = Mode("genetic", (("geqo_threshold", "3"),))

# With little memory, executor nodes write temporary files.
HASH_SPILLING: Final = Mode(  # hash joins of several batches on few rows
    "hash_spilling",
    (
        ("work_mem", "64kB"),
        ("hash_mem_multiplier", "1"),
        ("enable_mergejoin", "off"),
        ("enable_nestloop", "off"),
        ("max_parallel_workers_per_gather", "0"),
    ),
)
SMALL: Final = Mode("small_memory", (("work_mem", "64kB"), ("temp_buffers", "800kB")))

# Parallel query
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

# Protocols
EXTENDED: Final = Mode("extended", protocol=Protocol.EXTENDED)
GENERIC: Final = Mode("prepared_generic", (("plan_cache_mode", "force_generic_plan"),), Protocol.PREPARED)
CUSTOM: Final = Mode("prepared_custom", (("plan_cache_mode", "force_custom_plan"),), Protocol.PREPARED)
CURSOR: Final = Mode("cursor", protocol=Protocol.CURSOR)
CLOSED_EARLY: Final = mode.CLOSED_EARLY
BINARY: Final = mode.BINARY
TEXT: Final = mode.TEXT

FORCED: Final = Mode("features_forced", optional=True)  # without settings, because arms have different features


def forcing(features: Sequence[Feature]) -> Mode:
    """Return the mode with the settings that force these features."""
    return replace(FORCED, settings=forced_settings(features))
