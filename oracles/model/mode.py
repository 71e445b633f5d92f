"""Mode: the settings and the protocol under which a case runs."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Protocol(StrEnum):
    """Ways to send a query to the server."""

    SIMPLE = "simple"
    EXTENDED = "extended"
    PREPARED = "prepared"
    CURSOR = "cursor"
    CLOSED_EARLY = "closed_early"
    BINARY = "binary"  # results in binary format, which the server then reads as parameters
    TEXT = "text"  # the same in text format


@dataclass(frozen=True, slots=True)
class Mode:
    """A named set of execution options.

    Settings are start-up options of the session, so none has to be reset. A case runs under a tuple of modes. Of
    several
    values of a setting the last one wins, and so does the last protocol.
    """

    name: str
    settings: tuple[tuple[str, str], ...] = ()
    protocol: Protocol | None = None
    changes_results: bool = False  # it has other legal rows than the plain query (a cursor closed early)
    optional: bool = False  # an arm without these settings (they are a patch's own) ignores them


# Modes of cases that oracles use, too
HASH_ONLY: Final = Mode("hash_only", (("enable_mergejoin", "off"), ("enable_nestloop", "off")))
CLOSED_EARLY: Final = Mode("closed_early", protocol=Protocol.CLOSED_EARLY, changes_results=True)
BINARY: Final = Mode("binary", protocol=Protocol.BINARY)
TEXT: Final = Mode("text", protocol=Protocol.TEXT)


def settings_of(modes: Iterable[Mode]) -> dict[str, str]:
    """Return all settings of the modes; later modes override earlier ones."""
    return {key: value for mode in modes for key, value in mode.settings}


def protocol_of(modes: Iterable[Mode]) -> Protocol:
    """Return the protocol of the last mode that has one, or the simple protocol."""
    named = [mode.protocol for mode in modes if mode.protocol is not None]
    return named[-1] if named else Protocol.SIMPLE
