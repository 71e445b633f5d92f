"""A small file system, and a file that fills it."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def of_limited_size(directory: Path, megabytes: int) -> Iterator[Path]:
    """Mount a file system of this size in memory."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a file system")
    directory.mkdir(parents=True)
    options = f"size={megabytes}m"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", directory], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "--lazy", directory], check=True)


def fill(directory: Path) -> Path:
    """Fill a file system, and return the file that fills it."""
    filling = directory / "filling"
    with filling.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    return filling
