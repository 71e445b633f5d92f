"""Settings that the user gives to arms (`--set`): lines of their servers' configuration.

So a patch's parameter can be compared with itself: one build is two arms, one of which has the parameter off.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fuzz.errors import SourceError
from fuzz.servers.build import Build
from fuzz.servers.cluster import PROBE
from fuzz.servers.template import refusal

Settings = tuple[tuple[str, str], ...]  # (name, value), sorted by name

_TEXT: Final = re.compile(r"(?:(?P<arm>\w+):)?(?P<name>[A-Za-z_][\w$]*(?:\.[A-Za-z_][\w$]*)*)=(?P<value>.*)", re.DOTALL)
_LIBRARIES: Final = "shared_preload_libraries"
# Each session sets the first ones. Of the others, pgduel needs its own values: to find the servers and to read the log.
_OWN: Final = frozenset(
    (
        *("application_name", "client_encoding", "search_path", "statement_timeout"),
        *("config_file", "data_directory", "hba_file", "ident_file", "dynamic_library_path", "restart_after_crash"),
        *("listen_addresses", "port", "unix_socket_directories", "unix_socket_permissions"),
        *("logging_collector", "log_destination", "log_line_prefix", "log_min_messages", "lc_messages"),
    )
)
_UNKNOWN: Final = "unrecognized configuration parameter"


@dataclass(frozen=True, slots=True)
class ArmSetting:
    """One value of `--set`. Without an arm, it is one of all arms."""

    arm: str | None
    name: str
    value: str

    @classmethod
    def parse(cls, text: str) -> "ArmSetting":
        """Return the setting of NAME=VALUE or ARM:NAME=VALUE. Raises SourceError."""
        found = _TEXT.fullmatch(text)
        if found is None:
            raise SourceError(f"cannot read --set {text!r}; give NAME=VALUE or ARM:NAME=VALUE")
        if found["name"].lower() in _OWN:
            raise SourceError(f"--set {text}: pgduel itself sets {found['name']} on all arms; leave it out")
        return cls(found["arm"], found["name"], found["value"])


def settings_by_arm(texts: Iterable[str], arms: Sequence[str]) -> dict[str, Settings]:
    """Return the settings of each arm. One of an arm replaces one of all arms. Raises SourceError."""
    given = [ArmSetting.parse(text) for text in texts]
    for each in given:
        if each.arm is not None and each.arm not in arms:
            raise SourceError(
                f"--set {each.arm}:{each.name}={each.value}: no arm is called {each.arm!r}; "
                f"give one of {', '.join(arms)}"
            )
    given.sort(key=lambda each: each.arm is not None)
    return {arm: _settings([each for each in given if each.arm in (None, arm)]) for arm in arms}


def _settings(given: Iterable[ArmSetting]) -> Settings:
    by_name = {each.name.lower(): (each.name, each.value) for each in given}
    return tuple(pair for _, pair in sorted(by_name.items()))


def texts(settings: Settings) -> list[str]:
    """Return the settings as NAME=VALUE."""
    return [f"{name}={value}" for name, value in settings]


def require_accepted(build: Build, arm: str, settings: Settings) -> None:
    """Check that the arm's server accepts the settings. Raises SourceError with the server's words."""
    for name, value in settings:
        if said := refusal(build, name, value):
            advice = "give it to the arms that have it (--set ARM:NAME=VALUE)" if _UNKNOWN in said else "correct it"
            raise SourceError(f"--set {name}={value}: the server of arm {arm} refuses it: {said}; {advice}")


def known_settings(build: Build, settings: Settings) -> Settings:
    """Return the settings that the build's server accepts. A shorter series may lack a patch's parameter."""
    return tuple((name, value) for name, value in settings if not refusal(build, name, value))


def configuration(settings: Settings, others: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return a cluster's settings: an arm's override the others, but preloaded libraries are added to those there."""
    made = dict(others or {})
    for name, value in settings:
        before = made.get(_LIBRARIES, PROBE) if name.lower() == _LIBRARIES else ""
        made[name] = ",".join(filter(None, (before, value)))
    return made
