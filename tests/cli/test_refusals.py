"""Tests of the user's mistakes: one line on stderr and exit status 2, before anything is compiled."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fuzz import workdir
from tests.cli.preloaded import PreloadedCommand

COMMANDS = (
    *("fuzz", "sqlsmith", "sqlancer", "isolation", "harness", "coverage", "mutate"),
    *("replay", "show", "blame", "corpus", "list", "build", "shell", "bench", "doctor", "test"),
)


@pytest.fixture
def pgduel(preloaded: PreloadedCommand) -> PreloadedCommand:
    return preloaded


@pytest.mark.parametrize(
    "command",
    [
        (),
        *((each,) for each in COMMANDS),
        ("bench", "all"),
        ("bench", "copy"),
        ("bench", "buckets"),
        ("bench", "planning"),
        ("bench", "sql"),
        ("corpus", "add"),
    ],
    ids=" ".join,
)
def test_every_command_has_help(pgduel: PreloadedCommand, command: tuple[str, ...]) -> None:
    ended = replace(pgduel, anew=len(command) < 2)(*command, "--help")  # a command's file has its subcommands
    assert (ended.status, ended.err) == (0, "")
    assert "Usage: pgduel" in ended.out


def test_the_help_names_every_command(pgduel: PreloadedCommand) -> None:
    out = pgduel("--help").out
    assert all(f" {command} " in out for command in COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fuzz", "--generator", "nonsense"), "no generator is called 'nonsense'; give one of aged_indexes, "),
        (("fuzz", "--generator", "copy_batches", "--generator", "copy_batches"), "a generator is named twice"),
        (("fuzz", "--generator", "/nowhere.py"), "cannot read /nowhere.py (No such file or directory); give --gen"),
        (("fuzz", "--oracle", "crash"), "--oracle crash: give a file NAME.py with your own oracle; pgduel's own need"),
        (("replay", "1/pairs/0", "--generator", "typed"), "--generator typed: give a file NAME.py with your own gen"),
        (
            ("fuzz", "--generator", "user_sql"),
            "cannot take statements from user_sql: give your SQL with --sql",
        ),
        (("fuzz", "--sql", "/nowhere"), "/nowhere does not exist; give --sql a file or a directory of SQL"),
        (("replay", "1/user_sql/0"), "cannot take statements from user_sql"),
        (("fuzz", "--sql", ""), "the value of --sql is empty; give one, or leave the option out"),
        (("fuzz", "--sql="), "the value of --sql is empty; give one, or leave the option out"),
        (("fuzz", "--sql", "/dev/null"), "/dev/null is no ordinary file, but each case reads it; give --sql a file or"),
        (("fuzz", "--sql", sys.executable), "cannot be read ('utf-8' codec can't decode"),
        (("replay", ""), "the argument after replay is empty; give a value, or leave it out"),
        (("fuzz", "--base", "no\nwhere"), r"no source found for 'no\nwhere'"),
        (("fuzz", "--flavor", "tasty"), "no flavor is called 'tasty'; give one of release, assert, sanitize"),
        (("fuzz", "--base", "nowhere"), "no source found for 'nowhere'"),
        (("fuzz", "--range", "a..b"), "--range needs a checkout; give --repo"),
        (("fuzz", "--arm", "a=", "--series", "b"), "by more than one of --arm, --series and --range; give one"),
        (("fuzz", "--repo", "/src"), "--repo is only the checkout of a range; give --range A..B or --arm"),
        (("coverage", "--repo", "/src"), "a range; give --range A..B or --arm NAME=A..B, too"),
        (("fuzz", "--series", ""), "the value of --series is empty; give one, or leave the option out"),
        (("fuzz", "--json", "/nowhere/result.json"), "cannot write /nowhere/result.json; give --json a file in a dir"),
        (("fuzz", "--json", "/tmp"), "cannot write /tmp; give --json a file"),
        (("fuzz", "--manifest", "x.toml"), "--manifest needs patches; give --series, --range or --arm"),
        (("build", "--arm", "a=", "--manifest", "/nowhere.toml"), "/nowhere.toml: cannot be read (No such file"),
        (("harness", "x"), "no harness is called 'x'; give one of blockbloom, "),
        (("harness", "--replay", "x"), "--replay runs one harness; give its name"),
        (("fuzz", "--set", "jit"), "cannot read --set 'jit'; give NAME=VALUE or ARM:NAME=VALUE"),
        (("bench", "copy", "--set", "mine:jit=on"), "no arm is called 'mine'; give one of without, again, with"),
        (("fuzz", "--resume", "7", "--set", "jit=on"), "keeps its options; give only --minutes or --cases"),
        (("fuzz", "--resume", "7"), "there is no campaign yet"),
        (("fuzz", "--resume", "7", "--seed", "3"), "keeps its options; give only --minutes or --cases"),
        (
            ("sqlancer", "--sqlancer-jar", "/nowhere.jar"),
            "SQLancer cannot run: there is no jar /nowhere.jar; PGDUEL_SQLANC",
        ),
        (("replay", "no-such-file.sql"), "no finding is called 'no-such-file.sql'"),
        (("replay", "1/nonsense/0"), "no generator is called 'nonsense'"),
        (("replay", "7/0123456789ab"), "there is no campaign yet"),
        (
            ("corpus", "run", "--corpus", "/nowhere"),
            "/nowhere has no reproducer; give --corpus a directory with fixed/",
        ),
        (("corpus", "minimize", "--corpus", "/tmp"), "/tmp has no reproducer; give --corpus a directory with fixed/"),
        (("show", "0123456789ab"), "no finding is called '0123456789ab'"),
        (("show", "0123456789ab", "--as", "regress"), "regress has several files; give their directory with --into"),
        (("show", "fuzz/execution/tools.sql"), "tools.sql lacks the header of a reproducer"),
        (("mutate", "--generator", "nonsense"), "no generator is called 'nonsense'"),
        (
            ("mutate", "--source", "/dev/null/x"),
            "cannot write below /dev/null/x; give --source a directory that is wri",
        ),
        (("coverage", "--html", "/dev/null"), "cannot write below /dev/null; give --html a directory that is writable"),
        (("bench", "sql", "tests/__init__.py"), "tests/__init__.py has no statement; give a file of SQL in UTF-8"),
        (("bench", "sql", "/nowhere.sql"), "cannot read /nowhere.sql (No such file or directory)"),
        (("bench", "copy", "--arm", "a=patched:99", "--arm", "b="), "patched has no patch '99'; give 0001, 0002, "),
        (("bench", "copy", "--rows", "ten"), "cannot read --rows ten; give whole numbers, separated by commas"),
        (("bench", "buckets", "--size", "9"), "a hash table of 9 kB is out of range; give a size from 70 to 703125"),
        (("bench", "planning", "--partitions", "0"), "each of partitions must be at least 1"),
        (("bench", "planning", "--queries", "/nowhere"), "there is no SELECT in the *.sql files of /nowhere"),
        (("list", "--json", "/nowhere/list.json"), "cannot write /nowhere/list.json"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_options_end_with_one_line(pgduel: PreloadedCommand, arguments: tuple[str, ...], message: str) -> None:
    ended = pgduel(*arguments)
    assert ended.status == 2
    assert ended.err.startswith("pgduel: ")
    assert message in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fuzz", "--nonsense"), "No such option: --nonsense"),
        (("fuzz", "--cases", "some"), "Invalid value for '--cases': "),
        (("fuzz", "--minutes", "inf"), "Invalid value for '--minutes': "),
        (("sqlsmith", "--minutes", "nan"), "Invalid value for '--minutes': "),
        (("harness", "--seed", "4294967296"), "Invalid value for '--seed': "),
        (("show",), "Missing argument 'FINDING'; see pgduel show --help"),
        (("nonsense",), "No such command 'nonsense'; see pgduel --help"),
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_one_line(pgduel: PreloadedCommand, arguments: tuple[str, ...], message: str) -> None:
    ended = pgduel(*arguments)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith("pgduel: ")
    assert message in ended.err
    assert "; see pgduel " in ended.err
    assert ended.err.endswith(" --help\n")
    assert ended.err.count("\n") == 1


def test_without_a_command_the_help_is_printed(pgduel: PreloadedCommand) -> None:
    ended = pgduel()
    assert (ended.status, ended.err) == (2, "")
    assert "Usage: pgduel" in ended.out


def test_lists_have_names(pgduel: PreloadedCommand, tmp_path: Path) -> None:
    generators = pgduel("list", "generators").out
    assert "copy_batches" in generators
    assert "partitioned_joins" in generators
    assert {"qpg", "regress", "sqlancer", "sqlsmith", "user_sql"} <= set(pgduel("list", "sources").out.split())
    assert "result" in pgduel("list", "oracles").out
    assert pgduel("list", "campaigns", "--json", tmp_path / "list.json").out == "none\n"
    assert (tmp_path / "list.json").read_text() == "[]\n"


@pytest.mark.parametrize(
    ("redirection", "message"),
    [
        (">/dev/full", "pgduel: cannot write the output (No space left on device); make room there"),
        ("| true", "pgduel: the program that reads the output has ended; let it read all, or write to a file"),
        (">&-", ""),
    ],
    ids=["full disk", "ended reader", "closed"],
)
def test_output_that_cannot_be_written_is_one_line_and_no_finding(redirection: str, message: str) -> None:
    command = f"set -o pipefail; '{sys.executable}' -m fuzz list {redirection}"
    done = subprocess.run(["bash", "-c", command], cwd=workdir.PROJECT, capture_output=True, text=True)
    assert (done.returncode, done.stderr.strip()) == (2 if message else 0, message)
