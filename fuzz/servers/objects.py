"""Object files that builds start from, so that ninja compiles only the tree's changes and their includers.

All builds with the same compiler and options use the same path, because meson stores absolute paths. The directory of a
build from nothing is kept; builds of similar trees start from a copy of it.
"""

import hashlib
import json
import os
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath

from filelock import FileLock

from fuzz import workdir
from fuzz.errors import BuildError, SourceError, first_line
from fuzz.servers import git
from fuzz.servers.account import server_account
from fuzz.servers.processes import kill_all_in

_NEAR = 300  # changed files; with more, most object files would be useless
_OLD = 10**9  # modification time of unchanged sources, in seconds: before any object file
_PACKAGES = Path("/var/lib/dpkg/status")  # changes with any package; files of new packages may be older than objects


@dataclass(frozen=True, slots=True)
class Workplace:
    """Directories `source` and `build` in `home`; `configured` if `build` contains object files already."""

    home: Path
    configured: bool


def workplace_home(configure: Sequence[str]) -> Path:
    """Return the home of the workplace of all builds with these options."""
    digest = hashlib.sha256("\0".join(configure).encode()).hexdigest()
    return workdir.builds() / f"objects-{digest[:12]}"


@contextmanager
def workplace(tree: str, configure: Sequence[str]) -> Iterator[Workplace]:
    """Yield the directories for the compilation of a tree; they are deleted afterwards.

    The account of servers owns `build`; it can only read `source`. Other builds with the same options wait. A build
    from nothing is kept if it succeeds. Raises BuildError, SourceError.
    """
    home = workplace_home(configure)
    with FileLock(f"{home}.lock"):
        home.mkdir(exist_ok=True)
        _clear(home)
        try:
            changed = _changed(home, tree)
            _make(home, tree, changed)
            yield Workplace(home, changed is not None)
            if changed is None:
                _keep(home, tree)
        finally:
            _clear(home)


def _clear(home: Path) -> None:
    """Delete the directories of a build, and stop processes that a killed build left."""
    for directory in (home, home / "source", home / "build"):
        kill_all_in(directory.resolve())
    for directory in (home / "source", home / "build"):
        shutil.rmtree(directory, ignore_errors=True)


def _changed(home: Path, tree: str) -> frozenset[str] | None:
    """Return the files that differ between a tree and the kept build, or None for a build from nothing."""
    try:
        kept = json.loads((home / "kept.json").read_text())
        compared = ("diff-tree", "-r", "-z", "--no-renames", "--name-status", kept["tree"], tree)
        listed = git.output("--git-dir", git.repository(), *compared, failing="the kept tree is gone")
    except (OSError, ValueError, SourceError):
        return None
    words = listed.decode(errors="surrogateescape").split("\0")
    changes = dict(zip(words[1::2], words[::2], strict=False))
    added = [path for path, change in changes.items() if change == "A"]
    useful = len(changes) <= _NEAR and kept.get("packages") == _packages() and kept["time"] < time.time_ns()
    return frozenset(changes) if useful and not _hides_headers(tree, added) else None


def _packages() -> int:
    return _PACKAGES.stat().st_mtime_ns if _PACKAGES.exists() else 0


def _hides_headers(tree: str, added: Sequence[str]) -> bool:
    """Return whether a new header has another's name: object files do not depend on headers that did not exist."""
    headers = {PurePath(path).name for path in added if path.endswith(".h")}
    if not headers:
        return False
    listing = ("--git-dir", git.repository(), "ls-tree", "-r", "-z", "--name-only", tree)
    listed = git.output(*listing, failing=f"no tree {tree}").decode(errors="surrogateescape").split("\0")
    names = Counter(PurePath(path).name for path in listed)
    return any(names[header] > 1 for header in headers)


def _make(home: Path, tree: str, changed: frozenset[str] | None) -> None:
    """Unpack a tree, with changed files as new ones; copy the kept object files unless `changed` is None."""
    source, build = home / "source", home / "build"
    source.mkdir()
    git.extract(tree, source)
    now = time.time_ns()
    for directory, _, files in os.walk(source):
        for file in files:
            path = os.path.join(directory, file)
            new = changed is not None and os.path.relpath(path, source) in changed
            os.utime(path, ns=(now, now) if new else (_OLD * 10**9, _OLD * 10**9), follow_symlinks=False)
    build.mkdir()
    account = server_account()
    account.give(build)
    if changed is not None:
        copy = ["cp", "--archive", "--reflink=auto", "../kept/.", "."]
        done = subprocess.run(copy, cwd=build, capture_output=True, text=True, **account.options())
        if done.returncode:
            raise BuildError(f"cannot copy object files: {first_line(done.stderr)}; make room or set PGDUEL_HOME")


def _keep(home: Path, tree: str) -> None:
    """Keep the build directory; a killed process leaves either a complete one or none."""
    (home / "kept.json").unlink(missing_ok=True)
    shutil.rmtree(home / "kept", ignore_errors=True)
    (home / "build").rename(home / "kept")
    workdir.write(home / "kept.json", json.dumps({"tree": tree, "packages": _packages(), "time": time.time_ns()}))
