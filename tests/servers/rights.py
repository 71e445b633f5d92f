"""Rights to the directories of tests. pytest grants them to the caller only, but servers run as another user."""

import os
from pathlib import Path


def let_all_enter(directory: Path) -> None:
    """Let all users enter a directory of pytest and the directories above it."""
    for path in (directory, *directory.parents):
        if path.stat().st_uid == os.geteuid() and not path.stat().st_mode & 0o001:
            path.chmod(0o755)
