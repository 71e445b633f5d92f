"""git as storage: one bare repository has all trees. User configuration and attributes do not affect it."""

import errno
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fuzz import workdir
from fuzz.errors import BuildError, SourceError, first_line

# Trees must come out unchanged. So this file takes precedence over their .gitattributes.
_ATTRIBUTES = "* -text -eol -ident -filter -working-tree-encoding -export-ignore -export-subst\n"

_SETTINGS = {
    "core.autocrlf": "false",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "core.fsyncMethod": "batch",
    "core.compression": "1",
    "gc.auto": "0",  # there are no references to trees, so they must not be collected
    "safe.directory": "*",  # root may read a user's checkout, but must not run programs that its configuration names
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "diff.external": "",
    "log.showSignature": "false",  # it runs gpg.program
}

_NO_LAZY_FETCH = "lazy fetching disabled"  # git's words
_FETCH_ALL = "; the clone is partial, so let its owner run: git fetch --refetch --no-filter"
_NOBODY = "pgduel <> 0 +0000"  # author of commits, at a fixed time


def environment(index: Path | None = None) -> dict[str, str]:
    """Return an environment that hides user configuration from git, with `index` as git's index."""
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
    """Run git, and accept any exit code. Raises SourceError if git is not installed."""
    variables = environment(index)
    if arguments[0] == "-C" and _is_of_another(Path(arguments[1])):
        variables["GIT_NO_LAZY_FETCH"] = "1"  # of objects that a partial clone lacks, by a program of its configuration
    try:
        return subprocess.run(["git", *map(str, arguments)], env=variables, input=stdin, capture_output=True, cwd=cwd)
    except FileNotFoundError as error:
        raise SourceError(f"git is not installed; see {workdir.COMMAND} doctor") from error


def _is_of_another(checkout: Path) -> bool:
    """Return whether the caller is root, and the checkout belongs to another user."""
    return os.geteuid() == 0 and checkout.exists() and checkout.stat().st_uid != 0


def output(
    *arguments: str | Path, index: Path | None = None, stdin: bytes = b"", cwd: Path | None = None, failing: str
) -> bytes:
    """Return git's output. Raises SourceError with `failing` and the first line of git's error, after its warnings."""
    done = run(*arguments, index=index, stdin=stdin, cwd=cwd)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").splitlines()
        reason = next((line for line in lines if line.startswith(("fatal: ", "error: "))), first_line("\n".join(lines)))
        partial = any(_NO_LAZY_FETCH in line for line in lines)
        raise SourceError(f"{failing}: {reason}{_FETCH_ALL if partial else ''}")
    return done.stdout


def repository() -> Path:
    """Return the repository of trees, which is created on first use."""
    path = workdir.trees()
    if (path / "info" / "attributes").exists():
        return path
    with workdir.locked(path):
        output("init", "--quiet", "--bare", path, failing=f"cannot create {path}")
        (path / "info").mkdir(exist_ok=True)
        (path / "info" / "attributes").write_text(_ATTRIBUTES)
    return path


@contextmanager
def temporary_index(tree: str | None = None) -> Iterator[Path]:
    """Yield the name of an index with `tree`, or of an empty one."""
    with tempfile.TemporaryDirectory(prefix="pgduel-index-") as directory:
        index = Path(directory) / "index"
        if tree is not None:
            output("--git-dir", repository(), "read-tree", tree, index=index, failing=f"cannot read tree {tree}")
        yield index


def write_tree(index: Path) -> str:
    """Store the index as a tree, and return its hash."""
    return output("--git-dir", repository(), "write-tree", index=index, failing="cannot store a tree").decode().strip()


def chain(trees: Sequence[str]) -> list[str]:
    """Store a commit of each tree, the next one's parent, and return their hashes. Equal trees give equal commits."""
    commits: list[str] = []
    for tree in trees:
        parents = "".join(f"parent {commit}\n" for commit in commits[-1:])
        text = f"tree {tree}\n{parents}author {_NOBODY}\ncommitter {_NOBODY}\n\n"
        stored = ("--git-dir", repository(), "hash-object", "-t", "commit", "-w", "--stdin")
        commits.append(output(*stored, stdin=text.encode(), failing="cannot store a commit").decode().strip())
    return commits


def import_directory(directory: Path) -> str:
    """Store a directory's files and return their tree. In a git checkout, ignored files are left out."""
    force: Sequence[str] = () if (directory / ".git").exists() else ("--force",)
    with temporary_index() as index:
        # Large files go into one pack. If all count as large, that is faster than a file for each object.
        where = ("-c", "core.bigFileThreshold=1", "--git-dir", repository(), "--work-tree", directory)
        output(*where, "add", "--all", *force, ".", index=index, cwd=directory, failing=f"cannot read {directory}")
        return write_tree(index)


