"""Modes that restrict the planner: its methods of joining and scanning, and its search."""

from typing import Final

from oracles.model.mode import Mode

HASH_ONLY: Final = Mode("hash_only", (("enable_mergejoin", "off"), ("enable_nestloop", "off")))
MERGE_ONLY: Final = Mode("merge_only", (("enable_hashjoin", "off"), ("enable_nestloop", "off")))
LOOP_ONLY: Final = Mode("loop_only", (("enable_hashjoin", "off"), ("enable_mergejoin", "off")))
NO_LOOPS: Final = Mode("no_loops", (("enable_nestloop", "off"),))
INDEXES: Final = Mode("indexes", (("enable_seqscan", "off"),))
PARTITIONWISE: Final = Mode(
    "partitionwise", (("enable_partitionwise_join", "on"), ("enable_partitionwise_aggregate", "on"))
)
NO_PRUNING: Final = Mode("no_pruning", (("enable_partition_pruning", "off"),))
GENETIC: Final = Mode("genetic", (("geqo_threshold", "3"),))
