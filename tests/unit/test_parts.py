"""Which of the long tests a run takes: each is in one part, and a commit has a part of its own."""

import subprocess
from pathlib import Path
from typing import Any, cast

import pytest

from fuzz import workdir
from fuzz.cli.test import part_of_commit
from fuzz.servers import git
from tests.conftest import outside_part


class Named:
    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid


TESTS = cast(Any, [Named(f"tests/{file}.py::test[{number}]") for file in "ab" for number in range(10)])


def test_each_test_is_in_one_part_of_about_equal_size() -> None:
    parts = [set(TESTS) - set(outside_part(f"{number}/8", TESTS)) for number in range(1, 9)]
    assert set.union(*parts) == set(TESTS)
    assert sum(map(len, parts)) == len(TESTS)
    assert {len(part) for part in parts} == {2, 4}


def test_the_order_of_collection_does_not_matter() -> None:
    assert set(outside_part("3/8", TESTS)) == set(outside_part("3/8", TESTS[::-1]))


@pytest.mark.parametrize("part", ["0/8", "9/8", "3", "a/b", "3/8/1"])
def test_a_part_that_makes_no_sense_is_refused(part: str) -> None:
    with pytest.raises(pytest.UsageError, match="--part takes N/M"):
        outside_part(part, TESTS)


def commit(directory: Path) -> None:
    who = {f"GIT_{role}_{what}": "a@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    arguments = ["git", "commit", "--quiet", "--allow-empty", "-m", "one more"]
    subprocess.run(arguments, cwd=directory, env=git.environment() | who, check=True)


def test_successive_commits_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workdir, "CHECKOUT", tmp_path)
    assert part_of_commit() == ("1/8", "this is no git checkout")
    subprocess.run(["git", "init", "--quiet", tmp_path], env=git.environment(), check=True)
    parts = []
    for _ in range(8):
        commit(tmp_path)
        assert part_of_commit() == part_of_commit()
        parts.append(part_of_commit()[0])
    assert set(parts) == {f"{number}/8" for number in range(1, 9)}


def test_commits_of_a_shallow_clone_have_parts_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, shallow = tmp_path / "whole", tmp_path / "shallow"
    subprocess.run(["git", "init", "--quiet", whole], env=git.environment(), check=True)
    commit(whole)
    commit(whole)
    clone = ["git", "clone", "--quiet", "--depth", "1", f"file://{whole}", str(shallow)]
    subprocess.run(clone, env=git.environment(), check=True)
    monkeypatch.setattr(workdir, "CHECKOUT", shallow)
    name = git.run("rev-parse", "HEAD", cwd=shallow).stdout.decode().strip()
    assert part_of_commit() == (f"{int(name, 16) % 8 + 1}/8", f"by commit {name[:12]}")
