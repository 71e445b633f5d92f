"""Modes of the protocol, and the one without any option."""

from typing import Final

from oracles.model.mode import Mode, Protocol

PLAIN: Final = Mode("plain")
EXTENDED: Final = Mode("extended", protocol=Protocol.EXTENDED)
GENERIC: Final = Mode("prepared_generic", (("plan_cache_mode", "force_generic_plan"),), Protocol.PREPARED)
CUSTOM: Final = Mode("prepared_custom", (("plan_cache_mode", "force_custom_plan"),), Protocol.PREPARED)
CURSOR: Final = Mode("cursor", protocol=Protocol.CURSOR)
CLOSED_EARLY: Final = Mode("closed_early", protocol=Protocol.CLOSED_EARLY, changes_results=True)
BINARY: Final = Mode("binary", protocol=Protocol.BINARY)
TEXT: Final = Mode("text", protocol=Protocol.TEXT)
