"""Tests of bases: directories, archives and revisions are stored in the repository of trees byte by byte."""

import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from fuzz.errors import SourceError
from fuzz.servers import git
from fuzz.servers.base import resolve_base
from tests.servers import sources


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PGDUEL_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return sources.plant(tmp_path / "postgresql-17.99")


def silent(_line: str) -> None:
    """Ignore a line of progress."""


def contents(directory: Path) -> dict[str, tuple[bytes, bool]]:
    files = (path for path in directory.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(directory)): (path.read_bytes(), path.stat().st_mode & 0o100 > 0) for path in files}


def packed(tree: Path, name: str) -> Path:
    archive = tree.parent / name
    mode: Any = f"w:{name.rpartition('.')[2].removeprefix('tar')}"
    with tarfile.open(archive, mode) as written:
        written.add(tree, tree.name)
    return archive


def test_a_directory_is_stored_exactly(tree: Path, tmp_path: Path) -> None:
    base = resolve_base(str(tree), silent)
    out = tmp_path / "out"
    out.mkdir()
    git.extract(base.tree, out)
    assert contents(out) == contents(tree)
    assert (base.version, base.major) == ("17.99", 17)


@pytest.mark.parametrize("name", ["source.tar", "source.tar.gz", "source.tar.bz2", "source.tar.xz"])
def test_archive_is_the_same_base_as_its_directory(tree: Path, name: str) -> None:
    base = resolve_base(str(packed(tree, name)), silent)
    assert base.tree == resolve_base(str(tree), silent).tree
    assert len(base.sha256) == 64


def test_a_further_revision_copies_only_its_new_objects(tree: Path) -> None:
    sources.git(tree, "init", "--quiet", "--initial-branch=main")
    sources.commit(tree, "first")
    resolve_base(f"{tree}@main", silent)
    before = _stored_objects()
    resolve_base(f"{tree}@main", silent)
    assert _stored_objects() == before
    (tree / "src" / "long.c").write_text("changed\n")
    sources.commit(tree, "second")
    resolve_base(f"{tree}@main", silent)
    assert _stored_objects() == before + 3  # the file, and the trees of two directories


def _stored_objects() -> int:
    counts = git.output("--git-dir", git.repository(), "count-objects", "-v", failing="cannot count").decode()
    fields = dict(line.split(": ") for line in counts.splitlines())
    return int(fields["count"]) + int(fields["in-pack"])


def test_a_revision_is_the_committed_tree(tree: Path) -> None:
    before = resolve_base(str(tree), silent).tree
    (tree / ".gitattributes").unlink()
    stored = resolve_base(str(tree), silent).tree
    sources.git(tree, "init", "--quiet", "--initial-branch=main")
    sources.commit(tree, "one")
    sources.git(tree, "tag", "first")
    (tree / "src" / "long.c").write_text("changed\n")
    sources.commit(tree, "two")
    assert resolve_base(f"{tree}@first", silent).tree == stored != before
    assert resolve_base(f"{tree}@main", silent).tree != stored
    assert resolve_base(f"{tree}@main~1", silent).tree == stored


def test_names_of_files_may_have_any_character(tree: Path) -> None:
    for name in ("a\rb", "a\nb", 'a"b %s', os.fsdecode(b"\xff")):
        (tree / name).write_text(repr(name))
    sources.git(tree, "init", "--quiet")
    sources.commit(tree, "odd names")
    assert git.import_revision(tree, "HEAD") == sources.git(tree, "rev-parse", "HEAD^{tree}")


def test_ignored_files_of_a_checkout_do_not_count(tree: Path) -> None:
    sources.git(tree, "init", "--quiet")
    base = resolve_base(str(tree), silent)
    assert git.show(base.tree, "src/long.c") is not None
    assert git.show(base.tree, "built.so") is None


def test_configuration_of_the_user_changes_nothing(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = resolve_base(str(tree), silent).tree
    config = tmp_path / "config"
    config.write_text("[core]\n\tautocrlf = input\n\tfileMode = false\n\texcludesFile = /dev/stdin\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_DIR", "/nonexistent")
    assert resolve_base(str(tree), silent).tree == expected


def test_the_error_about_a_missing_source_names_it(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"no source found for '.*/nowhere'; give pg17, pg18, a directory"):
        resolve_base(str(tmp_path / "nowhere"), silent)


def test_the_error_about_a_missing_revision_names_it(tree: Path) -> None:
    sources.git(tree, "init", "--quiet")
    sources.commit(tree, "one")
    with pytest.raises(SourceError, match=r"has no revision 'nothing'"):
        resolve_base(f"{tree}@nothing", silent)


def test_other_projects_are_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "meson.build").write_text("project('other', version: '1')\n")
    with pytest.raises(SourceError, match="is no PostgreSQL 16 or newer"):
        resolve_base(str(tmp_path / "other"), silent)


def test_other_directories_are_refused_before_anything_is_stored(tmp_path: Path, home: Path) -> None:
    (tmp_path / "film").write_bytes(bytes(1 << 20))
    with pytest.raises(
        SourceError, match=r"cannot read .*/meson\.build \(No such file .*; give the source of PostgreSQL"
    ):
        resolve_base(str(tmp_path), silent)
    assert not home.exists()


@pytest.mark.parametrize("name", ["source.tar", "source.tar.gz", "source.tar.bz2", "source.tar.xz"])
def test_an_incomplete_archive_is_refused(tree: Path, name: str) -> None:
    archive = packed(tree, name)
    archive.write_bytes(archive.read_bytes()[: archive.stat().st_size // 3])
    with pytest.raises(SourceError, match=rf"cannot unpack .*{name}: \w+"):
        resolve_base(str(archive), silent)


@pytest.mark.parametrize("name", ["broken.tar", "broken.tar.gz", "broken.tar.bz2", "broken.tar.xz"])
def test_a_file_that_is_no_archive_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"not a tarball" * 100_000)
    with pytest.raises(SourceError, match=rf"cannot unpack .*{name}: \w+"):
        resolve_base(str(tmp_path / name), silent)
