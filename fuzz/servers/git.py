"""git as plumbing: one bare repository holds every tree; user configuration and attributes do not touch it."""

import errno
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fuzz import workdir
from fuzz.errors import BuildError, SourceError, first_line

# Trees must come out as they went in, whatever .gitattributes they contain; this file has the last word.
_ATTRIBUTES = "* -text -eol -ident -filter -working-tree-encoding -export-ignore -export-subst\n"

_SETTINGS = {
    "core.autocrlf": "false",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "core.fsyncMethod": "batch",
    "core.compression": "1",
    "gc.auto": "0",  # nothing refers to the trees, so nothing may collect them
    "safe.directory": "*",  # root may read a user's checkout, so nothing that its configuration names may run
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "diff.external": "",
}


def environment(index: Path | None = None) -> dict[str, str]:
    """Return an environment in which git sees no user configuration, and `index` as its index."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    settings: dict[str, str] = {"GIT_CONFIG_COUNT": str(len(_SETTINGS))}
    for position, (key, value) in enumerate(_SETTINGS.items()):
        settings[f"GIT_CONFIG_KEY_{position}"] = key
        settings[f"GIT_CONFIG_VALUE_{position}"] = value
    if index is not None:
        settings["GIT_INDEX_FILE"] = str(index)
    return kept | settings | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}


def run(
    *arguments: str | Path, index: Path | None = None, stdin: bytes = b"", cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run git, whatever its exit code. Raises SourceError where git itself is missing."""
    try:
        return subprocess.run(
            ["git", *map(str, arguments)], env=environment(index), input=stdin, capture_output=True, cwd=cwd
        )
    except FileNotFoundError as error:
        raise SourceError(f"git is not installed; see {workdir.COMMAND} doctor") from error


def output(
    *arguments: str | Path, index: Path | None = None, stdin: bytes = b"", cwd: Path | None = None, failing: str
) -> bytes:
    """Return what git prints. Raises SourceError: `failing`, and git's first line of complaint."""
    done = run(*arguments, index=index, stdin=stdin, cwd=cwd)
    if done.returncode:
        raise SourceError(f"{failing}: {first_line(done.stderr.decode(errors='replace'))}")
    return done.stdout


def repository() -> Path:
    """Return the repository of trees, made on first use."""
    path = workdir.trees()
    if (path / "info" / "attributes").exists():
        return path
    with workdir.locked(path):
        output("init", "--quiet", "--bare", path, failing=f"cannot make {path}")
        (path / "info").mkdir(exist_ok=True)
        (path / "info" / "attributes").write_text(_ATTRIBUTES)
    return path


@contextmanager
def temporary_index(tree: str | None = None) -> Iterator[Path]:
    """Yield the name of an index that holds `tree`, or nothing."""
    with tempfile.TemporaryDirectory(prefix="pgduel-index-") as directory:
        index = Path(directory) / "index"
        if tree is not None:
            output("--git-dir", repository(), "read-tree", tree, index=index, failing=f"no tree {tree}")
        yield index


def write_tree(index: Path) -> str:
    """Return the tree that the index holds, stored."""
    return output("--git-dir", repository(), "write-tree", index=index, failing="cannot store a tree").decode().strip()


def import_directory(directory: Path) -> str:
    """Store a directory's files and return their tree. In a git checkout, ignored files do not count."""
    force: Sequence[str] = () if (directory / ".git").exists() else ("--force",)
    with temporary_index() as index:
        # Large files go straight into one pack: if all are large, that is less work than a file for each.
        where = ("-c", "core.bigFileThreshold=1", "--git-dir", repository(), "--work-tree", directory)
        output(*where, "add", "--all", *force, ".", index=index, cwd=directory, failing=f"cannot read {directory}")
        return write_tree(index)


def import_revision(checkout: Path, revision: str) -> str:
    """Copy the tree of a revision from another repository and return its hash. Raises SourceError."""
    named = output(
        "-C", checkout, "rev-parse", "--verify", "--quiet", f"{revision}^{{tree}}",
        failing=f"{checkout} has no revision {revision!r}",
    )  # fmt: skip
    objects = output("-C", checkout, "rev-list", "--objects", named.decode().strip(), failing=f"cannot read {checkout}")
    names = b"".join(line.split(b" ")[0] + b"\n" for line in objects.splitlines())
    plain = ("pack-objects", "-q", "--window=0", "--stdout")  # to look for deltas takes longer than to write them all
    pack = output("-C", checkout, *plain, stdin=names, failing=f"cannot read {checkout}")
    output("--git-dir", repository(), "index-pack", "--stdin", stdin=pack, failing=f"cannot copy {revision}")
    return named.decode().strip()


def show(tree: str, path: str) -> str | None:
    """Return the text of a file in a stored tree, or None where there is none."""
    done = run("--git-dir", repository(), "cat-file", "blob", f"{tree}:{path}")
    return None if done.returncode else done.stdout.decode(errors="replace")


def extract(tree: str, directory: Path, *paths: str) -> None:
    """Write a stored tree (or only some paths of it) into a directory. Raises SourceError, BuildError (no space)."""
    archive = subprocess.Popen(
        ["git", "--git-dir", str(repository()), "archive", tree, *paths], env=environment(), stdout=subprocess.PIPE
    )
    unpacked = subprocess.run(["tar", "-xf", "-"], cwd=directory, stdin=archive.stdout, capture_output=True)
    if archive.stdout is not None:
        archive.stdout.close()
    if archive.wait() or unpacked.returncode:
        said = unpacked.stderr.decode(errors="replace")
        if os.strerror(errno.ENOSPC) in said:
            raise BuildError(f"no space left on the disk of {directory}; make room or set PGDUEL_HOME")
        raise SourceError(f"cannot unpack into {directory}: {first_line(said, f'no such tree: {tree}')}")
