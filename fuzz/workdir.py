"""The one owner of every path that pgduel writes to, outside the checkout. Standard library only: set-up uses it."""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fuzz.errors import PgduelError, StorageError

PROJECT = Path(__file__).resolve().parents[1]  # the checkout, or the directory with the same parts in a package
IS_CHECKOUT = (PROJECT / "pyproject.toml").exists()
COMMAND = "./pgduel" if IS_CHECKOUT else "pgduel"  # as users type it
MEMORY = Path("/dev/shm")
_PRIVATE = 0o700
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_MEMORY_NEEDED = 8 << 30  # bytes: four servers with 1 GB of WAL at most each, what they hold, and as much left over


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


def _ready(path: Path, mode: int = 0o777) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode, exist_ok=True)
    except OSError as error:
        raise PgduelError(
            f"cannot write to {path} ({error.strerror}); set PGDUEL_HOME to a directory you may use"
        ) from error
    return path


def root() -> Path:
    """Return the cache's top."""
    return _made()


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Do what writes to a path. Raises StorageError where that fails."""
    try:
        yield
    except OSError as error:
        advice = "make room there" if error.errno in _NO_ROOM else "see that pgduel may write there"
        raise StorageError(f"cannot write {path} ({error.strerror}); {advice}") from error


def write(path: Path, text: str) -> None:
    """Put a text in the place of a file, as a whole: whoever is killed, or lacks room, leaves the file as it was.

    Raises StorageError.
    """
    draft = path.with_name(f"{path.name}.draft")
    with writing(path):
        try:
            draft.write_text(text, encoding="utf-8")
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a path, a file beside it; others wait. The kernel releases it if the process is killed."""
    with open(f"{path}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)  # a process forked meanwhile has the file open, too


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
    """Return where servers that fuzz live, as far as possible in memory: cases make and drop thousands of files.

    A file system on disk may spend a quarter of all processors' time on that (ext4, looking for inodes that were not
    freed just now). Whoever sets $PGDUEL_HOME wants everything there.
    """
    return _in_memory() or clusters_on_disk()


def clusters_on_disk() -> Path:
    """Return where data directories and sockets live otherwise; short: a socket's path is limited to 107 bytes."""
    return _made("clusters")


def _in_memory() -> Path | None:
    """Return a directory in memory, where there is room for all servers of a campaign, and it is ours."""
    if "PGDUEL_HOME" in os.environ or not MEMORY.is_dir() or shutil.disk_usage(MEMORY).total < _MEMORY_NEEDED:
        return None
    path = MEMORY / f"pgduel-{os.geteuid()}"
    try:
        path.mkdir(exist_ok=True)
    except OSError:
        return None
    return path if path.lstat().st_uid == os.geteuid() and path.is_dir() else None


def campaigns() -> Path:
    """Return where campaigns keep their store and their reproducers: $PGDUEL_CAMPAIGNS, or in the cache.

    Nobody else may read them: what a campaign replays may hold the user's own data.
    """
    if elsewhere := os.environ.get("PGDUEL_CAMPAIGNS"):
        return _ready(Path(elsewhere).absolute(), _PRIVATE)
    path = _made("campaigns")
    if path.stat().st_mode & ~_PRIVATE & 0o777:
        path.chmod(_PRIVATE)
    return path


def harnesses() -> Path:
    """Return where libFuzzer harnesses are built."""
    return _made("harnesses")


def tests() -> Path:
    """Return where suites of PostgreSQL's own tests leave their output."""
    return _made("tests")
