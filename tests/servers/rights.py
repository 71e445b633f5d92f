"""Directories that the account of servers may enter. Those of pytest are closed, at the latest by its next start."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from fuzz.servers.account import server_account


@contextmanager
def open_to_all() -> Iterator[Path]:
    """Create a directory that all users may enter. The caller's home may be closed to others."""
    with TemporaryDirectory(prefix="open-", dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextmanager
def open_to_account() -> Iterator[Path]:
    """Create a directory of the servers' account that all users may enter."""
    with open_to_all() as directory:
        server_account().give(directory)
        yield directory
