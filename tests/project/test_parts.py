"""Tests of the parts of long tests: each test is in one part, no part exceeds the budget, each commit has a part."""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from fuzz import workdir
from fuzz.cli.test import PARTS, part_of_commit
from fuzz.servers import git
from tests.collected import marked_tests
from tests.conftest import outside_part
from tests.parts import BUDGET, Times, noted_times, parts_of, seconds_with

TIMES = Times({f"{number}": {f"tests/a.py::test[{number}]": 10.0 * number} for number in range(1, 40)})


def all_of(times: Times) -> list[str]:
    return sorted(test for tests in times.long.values() for test in tests)


def test_each_test_is_in_one_part_of_about_equal_time() -> None:
    parts = parts_of(TIMES, 8)
    assert sorted(test for part in parts for test in part) == all_of(TIMES)
    seconds = [seconds_with(part, TIMES) for part in parts]
    assert max(seconds) <= 1.1 * min(seconds)


def test_tests_of_a_group_are_in_one_part() -> None:
    group = {"tests/b.py::one": 400.0, "tests/b.py::other": 1.0}
    (part,) = (part for part in parts_of(Times({**TIMES.long, "sanitized": group}), 8) if "tests/b.py::one" in part)
    assert "tests/b.py::other" in part


def test_tests_without_times_are_in_a_part_too() -> None:
    new = [f"tests/new.py::test[{number}]" for number in range(8)]
    parts = parts_of(TIMES.with_long({test: test for test in new}), 8)
    assert sorted(test for part in parts for test in part if test in new) == new
    assert max(len(part.intersection(new)) for part in parts) <= 2


def test_the_long_tests_have_times_and_no_part_exceeds_the_budget() -> None:
    collected = marked_tests("long")
    times = noted_times()
    remedy = "give each an entry in tests/times.json: ./pgduel test -e long -- --note-times -k NAME, or an estimate"
    assert not collected - set(all_of(times)), remedy
    assert not set(all_of(times)) - collected, "remove the entries of tests that no longer exist from tests/times.json"
    assert max(seconds_with(part, times) for part in parts_of(times, PARTS)) <= BUDGET


@pytest.mark.parametrize("part", ["0/8", "9/8", "3", "a/b", "3/8/1"])
def test_an_invalid_part_is_refused(part: str) -> None:
    with pytest.raises(pytest.UsageError, match="--part takes N/M"):
        outside_part(part, TIMES)


def test_the_tests_of_a_file_share_a_process() -> None:
    files = [
        f"tests/{name}.py"
        for name in ("oracles/test_dqe", "oracles/test_norec", "oracles/test_order", "oracles/test_tlp")
    ]
    command = [sys.executable, "-m", "pytest", "--numprocesses", "2", "--dist", "loadscope", "--verbose", *files]
    done = subprocess.run(command, cwd=workdir.PROJECT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    processes = defaultdict(set)
    for process, file in re.findall(r"^\[(gw\d)\].* (tests/\S+)::", done.stdout, re.MULTILINE):
        processes[file].add(process)
    assert sorted(processes) == files
    assert all(len(names) == 1 for names in processes.values())
    assert len(set.union(*processes.values())) == 2


def commit(directory: Path) -> None:
    who = {f"GIT_{role}_{what}": "a@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    arguments = ["git", "commit", "--quiet", "--allow-empty", "-m", "one more"]
    subprocess.run(arguments, cwd=directory, env=git.environment() | who, check=True)


def test_successive_commits_have_different_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workdir, "PROJECT", tmp_path)
    assert part_of_commit() == (f"1/{PARTS}", "this is no git checkout")
    subprocess.run(["git", "init", "--quiet", tmp_path], env=git.environment(), check=True)
    parts = []
    for _ in range(PARTS):
        commit(tmp_path)
        assert part_of_commit() == part_of_commit()
        parts.append(part_of_commit()[0])
    assert set(parts) == {f"{number}/{PARTS}" for number in range(1, PARTS + 1)}


def test_commits_of_a_shallow_clone_have_parts_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, shallow = tmp_path / "whole", tmp_path / "shallow"
    subprocess.run(["git", "init", "--quiet", whole], env=git.environment(), check=True)
    commit(whole)
    commit(whole)
    clone = ["git", "clone", "--quiet", "--depth", "1", f"file://{whole}", str(shallow)]
    subprocess.run(clone, env=git.environment(), check=True)
    monkeypatch.setattr(workdir, "PROJECT", shallow)
    name = git.run("rev-parse", "HEAD", cwd=shallow).stdout.decode().strip()
    assert part_of_commit() == (f"{int(name, 16) % PARTS + 1}/{PARTS}", f"by commit {name[:12]}")
