"""The one owner of every path that pgduel writes to, outside the checkout. Standard library only: set-up uses it."""

import os
from pathlib import Path

from fuzz.errors import PgduelError

CHECKOUT = Path(__file__).resolve().parents[1]


def _root() -> Path:
    """Return the cache: $PGDUEL_HOME, or one that an unprivileged server may enter even when root made it."""
    if home := os.environ.get("PGDUEL_HOME"):
        return Path(home).absolute()
    if os.geteuid() == 0:
        return Path("/var/cache/pgduel")
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(cache) if os.path.isabs(cache) else Path.home() / ".cache") / "pgduel"


def _made(*parts: str) -> Path:
    return _ready(_root().joinpath(*parts))


def _ready(path: Path) -> Path:
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


def environments() -> Path:
    """Return where set-up keeps its virtual environments, one for each set of dependencies."""
    return _made("environments")


def logs() -> Path:
    """Return where the output of set-up and of compilers is kept."""
    return _made("logs")


def downloads() -> Path:
    """Return where source archives are kept."""
    return _made("downloads")


def trees() -> Path:
    """Return the bare git repository that holds every base and patched tree."""
    return _made() / "trees.git"


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
    """Return where campaigns keep their store and their reproducers: $PGDUEL_CAMPAIGNS, or in the cache."""
    if elsewhere := os.environ.get("PGDUEL_CAMPAIGNS"):
        return _ready(Path(elsewhere).absolute())
    return _made("campaigns")


def harnesses() -> Path:
    """Return where libFuzzer harnesses are built."""
    return _made("harnesses")


def tests() -> Path:
    """Return where suites of PostgreSQL's own tests leave their output."""
    return _made("tests")
