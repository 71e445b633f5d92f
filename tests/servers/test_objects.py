"""Tests of kept object files: builds of similar trees start from them, and failed builds keep none."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fuzz.servers import git, objects
from fuzz.servers.objects import workplace

Import = Callable[..., str]


@pytest.fixture
def tree(open_directory: Path, monkeypatch: pytest.MonkeyPatch) -> Import:
    """Return a function that stores a tree: one file that never changes, and the given files with their text."""
    monkeypatch.setenv("PGDUEL_HOME", str(open_directory / "home"))

    def imported(**files: str) -> str:
        directory = open_directory / "tree"
        shutil.rmtree(directory, ignore_errors=True)
        for name, text in {"src/same.c": "int same;\n", **files}.items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_text(text)
        return git.import_directory(directory)

    return imported


def compile_once(tree: str, *options: str) -> Path:
    """Create an object file in a new workplace, and return the workplace's directory."""
    with workplace(tree, options) as place:
        assert not place.configured
        (place.home / "build" / "same.o").write_text("object")
    return place.home


def test_a_similar_tree_starts_from_kept_object_files_and_only_its_changes_are_new(tree: Import) -> None:
    compile_once(tree(**{"src/other.c": "int old;\n"}))
    with workplace(tree(**{"src/other.c": "int other;\n", "added.c": "int added;\n"}), ()) as place:
        assert place.configured
        compiled = (place.home / "build" / "same.o").stat().st_mtime_ns
        assert (place.home / "source/src/same.c").stat().st_mtime_ns < compiled
        for changed in ("src/other.c", "added.c"):
            assert (place.home / "source" / changed).stat().st_mtime_ns > compiled


def test_a_build_from_object_files_keeps_no_new_ones(tree: Import) -> None:
    home = compile_once(tree())
    with workplace(tree(**{"added.c": ""}), ()) as place:
        (place.home / "build" / "added.o").touch()
    assert sorted(os.listdir(home)) == ["kept", "kept.json"]
    assert os.listdir(home / "kept") == ["same.o"]


def test_a_failed_build_keeps_nothing_and_changes_nothing(tree: Import) -> None:
    def fail(files: dict[str, str]) -> None:
        with workplace(tree(**files), ()) as place:
            (place.home / "build" / "half.o").touch()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail({})
    home = compile_once(tree())
    with pytest.raises(RuntimeError):
        fail({"added.c": ""})
    with workplace(tree(), ()):
        assert os.listdir(home / "build") == ["same.o"]


def test_files_of_a_killed_build_are_deleted(tree: Import) -> None:
    home = compile_once(tree())
    for left in ("source", "build"):
        (home / left).mkdir()
        (home / left / "half").touch()
    with workplace(tree(), ()):
        assert os.listdir(home / "build") == ["same.o"]


def test_other_options_have_other_object_files(tree: Import) -> None:
    assert compile_once(tree(), "-O1") != compile_once(tree(), "-O2")


def test_a_tree_with_many_changes_is_compiled_completely(tree: Import) -> None:
    compile_once(tree())
    compile_once(tree(**{f"{number}.c": "" for number in range(301)}))


def test_a_second_header_of_one_name_causes_a_complete_build(tree: Import) -> None:
    files = {"include/same.h": ""}
    compile_once(tree(**files))
    compile_once(tree(**files, **{"src/same.h": ""}))


def test_new_packages_cause_a_complete_build(tree: Import, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_once(tree())
    status = tmp_path / "status"
    status.touch()
    monkeypatch.setattr(objects, "_PACKAGES", status)
    compile_once(tree(**{"added.c": ""}))
