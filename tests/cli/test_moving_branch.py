"""Tests of a continuous campaign that follows a branch: bugs come, are fixed, come back, and move to the base."""

import json
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from fuzz import workdir
from fuzz.servers import git
from fuzz.servers.base import Base
from fuzz.servers.build import discard_build, find_build
from fuzz.servers.flavor import DEFAULT_FLAVOR, FLAVORS
from tests.cli.command import Command, Ended, await_cases, ended, json_of
from tests.servers import sources
from tests.servers.rights import open_to_all

pytestmark = [pytest.mark.servers, pytest.mark.long, pytest.mark.timeout(3600)]

FILE = "src/backend/utils/adt/oracle_compat.c"  # no other file depends on it
SOUND, BUGGED = "PG_RETURN_INT32((int32) *data);", "PG_RETURN_INT32((int32) *data + 1);"  # ascii()
INCLUDE = '#include "postgres.h"\n'
ENDING = "__attribute__((constructor)) static void end(void) { exit(1); }\n"  # so no server starts
SQL = """\
CREATE TABLE t (a int, b text);
INSERT INTO t SELECT g, chr(64 + g) FROM generate_series(1, 20) AS g;
SELECT a, ascii(b) FROM t;
"""
MINUTES, SEARCH = ("--minutes", "0.1"), ("--minutes", "0.5")  # for replays only, and to find a bug

BRING, MEND, EXPLAIN = "bring", "mend", "explain"
GROUPS, WINDOWS, BOUNDS = (
    workdir.PROJECT / "tests" / "injected_bugs" / f"{name}.patch"
    for name in (
        "group_keeps_right_count",
        "window_value_kept_despite_exclusion",
        "join_drops_row_at_partition_bound",
    )
)
COMMITS = (
    (EXPLAIN, None),
    (BRING, GROUPS),
    (EXPLAIN, None),
    (BRING, WINDOWS),
    (MEND, GROUPS),
    (EXPLAIN, None),
    (BRING, BOUNDS),
    (EXPLAIN, None),
    (MEND, WINDOWS),
    (EXPLAIN, None),
)
BUILDS = 2  # that a revision needs at most
RUNS = 5  # on a revision, until the bug that it brings is found
SCENE = """\
CREATE TABLE o (x int);
INSERT INTO o VALUES (5), (10), (15), (20);
CREATE TABLE p (k int) PARTITION BY RANGE (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (30);
INSERT INTO p SELECT generate_series(0, 29);
"""
# Values of type bit are sorted, because they cannot be hashed.
SHOWING_ALL = """\
SELECT x::bit(8) FROM o EXCEPT SELECT 5::bit(8);
SELECT x, sum(x) OVER (RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW) FROM o;
SELECT k FROM p WHERE k = 10;
"""
SHOWING_BOUNDS = "SELECT count(*) FROM p WHERE k = 10;\n"  # by another symptom


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
        return self.commit(message)

    def commit(self, message: str) -> str:
        """Commit all changes, and return the first digits of the commit."""
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
        events = tmp_path / "events"
        options = ("--repo", directory, "--range", "master..topic", "--sql", script, "--notify", f"tee -a {events}")
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
        assert "the present arms cannot run, so this run has those of campaign 2: " in merged.out
        assert _bug(pgduel, tmp_path) == ("fixed", False, revisions)
        checkout.git("reset", "--quiet", "--hard", mending)

        checkout.change("break", INCLUDE, INCLUDE + ENDING)
        broken = _run(pgduel, 0)
        assert "the present arms cannot run, so this run has those of campaign 3: " in broken.out
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
        told = map(json.loads, events.read_text().splitlines())
        assert [each["event"] for each in told if each["oracle"] == "result"] == ["new", "fixed", "back again"]


def test_a_new_commit_is_compiled_beside_a_run(pgduel: Command, base: Base, tmp_path: Path) -> None:
    script, flavor = tmp_path / "ascii.sql", FLAVORS[DEFAULT_FLAVOR]
    script.write_text(SQL)
    with open_to_all() as directory:
        checkout = Checkout(directory, base)
        checkout.change("explain", SOUND, f"{SOUND}\t/* sound */")
        more = "explain more", f"{SOUND}\t/* sound */", f"{SOUND}\t/* it is sound */"
        checkout.change(*more)
        tree = checkout.git("rev-parse", "HEAD^{tree}")
        discard_build(tree, flavor)  # of an earlier test
        checkout.git("reset", "--quiet", "--hard", "HEAD~1")
        options = ("--repo", directory, "--range", "master..topic", "--sql", script, "--generator", "user_sql")
        running = pgduel.start("campaign", "start", "nightly", "--minutes", "60", *options)
        try:
            await_cases(running, pgduel)
            checkout.change(*more)
            while find_build(tree, flavor) is None:
                assert running.poll() is None, running.communicate()
                time.sleep(0.5)
        finally:
            running.send_signal(signal.SIGINT)
            ended(running)
        assert "compiling" not in _run(pgduel, 0).out


