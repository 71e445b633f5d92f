"""Tests of a continuous campaign that follows a branch: a bug comes, is fixed, comes back, and moves to the base."""

from pathlib import Path
from typing import Any

import pytest

from fuzz.servers import git
from fuzz.servers.base import Base
from tests.cli.command import Command, Ended, json_of
from tests.servers import sources
from tests.servers.rights import open_to_all

pytestmark = [pytest.mark.servers, pytest.mark.long, pytest.mark.timeout(3600)]

FILE = "src/backend/utils/adt/oracle_compat.c"  # no other file depends on it
SOUND, BUGGED = "PG_RETURN_INT32((int32) *data);", "PG_RETURN_INT32((int32) *data + 1);"  # ascii()
SQL = """\
CREATE TABLE t (a int, b text);
INSERT INTO t SELECT g, chr(64 + g) FROM generate_series(1, 20) AS g;
SELECT a, ascii(b) FROM t;
"""
MINUTES = ("--minutes", "0.1")


class Checkout:
    """A checkout of the base's tree with the branches `master` and `topic`."""

    def __init__(self, directory: Path, base: Base) -> None:
        self.directory = directory
        git.extract(base.tree, directory)
        self.git("init", "--quiet", "--initial-branch=master")
        sources.commit(directory, "base")
        self.git("checkout", "--quiet", "-b", "topic")

    def git(self, *arguments: str) -> str:
        return sources.git(self.directory, *arguments)

    def change(self, message: str, old: str, new: str) -> str:
        """Commit a replacement in the file, and return the first digits of the commit."""
        file = self.directory / FILE
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))
        sources.commit(self.directory, message)
        return self.git("rev-parse", "HEAD")[:12]

    def merge(self) -> None:
        """Merge a branch, so that `master..topic` is no series."""
        self.git("checkout", "--quiet", "-b", "side", "master")
        (self.directory / "side").touch()
        sources.commit(self.directory, "side")
        self.git("checkout", "--quiet", "topic")
        self.git("merge", "--quiet", "--no-edit", "side")


def test_a_bug_is_followed_over_a_branch(pgduel: Command, base: Base, tmp_path: Path) -> None:
    script = tmp_path / "ascii.sql"
    script.write_text(SQL)
    with open_to_all() as directory:  # builds of it are compiled by the account of servers
        checkout = Checkout(directory, base)
        bringing = checkout.change("bring", SOUND, BUGGED)
        options = ("--repo", directory, "--range", "master..topic", "--sql", script)
        ended = pgduel("campaign", "start", "nightly", "--minutes", "0.5", "--disk", "10", *options)
        assert ended.status == 1, ended.out + ended.err
        assert _bug(pgduel, tmp_path) == ("new", False, [(bringing, "new", False)])

        checkout.change("mend", BUGGED, SOUND)
        mending = checkout.change("explain", SOUND, f"{SOUND}\t/* sound */")
        _run(pgduel, 0)
        revisions = [(bringing, "new", False), (mending, "fixed", False)]
        assert _bug(pgduel, tmp_path) == ("fixed", False, revisions)
        markdown = pgduel("campaign", "report", "nightly", "--as", "markdown").out
        assert "of them fixed" in markdown.splitlines()[0]
        assert " of 10 GB on disk\n" in pgduel("campaign", "status", "nightly").out

        checkout.merge()
        merged = _run(pgduel, 0)
        assert "the present arms cannot be built, so this run has those of campaign 2: " in merged.out
        assert _bug(pgduel, tmp_path) == ("fixed", False, revisions)
        checkout.git("reset", "--quiet", "--hard", mending)

        again = checkout.change("bring again", SOUND, BUGGED)
        _run(pgduel, 1)
        revisions.append((again, "back again", False))
        assert _bug(pgduel, tmp_path) == ("back again", False, revisions)

        checkout.git("checkout", "--quiet", "master")
        checkout.change("bring to the base", SOUND, BUGGED)
        checkout.git("checkout", "--quiet", "-B", "topic")
        rebased = checkout.change("explain", BUGGED, f"{BUGGED}\t/* bugged */")
        _run(pgduel, 0)
        revisions.append((rebased, "still there", True))
        assert _bug(pgduel, tmp_path) == ("still there", True, revisions)


def _run(pgduel: Command, status: int) -> Ended:
    """Run the campaign shortly. Without a new bug, few cases may prove too little."""
    ended = pgduel("campaign", "start", "nightly", *MINUTES)
    assert (ended.status or 2) == (status or 2), ended.out + ended.err
    return ended


def _bug(pgduel: Command, directory: Path) -> tuple[str, bool, list[Any]]:
    """Return the first bug's status, whether the base has it, and its status on each revision."""
    file = directory / "status.json"
    *_, bug = json_of(pgduel("campaign", "status", "nightly", "--json", file), file, 0)["bugs"]
    revisions = [(each["revision"], each["status"], each["in_base"]) for each in bug["revisions"]]
    return bug["status"], bug["in_base"], revisions
