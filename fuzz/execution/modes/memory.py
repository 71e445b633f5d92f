"""Modes with little memory, so that executor nodes write temporary files."""

from typing import Final

from oracles.model.mode import Mode

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