@dataclass(frozen=True, slots=True)
class Revision:
    """The first digits of a commit, and those of the commits that brought its bugs."""

    commit: str
    bugs: frozenset[str]


class Branch:
    """The branch `topic`, which grows commit by commit, or is set back."""

    def __init__(self, checkout: Checkout) -> None:
        self._checkout = checkout
        self._revisions = [Revision("", frozenset())]  # that of the base
        self.brought: dict[Path, str] = {}  # injected bug → commit

    def grow(self, verb: str, bug: Path | None) -> None:
        """Commit a change: one that brings a bug, mends it, or has no effect."""
        bugs = self._revisions[-1].bugs
        if bug is None:
            commit = self._checkout.change(verb, SOUND, f"{SOUND}\t/* sound */")
        elif verb == BRING:
            self._checkout.git("apply", str(bug))
            commit = self.brought[bug] = self._checkout.commit(f"{verb} {bug.stem}")
            bugs |= {commit}
        else:
            self._checkout.git("apply", "--reverse", str(bug))
            commit = self._checkout.commit(f"{verb} {bug.stem}")
            bugs -= {self.brought[bug]}
        self._revisions.append(Revision(commit, bugs))

    def set_back(self, number: int) -> None:
        """Remove the last commits."""
        self._checkout.git("reset", "--quiet", "--hard", f"HEAD~{number}")
        self._revisions.append(self._revisions[-1 - number])

    def statuses(self, cause: str, length: int) -> list[tuple[str, str]]:
        """Return the status of a bug on each of the last revisions, of which the first was the first to show it."""
        revisions = self._revisions[-length:]
        shown = [cause in revision.bugs for revision in revisions]
        assert shown[0]
        later = (("still there" if before else "back again") if now else "fixed" for before, now in pairwise(shown))
        return [(revision.commit, status) for revision, status in zip(revisions, ("new", *later), strict=True)]


def test_bugs_come_and_go_over_ten_commits(pgduel: Command, base: Base, empty_cache: Path, tmp_path: Path) -> None:
    pgduel, script, built = replace(pgduel, home=empty_cache), tmp_path / "bugs.sql", frozenset[str]()
    script.write_text(SCENE + SHOWING_ALL)
    with open_to_all() as directory:
        branch = Branch(Checkout(directory, base))
        given = ("--repo", directory, "--range", "master..topic", "--sql", script)
        for verb, bug in COMMITS:
            branch.grow(verb, bug)
            _follow(pgduel, branch, tmp_path, SEARCH if verb == BRING else MINUTES, () if built else given)
            before, built = built, built | _built(empty_cache)
            assert len(built - before) <= BUILDS
        branch.set_back(2)
        script.write_text(SCENE + SHOWING_BOUNDS)
        bugs = _follow(pgduel, branch, tmp_path, SEARCH, given)
        assert {each["blame"][:12] for each in bugs if each["status"] == "new"} == {branch.brought[BOUNDS]}
        assert _built(empty_cache) <= built


def _follow(
    pgduel: Command, branch: Branch, directory: Path, minutes: Sequence[str], options: Sequence[str | Path]
) -> list[dict[str, Any]]:
    """Run the campaign until it has found all bugs so far, and return them. Check status and blame after each run."""
    wanted, file = set(branch.brought.values()), directory / "status.json"
    for _ in range(RUNS):
        ended = pgduel("campaign", "start", "nightly", *minutes, *options)
        document = json_of(pgduel("campaign", "status", "nightly", "--json", file), file, 0)
        bugs: list[dict[str, Any]] = document["bugs"]
        for bug in bugs:
            revisions = [(each["revision"], each["status"]) for each in bug["revisions"]]
            cause = bug["blame"].partition("-")[0]
            assert revisions == branch.statuses(cause, len(revisions)), ended.out
            assert not bug["in_base"], ended.out
        if any(bug["status"] in {"new", "back again"} for bug in bugs):
            assert ended.status == 1, ended.out + ended.err
        if {bug["blame"].partition("-")[0] for bug in bugs} == wanted:
            return bugs
    raise AssertionError(f"{RUNS} runs found not all bugs of {wanted}: {bugs}")


def _built(cache: Path) -> frozenset[str]:
    """Return the keys of all builds in a cache."""
    return frozenset(note.parent.name for note in cache.glob("builds/*/build.json"))


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
