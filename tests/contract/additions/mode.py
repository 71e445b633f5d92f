"""A mode in which joins use nested loops and indexes."""

from typing import Final

from oracles.model.mode import Mode

ADDED: Final = Mode("added_mode", (("enable_hashjoin", "off"), ("enable_mergejoin", "off"), ("enable_seqscan", "off")))
