"""The one owner of every path that pgduel writes to, outside the checkout."""

import os
from pathlib import Path

import platformdirs

from fuzz.errors import PgduelError


def _root() -> Path:
    """Return the cache: $PGDUEL_HOME, or one that an unprivileged server may enter even when root made it."""
    if home := os.environ.get("PGDUEL_HOME"):
        return Path(home)
    if os.geteuid() == 0:
        return platformdirs.site_cache_path("pgduel")
    return platformdirs.user_cache_path("pgduel")


def _made(*parts: str) -> Path:
    path = _root().joinpath(*parts)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PgduelError(
            f"cannot write to {path} ({error.strerror}); set PGDUEL_HOME to a directory you may use"
        ) from error
    return path


def root() -> Path:
    """Return the cache's top."""
    return _made()


def downloads() -> Path:
    """Return where source archives are kept."""
    return _made("downloads")


def trees() -> Path:
    """Return the bare git repository that holds every base and patched tree."""
    return _root() / "trees.git"


def builds() -> Path:
    """Return the content-addressed builds, one directory a key."""
    return _made("builds")


def compiler_cache() -> Path:
    """Return ccache's directory, shared by all builds."""
    return _made("ccache")


def clusters() -> Path:
    """Return where data directories and sockets live; short, since a socket's path is limited to 107 bytes."""
    return _made("clusters")


def campaigns() -> Path:
    """Return where campaigns keep their store and their reproducers."""
    return _made("campaigns")


def harnesses() -> Path:
    """Return where libFuzzer harnesses are built."""
    return _made("harnesses")
