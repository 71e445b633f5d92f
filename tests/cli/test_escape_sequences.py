r"""Escape sequences that servers, files and the user's words bring never reach the terminal, and are seen as \x1b."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz import workdir
from tests.cli.command import Command

pytestmark = pytest.mark.timeout(900)

TITLE, CLEAR = "\x1b]0;owned\x07", "\x1b[2J"
SHOWN_TITLE, SHOWN_CLEAR = r"\x1b]0;owned\x07", r"\x1b[2J"
ARMS = ("--arm", "upstream", "--arm", "patched")
# 0 or 1: a setting that only one arm knows.
KNOWS = "(SELECT count(*) FROM pg_settings WHERE name = 'debug_force_hashjoin_bloom')"
SAID = f"chr(27) || ']0;owned' || chr(7) || chr(27) || '[2J' || {KNOWS}"
BLOCK = f"DO $$ BEGIN RAISE {{0}} '%', {SAID}; END $$;\n"
SCRIPTS = {"row": f"SELECT {SAID};\n", "notice": BLOCK.format("NOTICE"), "error": BLOCK.format("EXCEPTION")}
SPEC = f"""\
session s1
step ask {{ SELECT {SAID} AS "a{CLEAR}"; }}
session s2
step other {{ SELECT 1; }}
"""
TERMINALS = {
    "dumb": {"TERM": "dumb", "NO_COLOR": "1"},
    "with colours": {"TERM": "xterm-256color", "COLORTERM": "truecolor"},
}


def on_terminal(pgduel: Command, terminal: str, *arguments: str | Path) -> tuple[int, str]:
    """Run the command in a terminal; return its status and what came there, which holds no foreign sequence."""
    parent, child = pty.openpty()
    own = {"PGDUEL_CAMPAIGNS": str(pgduel.campaigns), "PYTHONPATH": str(workdir.PROJECT), "COLUMNS": "250"}
    with subprocess.Popen(
        [sys.executable, "-m", "fuzz", *map(str, arguments)],
        stdin=child, stdout=child, stderr=child,
        env=os.environ | own | TERMINALS[terminal],
        cwd=workdir.PROJECT,
        start_new_session=True,
    ) as process:  # fmt: skip
        os.close(child)
        said = read(parent)
    assert TITLE not in said
    assert "\x1b]" not in said
    assert CLEAR not in said
    if terminal == "dumb":
        assert "\x1b" not in said
        assert "\x07" not in said
    return process.returncode, said


def read(terminal: int) -> str:
    said = b""
    try:
        while data := os.read(terminal, 1 << 16):
            said += data
    except OSError:  # the other side was closed
        os.close(terminal)
    return said.decode()


@pytest.mark.servers
@pytest.mark.parametrize("terminal", TERMINALS)
@pytest.mark.parametrize("what", SCRIPTS)
def test_what_servers_send_is_shown(pgduel: Command, tmp_path: Path, what: str, terminal: str) -> None:
    (tmp_path / "nasty.sql").write_text(SCRIPTS[what])
    status, said = on_terminal(pgduel, terminal, "replay", tmp_path / "nasty.sql", *ARMS)
    assert status == 1, said
    assert SHOWN_TITLE + SHOWN_CLEAR in said


@pytest.mark.servers
def test_a_finding_is_shown_in_the_terminal_and_kept_exactly(pgduel: Command, tmp_path: Path) -> None:
    nasty = tmp_path / f"nasty{CLEAR}.spec"
    nasty.write_text(SPEC)
    status, said = on_terminal(pgduel, "dumb", "isolation", nasty, *ARMS, "--minutes", "5", "--json", tmp_path / "json")
    assert status == 1, said
    assert SHOWN_CLEAR in said
    _, listed = on_terminal(pgduel, "with colours", "list", "findings")
    assert f"nasty{SHOWN_CLEAR}" in listed
    fingerprint = listed.split()[listed.split().index("isolation") - 1].partition("/")[2]
    status, said = on_terminal(pgduel, "with colours", "show", fingerprint)
    assert (status, SHOWN_TITLE in said) == (0, True)
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
def test_names_in_errors_are_shown(pgduel: Command, arguments: tuple[str, ...], terminal: str) -> None:
    status, said = on_terminal(pgduel, terminal, *arguments)
    assert status == 2
    assert SHOWN_TITLE + SHOWN_CLEAR in said


def test_set_up_shows_names_as_well() -> None:
    parent, child = pty.openpty()
    home = {"PGDUEL_HOME": f"/dev/null/{CLEAR}"}
    with subprocess.Popen(["./pgduel", "list"], stderr=child, env=os.environ | home, cwd=workdir.PROJECT) as process:
        os.close(child)
        said = read(parent)
    assert process.returncode == 2
    assert said.startswith(rf"pgduel: cannot write to /dev/null/{SHOWN_CLEAR}/")


def test_a_traceback_shows_what_it_quotes(pgduel: Command) -> None:
    broken = f"def run(*_, **__): raise ValueError({CLEAR!r})"  # a bug of ours, in the place of the command
    ended = pgduel.run(["-c", f"import fuzz.cli\n{broken}\nfuzz.cli._exit_code = run\nfuzz.cli.main()"])
    assert ended.status == 1
    assert rf"ValueError: {SHOWN_CLEAR}" in ended.err
    assert "\x1b" not in ended.err
