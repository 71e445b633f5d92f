"""Tests of output: foreign text is visible, and has no effect on the terminal."""

import io
import os
import pty
import re
import subprocess
import sys
import tomllib
import traceback
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.columns import Columns
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from fuzz import output, workdir
from fuzz.cli.app import write_json
from fuzz.output import visible, visible_line
from fuzz.report.console import Console, plain

TITLE, CLEAR, RED = "\x1b]0;owned\x07", "\x1b[2J", "\x1b[31m"
BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
NASTY = f"a{TITLE}b{CLEAR}\r\x00\x7f\x9b\u2028{BIDI}z"
SHOWN = (
    r"a\x1b]0;owned\x07b\x1b[2J\x0d\x00\x7f\x9b\u2028"
    r"\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069z"
)
texts = st.text(st.characters() | st.sampled_from(NASTY))


def is_harmless(text: str) -> bool:
    kinds = {unicodedata.category(char) for char in text if char not in "\n\t"}
    return not kinds & {"Cc", "Zl", "Zp", "Cs"} and not set(BIDI) & set(text)


@given(texts)
def test_no_control_character_is_left(text: str) -> None:
    assert is_harmless(visible(text))
    assert "\n" not in visible_line(text)
    assert "\t" not in visible_line(text)
    visible(text).encode()


@given(texts)
def test_harmless_text_is_unchanged(text: str) -> None:
    assert visible(visible(text)) == visible(text)
    harmless = "".join(char for char in text if is_harmless(char))
    assert visible(harmless) == harmless


@given(texts, texts)
def test_text_may_be_converted_in_pieces(one: str, other: str) -> None:
    assert visible(one + other) == visible(one) + visible(other)


def test_each_control_character_is_replaced_by_its_code() -> None:
    assert visible(NASTY) == SHOWN
    assert visible("one\ttwo\nthree") == "one\ttwo\nthree"
    assert visible_line("one\ttwo\nthree") == r"one\x09two\x0athree"
    assert visible(os.fsdecode(b"caf\xe9\x9b")) == r"caf\xe9\x9b"  # a file name in another encoding
    assert visible("Käse 日本語 🐘 זה") == "Käse 日本語 🐘 זה"


@pytest.fixture(params=[None, "standard"], ids=["no colours", "colours"])
def console(request: pytest.FixtureRequest) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=400, height=20, color_system=request.param)


def printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def table(title: Any, column: str, cell: Any) -> Table:
    table = Table(column, title=title)
    table.add_row(cell)
    return table


LAID_OUT = {
    "a string": NASTY,
    "text": plain(NASTY, "bold"),
    "a table": table(NASTY, NASTY, NASTY),
    "a styled cell": table("", "", plain(NASTY, "red")),
    "a panel": Panel(NASTY),
    "columns": Columns([NASTY, plain(NASTY)]),
}


@pytest.mark.parametrize("thing", LAID_OUT.values(), ids=LAID_OUT)
def test_all_kinds_of_layout_are_visible(thing: Any, console: Console) -> None:
    console.print(thing)
    assert SHOWN in printed(console)
    without_styles = re.sub(r"\x1b\[[0-9;]*m", "", printed(console))
    assert is_harmless(without_styles)


def test_the_width_of_a_table_is_that_of_the_visible_text(console: Console) -> None:
    console.print(table("", NASTY, "x"))
    assert len({len(line) for line in re.sub(r"\x1b\[[0-9;]*m", "", printed(console)).splitlines()[1:]}) == 1


def test_lines_and_rules_are_visible(console: Console) -> None:
    console.say(NASTY, "bold")
    console.rule(NASTY)
    assert printed(console).count(SHOWN) == 2


def test_text_objects_of_rich_bring_no_control_characters(console: Console) -> None:
    console.print(Text(NASTY), Text.from_ansi(NASTY), Panel("x", title=CLEAR))
    assert TITLE not in printed(console)
    assert CLEAR not in printed(console)
    assert r"\x1b[2J" in printed(console)


def test_neither_markup_nor_emoji_codes_are_interpreted(console: Console) -> None:
    markup = "int[] [bold]x[/] [link=file:///etc]y[/link] :bug: [/nothing]"
    console.print(markup)
    console.print(table(markup, markup, markup))
    assert printed(console).count(markup) == 4


