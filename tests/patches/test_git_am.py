"""Tests of each series: `git am` accepts it and gives the tree that pgduel builds, and messages have reasons."""

import re
import subprocess
from pathlib import Path

import pytest

from fuzz import workdir
from fuzz.servers import git
from fuzz.servers.base import Base, resolve_base
from fuzz.servers.known_good import newer_than_known
from fuzz.servers.series import Series, apply_series, series_from_directory

PATCHES = workdir.PROJECT / "patches"
SERIES = sorted(path.parent for path in PATCHES.glob("pg*/**/series"))


@pytest.fixture(scope="module")
def bases() -> dict[str, Base]:
    return {}


@pytest.mark.parametrize("directory", SERIES, ids=lambda path: str(path.relative_to(PATCHES)))
def test_git_am_makes_the_tree_that_is_built(directory: Path, bases: dict[str, Base], tmp_path: Path) -> None:
    version = directory.relative_to(PATCHES).parts[0]
    base = bases.setdefault(version, resolve_base(version, print))
    series = _with_baseline(directory)

    checkout = _commit(base.tree, tmp_path)
    for patch in series.patches:
        # Context lines may differ in a release that is newer than the series.
        _git(checkout, "am", "--quiet", f"-C{1 if newer_than_known(base.version) else 3}", "-", stdin=patch.content)

    assert _git(checkout, "rev-parse", "HEAD^{tree}") == apply_series(base.tree, series)[-1]
    assert _git(checkout, "rev-list", "--count", "HEAD") == str(1 + len(series.patches))


@pytest.mark.parametrize("patch", sorted(PATCHES.glob("pg*/**/*.patch")), ids=lambda path: path.name)
def test_a_patch_has_a_reason(patch: Path) -> None:
    """A message has a subject, a reason and the link to a mail. The table of patches has the subject."""
    message, _, _ = patch.read_text().partition("\n---\n")
    assert "Discussion: https://postgr.es/m/" in message
    assert len(message.partition("\n\n")[2].split()) > 50
    reported = re.search(r"^Subject: \[PATCH\] (.*(?:\n .*)*)", message, re.MULTILINE)
    assert reported
    assert f"{patch.name.partition('-')[0]} {' '.join(reported[1].split())}" in (PATCHES / "README.md").read_text()


def test_each_patch_is_in_a_series() -> None:
    listed = {patch.name for directory in SERIES for patch in series_from_directory(directory).patches}
    assert listed == {path.name for path in PATCHES.glob("pg*/**/*.patch")}


def _with_baseline(directory: Path) -> Series:
    own = series_from_directory(directory)
    baseline = directory.parent / "baseline"
    if directory.name == "baseline" or not (baseline / "series").exists():
        return own
    return series_from_directory(baseline) + own


def _commit(tree: str, top: Path) -> Path:
    """Return a checkout with the tree as its only commit, and with the objects of the repository of trees."""
    checkout = top / "checkout"
    _git(top, "init", "--quiet", str(checkout))
    (checkout / ".git/objects/info/alternates").write_text(f"{git.repository() / 'objects'}\n")
    commit = _git(checkout, "commit-tree", "-m", "base", tree)
    _git(checkout, "reset", "--quiet", "--hard", commit)
    return checkout


def _git(directory: Path, *arguments: str, stdin: bytes = b"") -> str:
    who = {f"GIT_{role}_{what}": "a@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    done = subprocess.run(
        ["git", *arguments], cwd=directory, input=stdin, capture_output=True, env=git.environment() | who
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout.decode().strip()
