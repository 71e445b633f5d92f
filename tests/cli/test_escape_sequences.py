r"""Tests of escape sequences from servers, files and arguments: the terminal gets them as visible text, \x1b."""

import os
import pty
import subprocess
from pathlib import Path

import pytest

from fuzz import workdir
from tests.cli.preloaded import PreloadedCommand

pytestmark = pytest.mark.timeout(900)

TITLE, CLEAR = "\x1b]0;owned\x07", "\x1b[2J"
SHOWN_TITLE, SHOWN_CLEAR = r"\x1b]0;owned\x07", r"\x1b[2J"
ARMS = ("--arm", "upstream", "--arm", "patched")
# 0 or 1: only one arm has the setting.
HAS_SETTING = "(SELECT count(*) FROM pg_settings WHERE name = 'debug_force_hashjoin_bloom')"
PRINTED = f"chr(27) || ']0;owned' || chr(7) || chr(27) || '[2J' || {HAS_SETTING}"
BLOCK = f"DO $$ BEGIN RAISE {{0}} '%', {PRINTED}; END $$;\n"
SCRIPTS = {"row": f"SELECT {PRINTED};\n", "notice": BLOCK.format("NOTICE"), "error": BLOCK.format("EXCEPTION")}
SPEC = f"""\
session s1
step show {{ SELECT {PRINTED} AS "a{CLEAR}"; }}
session s2
step other {{ SELECT 1; }}
"""
TERMINALS = {
    "dumb": {"TERM": "dumb", "NO_COLOR": "1"},
    "with colours": {"TERM": "xterm-256color", "COLORTERM": "truecolor"},
}


@pytest.fixture
def pgduel(preloaded: PreloadedCommand) -> PreloadedCommand:
    return preloaded


def on_terminal(pgduel: PreloadedCommand, terminal: str, *arguments: str | Path) -> tuple[int, str]:
    """Run the command in a terminal; return its status and output. Require output without foreign sequences."""
    parent, child = pty.openpty()
    process = pgduel.forked(arguments, child, child, COLUMNS="250", **TERMINALS[terminal])
    os.close(child)
    output = read(parent)
    process.join()
    assert TITLE not in output
    assert "\x1b]" not in output
    assert CLEAR not in output
    if terminal == "dumb":
        assert "\x1b" not in output
        assert "\x07" not in output
    assert process.exitcode is not None
    return process.exitcode, output


def read(terminal: int) -> str:
    output = b""
    try:
        while data := os.read(terminal, 1 << 16):
            output += data
    except OSError:  # the child closed the terminal
        os.close(terminal)
    return output.decode()


@pytest.mark.servers
@pytest.mark.parametrize("terminal", TERMINALS)
@pytest.mark.parametrize("what", SCRIPTS)
def test_text_of_servers_is_shown(pgduel: PreloadedCommand, tmp_path: Path, what: str, terminal: str) -> None:
    (tmp_path / "nasty.sql").write_text(SCRIPTS[what])
    status, output = on_terminal(pgduel, terminal, "replay", tmp_path / "nasty.sql", *ARMS)
    assert status == 1, output
    assert SHOWN_TITLE + SHOWN_CLEAR in output


@pytest.mark.servers
def test_a_finding_is_shown_in_the_terminal_and_kept_exactly(pgduel: PreloadedCommand, tmp_path: Path) -> None:
    nasty = tmp_path / f"nasty{CLEAR}.spec"
    nasty.write_text(SPEC)
    status, output = on_terminal(
        pgduel, "dumb", "isolation", nasty, *ARMS, "--minutes", "5", "--json", tmp_path / "json"
    )
    assert status == 1, output
    assert SHOWN_CLEAR in output
    _, listed = on_terminal(pgduel, "with colours", "list", "findings")
    assert f"nasty{SHOWN_CLEAR}" in listed
    fingerprint = listed.split()[listed.split().index("isolation") - 1].partition("/")[2]
    status, output = on_terminal(pgduel, "with colours", "show", fingerprint)
    assert (status, SHOWN_TITLE in output) == (0, True)
    (script,) = pgduel.campaigns.rglob(f"{fingerprint}.spec")
    assert pgduel("show", fingerprint).out == script.read_text()
    head, _, spec = script.read_text().partition("\nsession s1")
    assert "\x1b" not in head
    assert SHOWN_TITLE in head
    assert f"\nsession s1{spec}" in f"\n{SPEC}"


@pytest.mark.parametrize("terminal", TERMINALS)
@pytest.mark.parametrize(
    "arguments",
    [
        ("replay", f"{TITLE}{CLEAR}.sql"),
        ("show", f"{TITLE}{CLEAR}"),
        ("blame", f"{TITLE}{CLEAR}"),
        ("corpus", "run", f"{TITLE}{CLEAR}"),
        ("fuzz", "--generator", f"{TITLE}{CLEAR}"),
        ("fuzz", f"--{TITLE}{CLEAR}"),
        ("show", "x", "--as", f"{TITLE}{CLEAR}"),
        (f"{TITLE}{CLEAR}",),
        ("list", "oracles", "--json", f"/nowhere/{TITLE}{CLEAR}"),
    ],
    ids=lambda value: repr(" ".join(value)),
)
def test_names_in_errors_are_shown(pgduel: PreloadedCommand, arguments: tuple[str, ...], terminal: str) -> None:
    status, output = on_terminal(pgduel, terminal, *arguments)
    assert status == 2
    assert SHOWN_TITLE + SHOWN_CLEAR in output


def test_names_in_messages_of_set_up_are_shown() -> None:
    parent, child = pty.openpty()
    home = {"PGDUEL_HOME": f"/dev/null/{CLEAR}"}
    with subprocess.Popen(["./pgduel", "list"], stderr=child, env=os.environ | home, cwd=workdir.PROJECT) as process:
        os.close(child)
        output = read(parent)
    assert process.returncode == 2
    assert output.startswith(rf"pgduel: cannot write to /dev/null/{SHOWN_CLEAR}/")


def test_text_in_tracebacks_is_shown(pgduel: PreloadedCommand) -> None:
    broken = f"def run(*_, **__): raise ValueError({CLEAR!r})"  # replaces the command with a bug of pgduel
    ended = pgduel.run(["-c", f"import fuzz.cli\n{broken}\nfuzz.cli._exit_code = run\nfuzz.cli.main()"])
    assert ended.status == 1
    assert rf"ValueError: {SHOWN_CLEAR}" in ended.err
    assert "\x1b" not in ended.err