def test_live_displays_are_visible(console: Console) -> None:
    with Live(console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live:
        live.update(Panel(NASTY), refresh=True)
        console.say(CLEAR)
        live.update(table("", "", NASTY), refresh=True)
    assert "\x1b[1A" in printed(console)  # Rich moves the cursor
    assert TITLE not in printed(console)
    assert CLEAR not in printed(console)
    assert SHOWN in printed(console)


@contextmanager
def guarded() -> Iterator[tuple[io.StringIO, io.StringIO]]:
    """Yield the streams below the guards of stdout and stderr."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        output.guard()
        yield out, err


def test_streams_are_guarded() -> None:
    with guarded() as (out, err):
        sys.stdout.writelines([NASTY, "\n"])
        try:
            raise ValueError(CLEAR)
        except ValueError:
            traceback.print_exc()
    assert out.getvalue() == f"{SHOWN}\n"
    assert r"ValueError: \x1b[2J" in err.getvalue()


def test_lines_of_set_up_are_visible() -> None:
    with guarded() as (out, err):
        output.tell(NASTY)
        output.note(NASTY)
    assert (out.getvalue(), err.getvalue()) == (f"{SHOWN}\n", f"pgduel: {SHOWN}\n")


def test_a_message_with_the_name_of_a_file_is_one_line() -> None:
    with guarded() as (_, err):
        output.note("cannot read a\nb\tc")
    assert err.getvalue() == "pgduel: cannot read a\\x0ab\\x09c\n"


def test_richs_own_sequences_pass_guards() -> None:
    with guarded() as (out, _):
        output.guard()  # a second guard, as over Rich's own redirection
        Console(force_terminal=True, color_system="standard").print(plain(CLEAR, "red"))
    assert out.getvalue() == RED + r"\x1b[2J" + "\x1b[0m\n"


def test_json_has_no_control_character(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {NASTY: NASTY})
    written = (tmp_path / "x.json").read_text()
    assert is_harmless(written)
    assert written.isascii()


def of_python(code: str, *, terminal: bool) -> bytes:
    """Return the output of a program to a terminal or a pipe."""
    command = [sys.executable, "-c", f"import sys; from fuzz.output import *; guard(); {code}"]
    if not terminal:
        return subprocess.run(command, cwd=workdir.PROJECT, capture_output=True, check=True).stdout
    parent, child = pty.openpty()
    with subprocess.Popen(command, cwd=workdir.PROJECT, stdout=child) as process:
        os.close(child)
        printed = b""
        try:
            while data := os.read(parent, 1 << 16):
                printed += data
        except OSError:  # the child closed the terminal
            os.close(parent)
    assert process.returncode == 0
    return printed


def test_a_file_is_exact_in_a_pipe_and_visible_in_a_terminal() -> None:
    write = f"write_exactly({NASTY!r} + chr(10) + 'Käse')"
    assert of_python(write, terminal=False) == f"{NASTY}\nKäse".encode()
    assert of_python(write, terminal=True) == f"{SHOWN}\r\nKäse".encode()


def test_output_of_programs_is_exact_in_a_pipe_and_visible_in_a_terminal() -> None:
    program = r"import os; os.write(1, b'K\xc3'); os.write(2, b'\xa4se\x1b[2J\xff\n')"
    run = f"run_visibly([sys.executable, '-c', {program!r}], stderr=1)"
    assert of_python(run, terminal=False) == b"K\xc3\xa4se\x1b[2J\xff\n"
    assert of_python(run.replace(", stderr=1", ""), terminal=True) == "Käse\\x1b[2J\\xff\r\n".encode()


def test_nothing_else_prints() -> None:
    """Lint refuses other functions that print (T20 and the banned names) in all but two files."""
    with (workdir.PROJECT / "pyproject.toml").open("rb") as file:
        lint = tomllib.load(file)["tool"]["ruff"]["lint"]
    assert {"T20", "TID"} <= set(lint["select"])
    banned = {"click", "logging", "rich.console.Console", "rich.print", "rich.text.Text", "sys.stderr", "sys.stdout"}
    assert banned | {"typer.echo", "typer.secho"} <= set(lint["flake8-tidy-imports"]["banned-api"])
    excepted = {path for path, rules in lint["per-file-ignores"].items() if {"T201", "T20", "TID251"} & set(rules)}
    assert excepted == {"fuzz/output.py", "fuzz/report/console.py", "tests/**"}
    sources = [path for part in ("fuzz", "oracles") for path in (workdir.PROJECT / part).rglob("*.py")]
    assert len(sources) > 100
    silenced = re.compile(r"noqa(?!:)|noqa:[^#]*(T20|TID)")
    assert [path for path in (*sources, workdir.PROJECT / "pgduel") if silenced.search(path.read_text())] == []
