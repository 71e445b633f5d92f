"""Paths that pgduel writes to, all outside the checkout. Standard library only, because set-up uses it."""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fuzz.errors import DiskFull, PgduelError, StorageError

PROJECT = Path(__file__).resolve().parents[1]  # the checkout, or its copy in an installed package
IS_CHECKOUT = (PROJECT / "pyproject.toml").exists()
COMMAND = "./pgduel" if IS_CHECKOUT else "pgduel"  # as users type it
MEMORY = Path("/dev/shm")
_CAMPAIGNS = "PGDUEL_CAMPAIGNS"
_PRIVATE = 0o700
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_MEMORY_NEEDED = 8 << 30  # bytes: four servers with at most 1 GB of WAL each, their data, and as much again


def _root() -> Path:
    """Return the cache directory: $PGDUEL_HOME, or one that unprivileged servers can enter even if root made it."""
    if home := os.environ.get("PGDUEL_HOME"):
        return Path(home).absolute()
    if os.geteuid() == 0:
        return Path("/var/cache/pgduel")
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(cache) if os.path.isabs(cache) else Path.home() / ".cache") / "pgduel"


def _made(*parts: str) -> Path:
    return _ready(_root().joinpath(*parts))


def _ready(path: Path, mode: int = 0o777, *, variable: str = "PGDUEL_HOME") -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode, exist_ok=True)
    except OSError as error:
        raise PgduelError(
            f"cannot write to {path} ({error.strerror}); set {variable} to a writable directory"
        ) from error
    return path


def root() -> Path:
    """Return the cache directory."""
    return _made()


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Wrap code that writes to a path. Raises StorageError if that fails, DiskFull without room."""
    try:
        yield
    except OSError as error:
        failure = f"cannot write {path} ({error.strerror})"
        if error.errno in _NO_ROOM:
            raise DiskFull(f"{failure}; make room there") from error
        raise StorageError(f"{failure}; give pgduel write permission there") from error


def write(path: Path, content: str | bytes) -> None:
    """Replace a file atomically: after a kill or on a full disk, the file is unchanged.

    Several processes may write the same file at once. Raises StorageError.
    """
    draft = path.with_name(f"{path.name}.{os.getpid()}.draft")
    with writing(path):
        try:
            draft.write_bytes(content.encode() if isinstance(content, str) else content)
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a path, a file beside it, while others wait. The kernel releases it if the process is killed."""
    with open(f"{path}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)  # a process forked in the meantime has the file open, too


def environments() -> Path:
    """Return the directory of set-up's virtual environments, one per set of dependencies."""
    return _made("environments")


def logs() -> Path:
    """Return the directory of the output of set-up and compilers."""
    return _made("logs")


def downloads() -> Path:
    """Return the directory of source archives."""
    return _made("downloads")


def trees() -> Path:
    """Return the bare git repository of all bases and patched trees."""
    return _made() / "trees.git"


def builds() -> Path:
    """Return the directory of the content-addressed builds, one directory per key."""
    return _made("builds")


def compiler_cache() -> Path:
    """Return ccache's directory, which all builds share."""
    return _made("ccache")


def clusters() -> Path:
    """Return the directory of servers that fuzz: in memory if possible, as cases create and drop thousands of files.

    On disk, that may take a quarter of the CPU time (ext4 searches for inodes that were not freed recently). If
    $PGDUEL_HOME is set, everything is there.
    """
    return _in_memory() or clusters_on_disk()


def clusters_on_disk() -> Path:
    """Return the directory on disk of data directories and sockets. A socket's path is limited to 107 bytes."""
    return _made("clusters")


def _in_memory() -> Path | None:
    """Return a directory in memory, or None if it lacks room for the servers of a campaign or is not the caller's."""
    if "PGDUEL_HOME" in os.environ or not MEMORY.is_dir() or shutil.disk_usage(MEMORY).total < _MEMORY_NEEDED:
        return None
    path = MEMORY / f"pgduel-{os.geteuid()}"
    try:
        path.mkdir(exist_ok=True)
    except OSError:
        return None
    return path if path.lstat().st_uid == os.geteuid() and path.is_dir() else None


def campaigns() -> Path:
    """Return the directory of campaigns, their stores and reproducers: $PGDUEL_CAMPAIGNS, or in the cache.

    Others cannot read it, because cases may contain the user's own data.
    """
    if elsewhere := os.environ.get(_CAMPAIGNS):
        return _ready(Path(elsewhere).absolute(), _PRIVATE, variable=_CAMPAIGNS)
    path = _made("campaigns")
    if path.stat().st_mode & ~_PRIVATE & 0o777:
        path.chmod(_PRIVATE)
    return path


@contextmanager
def campaigns_in(directory: Path) -> Iterator[None]:
    """Keep campaigns, and libFuzzer's corpora beside them, in another directory, also in processes started here."""
    before = os.environ.get(_CAMPAIGNS)
    os.environ[_CAMPAIGNS] = str(directory)
    try:
        yield
    finally:
        if before is None:
            del os.environ[_CAMPAIGNS]
        else:
            os.environ[_CAMPAIGNS] = before


def shared_campaigns(name: str) -> Path:
    """Return the directory of the files of campaigns in a shared store, beside the other campaigns."""
    return _ready(campaigns() / name, _PRIVATE)


def mutants() -> Path:
    """Return the directory of mutants' results, beside the campaigns."""
    return _ready(campaigns() / "mutants", _PRIVATE)


def benches() -> Path:
    """Return the directory of the benches' measurements, beside the campaigns."""
    return _ready(campaigns() / "benches", _PRIVATE)


def bench_data() -> Path:
    """Return the directory of the benches' data, one directory per bench."""
    return _made("bench-data")


def inputs() -> Path:
    """Return the directory of libFuzzer's corpora, one directory per generator, beside the campaigns."""
    return _ready(campaigns() / "inputs", _PRIVATE)


def input_edges() -> Path:
    """Return the directory of the edges that inputs of libFuzzer's corpora reached, beside the campaigns."""
    return _ready(campaigns() / "input-edges", _PRIVATE)


def harnesses() -> Path:
    """Return the directory of libFuzzer harnesses."""
    return _made("harnesses")


def harness_inputs() -> Path:
    """Return the directory of the inputs that libFuzzer harnesses keep, one directory per harness."""
    return _made("harness-inputs")


def examples() -> Path:
    """Return the directory of the examples that Hypothesis keeps between runs of the property tests."""
    return _made("examples")


def tests() -> Path:
    """Return the directory of the output of PostgreSQL's own tests."""
    return _made("tests")
