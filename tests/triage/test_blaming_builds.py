"""Tests of blame from end to end: bisection of a checkout's commits, which it compiles when it tries them."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from fuzz.servers import git
from fuzz.servers.base import Base
from tests.cli.command import Command, json_of

pytestmark = [pytest.mark.servers, pytest.mark.long, pytest.mark.timeout(7200)]

FILE = "src/backend/utils/adt/oracle_compat.c"  # no other file depends on it
SOUND, BUGGED = "PG_RETURN_INT32((int32) *data);", "PG_RETURN_INT32((int32) *data + 1);"  # ascii()
COMMITS, WITH_BUG = 24, 17
SQL = """\
CREATE TABLE t (a int, b text);
INSERT INTO t SELECT g, chr(64 + g) FROM generate_series(1, 20) AS g;
SELECT a, ascii(b) FROM t;
"""


class Checkout:
    """A checkout of the base's tree, with branches."""

    def __init__(self, directory: Path, base: Base) -> None:
        self.directory = directory
        git.extract(base.tree, directory)
        self._git("init", "--quiet", "--initial-branch", "base")
        self._git("config", "gc.auto", "0")
        self._git("config", "user.name", "Somebody")
        self._git("config", "user.email", "somebody@example.org")
        self._git("add", "--all", "--force")
        self._git("commit", "--quiet", "--message", "base")

    def _git(self, *arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=self.directory, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def branch(self, name: str, bugged: Sequence[bool]) -> list[str]:
        """Create a branch with one commit per flag, with or without the bug; return the names of its patches."""
        self._git("checkout", "--quiet", "-b", name, "base")
        file = self.directory / FILE
        text = file.read_text()
        made = []
        for number, with_bug in enumerate(bugged, 1):
            changed = text.replace(SOUND, BUGGED) if with_bug else text
            file.write_text(f"{changed}\n/* commit {number} of {name} */\n")
            self._git("commit", "--quiet", "--all", "--message", f"commit {number}")
            made.append(f"{self._git('rev-parse', 'HEAD')[:12]}-commit-{number}")
        return made


@pytest.fixture(scope="module")
def checkout(base: Base, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    return Checkout(tmp_path_factory.mktemp("checkout"), base)


def blamed(empty_cache: Path, checkout: Checkout, branch: str, directory: Path) -> dict[str, object]:
    """Find the bug of a branch by a campaign, and return the output of blame."""
    pgduel = Command(directory / "campaigns", empty_cache)
    sql, file = directory / "application.sql", directory / "summary.json"
    sql.write_text(SQL)
    given = ("--repo", checkout.directory, "--range", f"base..{branch}", "--sql", sql, "--stop-at-first")
    found = json_of(pgduel("fuzz", *given, "--cases", "50", "--json", file), file, 1)["findings"][0]
    assert found["blame"]["tried"] == [[0, False], [len(found["blame"]["series"]), True]]  # no other prefix was built
    blame: dict[str, object] = json_of(pgduel("blame", f"1/{found['fingerprint']}", "--json", file), file, 0)
    return blame


def test_a_range_of_many_commits_is_bisected(empty_cache: Path, checkout: Checkout, tmp_path: Path) -> None:
    commits = checkout.branch("straight", [number >= WITH_BUG for number in range(1, COMMITS + 1)])
    found = blamed(empty_cache, checkout, "straight", tmp_path)
    assert found["patches"] == [commits[WITH_BUG - 1]]
    assert found["says"] == f"{commits[WITH_BUG - 1]}, number {WITH_BUG} of the {COMMITS} patches of patched"
    tried = found["tried"]
    assert isinstance(tried, list)
    assert len(tried) <= 2 + COMMITS.bit_length()


def test_a_bug_that_was_fixed_in_between_is_blamed_on_the_patch_that_reintroduces_it(
    empty_cache: Path, checkout: Checkout, tmp_path: Path
) -> None:
    commits = checkout.branch("fixed-and-broken", [True, False, True, True])
    found = blamed(empty_cache, checkout, "fixed-and-broken", tmp_path)
    assert found["patches"] == [commits[2]]
    assert found["tried"] == [[0, False], [1, True], [2, False], [3, True], [4, True]]
    assert "but it also occurs with only the first 1" in str(found["says"])
