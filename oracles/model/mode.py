"""Mode: under which settings, and over which protocol, a case's queries run."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Protocol(StrEnum):
    """How a query reaches the server."""

    SIMPLE = "simple"
    EXTENDED = "extended"
    PREPARED = "prepared"
    CURSOR = "cursor"
    CLOSED_EARLY = "closed_early"


@dataclass(frozen=True, slots=True)
class Mode:
    """A named way of execution.

    Settings are given when the session starts, so nothing has to be reset. Modes compose: a case runs under
    a tuple of them, later settings win, and so does the last protocol named.
    """

    name: str
    settings: tuple[tuple[str, str], ...] = ()
    protocol: Protocol | None = None
    changes_results: bool = False  # legal rows differ from the plain query's (a cursor closed early)
    optional: bool = False  # an arm may not know its settings (a patch's own): it runs without those


def settings_of(modes: Iterable[Mode]) -> dict[str, str]:
    """Return all settings of the modes, later ones overriding earlier ones."""
    return {key: value for mode in modes for key, value in mode.settings}


def protocol_of(modes: Iterable[Mode]) -> Protocol:
    """Return the last protocol that the modes name, or the simple one."""
    named = [mode.protocol for mode in modes if mode.protocol is not None]
    return named[-1] if named else Protocol.SIMPLE
