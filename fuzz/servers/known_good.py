"""Known-good versions: the last minor release on which series and corpus were seen to work.

They are in patches/pgNN/known-good, with the SHA-256 of the release's archive. They are needed because the base
changes: Debian's newest minor release of a major version changes without notice.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from fuzz import workdir

FILE = "known-good"
_LEVELS = 3  # the directories of a patch, of its kind of series, of its major version


def major_of(version: str) -> int:
    """Return the major version: 17 for 17.11 and for 17devel."""
    found = re.match(r"\d+", version)
    return int(found[0]) if found else 0


def known_good(major: int) -> str:
    """Return the version recorded for a major version, or an empty string."""
    return _version(_recorded(major))


def known_archive(major: int) -> tuple[str, str] | None:
    """Return the version recorded for a major version, and its archive's SHA-256, or None."""
    version, _, digest = _read(_recorded(major)).partition(" ")
    return (version, digest.strip()) if digest else None


def made_for(patches: Iterable[Path]) -> str:
    """Return the version recorded beside or above the first patch that has one, or an empty string."""
    places = (place / FILE for patch in patches for place in list(patch.absolute().parents)[:_LEVELS])
    return next(filter(None, map(_version, places)), "")


def is_newer(version: str, known: str) -> bool:
    """Return whether a version is a later minor release of the same major version."""
    (major, minor), (known_major, known_minor) = _split(version), _split(known)
    return major == known_major and minor is not None and known_minor is not None and minor > known_minor


def newer_than_known(version: str) -> str:
    """Return the known-good version that a version is newer than, or an empty string."""
    known = known_good(major_of(version))
    return known if is_newer(version, known) else ""


def _split(version: str) -> tuple[str, int | None]:
    """Return major and minor version. 19devel and 19beta1 have no minor version."""
    major, _, minor = version.partition(".")
    return major, int(minor) if minor.isdecimal() else None


def _recorded(major: int) -> Path:
    return workdir.PROJECT / "patches" / f"pg{major}" / FILE


def _version(path: Path) -> str:
    return _read(path).partition(" ")[0]


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