def import_revision(checkout: Path, revision: str) -> str:
    """Copy the tree of a revision from another repository and return its hash. Raises SourceError.

    Only missing objects are copied, so that a campaign on a moving branch needs little disk.
    """
    named = output(
        "-C", checkout, "rev-parse", "--verify", f"{revision}^{{tree}}",
        failing=f"{checkout} has no revision {revision!r}",
    )  # fmt: skip
    tree = named.decode().strip()
    objects = output("-C", checkout, "rev-list", "--objects", tree, failing=f"cannot read {checkout}")
    if names := _missing(_names(objects)):
        unpack(_packed(("-C", checkout), names, f"cannot read {checkout}"), failing=f"cannot copy {revision}")
    return tree


def missing_trees(trees: Sequence[str]) -> tuple[str, ...]:
    """Return the trees that are not stored."""
    return tuple(_missing(b"".join(tree.encode() + b"\n" for tree in trees)).decode().split())


def packed(trees: Sequence[str]) -> bytes:
    """Return a pack with stored trees, for `unpack` in another repository. Raises SourceError."""
    failing = f"cannot read tree {trees[0][:12]}"
    objects = output("--git-dir", repository(), "rev-list", "--objects", *trees, failing=failing)
    return _packed(("--git-dir", repository()), _names(objects), failing)


def unpack(pack: bytes, *, failing: str) -> None:
    """Store the objects of a pack. Raises SourceError."""
    output("--git-dir", repository(), "index-pack", "--stdin", stdin=pack, failing=failing)


def _names(objects: bytes) -> bytes:
    """Return the names in the output of rev-list --objects, one a line. Paths follow them, up to a line feed."""
    return b"".join(line.split(b" ")[0] + b"\n" for line in objects.split(b"\n") if line)


def _packed(where: Sequence[str | Path], names: bytes, failing: str) -> bytes:
    # searching for deltas takes longer than writing all objects
    return output(*where, "pack-objects", "-q", "--window=0", "--stdout", stdin=names, failing=failing)


def _missing(names: bytes) -> bytes:
    """Return the names of the objects that are not stored, one a line."""
    checked = output("--git-dir", repository(), "cat-file", "--batch-check", stdin=names, failing="cannot read objects")
    suffix = b" missing"
    return b"".join(line.removesuffix(suffix) + b"\n" for line in checked.splitlines() if line.endswith(suffix))


def show(tree: str, path: str) -> str | None:
    """Return the text of a file in a stored tree, or None if it does not exist."""
    done = run("--git-dir", repository(), "cat-file", "blob", f"{tree}:{path}")
    return None if done.returncode else done.stdout.decode(errors="replace")


def is_link(tree: str, path: str) -> bool:
    """Return whether a path of a stored tree is a symbolic link."""
    listed = ("--literal-pathspecs", "--git-dir", repository(), "ls-tree", tree, "--", path)
    return run(*listed).stdout.startswith(b"120000 ")


def changed_files(before: str, after: str, *, deleted: bool = True) -> tuple[str, ...]:
    """Return the paths of files in which two stored trees differ, with or without deleted ones. Raises SourceError."""
    kinds = () if deleted else ("--diff-filter=d",)
    compared = ("diff-tree", "-r", "-z", "--no-renames", *kinds, "--name-only", before, after)
    listed = output("--git-dir", repository(), *compared, failing=f"cannot compare trees {before[:12]}, {after[:12]}")
    return tuple(name for name in listed.decode(errors="surrogateescape").split("\0") if name)


def extract(tree: str, directory: Path, *paths: str) -> None:
    """Write a stored tree, or only some paths of it, into a directory. Raises SourceError, BuildError (no space)."""
    archive = subprocess.Popen(
        ["git", "--git-dir", str(repository()), "archive", tree, *paths], env=environment(), stdout=subprocess.PIPE
    )
    unpacked = subprocess.run(["tar", "-xf", "-"], cwd=directory, stdin=archive.stdout, capture_output=True)
    if archive.stdout is not None:
        archive.stdout.close()
    if archive.wait() or unpacked.returncode:
        errors = unpacked.stderr.decode(errors="replace")
        if os.strerror(errno.ENOSPC) in errors:
            raise BuildError(f"no space left on the disk of {directory}; make room or set PGDUEL_HOME")
        raise SourceError(f"cannot unpack into {directory}: {first_line(errors, f'no such tree: {tree}')}")
