"""The execution modes. A generator names the suitable ones, and an engine selects from them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from fuzz.errors import CaseError
from oracles.model.feature import Feature, forced_settings
from oracles.model.mode import Mode, Protocol

FORCED: Final = Mode("features_forced", optional=True)  # its settings are those of the arms' features

MODES: dict[str, Mode] = {
    mode.name: mode
    for mode in (
        Mode("plain"),
        Mode("extended", protocol=Protocol.EXTENDED),
        Mode("prepared_generic", (("plan_cache_mode", "force_generic_plan"),), Protocol.PREPARED),
        Mode("prepared_custom", (("plan_cache_mode", "force_custom_plan"),), Protocol.PREPARED),
        Mode("cursor", protocol=Protocol.CURSOR),
        Mode("closed_early", protocol=Protocol.CLOSED_EARLY, changes_results=True),
        Mode(
            "hash_spilling",
            (
                ("work_mem", "64kB"),
                ("hash_mem_multiplier", "1"),
                ("enable_mergejoin", "off"),
                ("enable_nestloop", "off"),
                ("max_parallel_workers_per_gather", "0"),
            ),
        ),
        Mode("hash_only", (("enable_mergejoin", "off"), ("enable_nestloop", "off"))),
        Mode("merge_only", (("enable_hashjoin", "off"), ("enable_nestloop", "off"))),
        Mode("loop_only", (("enable_hashjoin", "off"), ("enable_mergejoin", "off"))),
        Mode("no_loops", (("enable_nestloop", "off"),)),
        Mode("indexes", (("enable_seqscan", "off"),)),
        Mode(
            "parallel",
            (
                ("max_parallel_workers_per_gather", "3"),
                ("parallel_setup_cost", "5"),  # high enough to avoid Gather on the inner side of nested loops
                ("parallel_tuple_cost", "0"),
                ("min_parallel_table_scan_size", "0"),
                ("min_parallel_index_scan_size", "0"),
                ("debug_parallel_query", "off"),
            ),
        ),
        Mode("one_worker", (("max_parallel_workers_per_gather", "1"),)),
        Mode("two_workers", (("max_parallel_workers_per_gather", "2"),)),
        Mode("four_workers", (("max_parallel_workers_per_gather", "4"),)),
        Mode(
            "partitionwise",
            (("enable_partitionwise_join", "on"), ("enable_partitionwise_aggregate", "on")),
        ),
        Mode("genetic", (("geqo_threshold", "3"),)),
        Mode("no_pruning", (("enable_partition_pruning", "off"),)),
        FORCED,
        Mode("small_memory", (("work_mem", "64kB"), ("temp_buffers", "800kB"))),
    )
}


def composed(entry: str, features: Sequence[Feature] = ()) -> tuple[Mode, ...]:
    """Return the modes whose names, joined by +, an entry has, for arms with these features. Raises CaseError."""
    return tuple(_mode(name, features) for name in entry.split("+"))


def _mode(name: str, features: Sequence[Feature]) -> Mode:
    if name not in MODES:
        raise CaseError(f"no mode is called {name!r}; give one of {', '.join(MODES)}")
    return replace(FORCED, settings=forced_settings(features)) if name == FORCED.name else MODES[name]
