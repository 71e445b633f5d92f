"""Tests of the compiler of changed files: errors, and equal and other machine code, with a build's own commands."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from fuzz.errors import BuildError
from fuzz.servers.account import server_account
from fuzz.servers.trial_compiler import Trial, TrialCompiler

SUM = """\
#include "sum.h"
int
sum(int a, int b)
{
	return a + b + NOTHING;
}
"""
HEADER = "#define NOTHING 0\nint sum(int a, int b);\n"
COMMAND = "cc -O2 -g -MD -MQ {0} -MF {0}.d -o {0} -c ../source/src/sum.c"
NINJA = f"""\
rule cc
  command = {COMMAND.format("$out")}
  deps = gcc
  depfile = $out.d
build sum.o: cc ../source/src/sum.c
"""

pytestmark = pytest.mark.skipif(not shutil.which("ninja") or not shutil.which("cc"), reason="needs a compiler, ninja")


@pytest.fixture
def compiler(open_directory: Path) -> TrialCompiler:
    """Return the compiler of a build of one file that includes one header."""
    source, build = open_directory / "source" / "src", open_directory / "build"
    source.mkdir(parents=True)
    (source / "sum.c").write_text(SUM)
    (source / "sum.h").write_text(HEADER)
    (source / "unused.h").write_text("")
    build.mkdir()
    (build / "build.ninja").write_text(NINJA)
    command = {"command": f"ccache {COMMAND.format('sum.o')}", "file": "../source/src/sum.c", "output": "sum.o"}
    (build / "compile_commands.json").write_text(json.dumps([command]))
    account = server_account()
    account.give(build)
    subprocess.run(["ninja", "-C", build], check=True, capture_output=True, **account.options())
    return TrialCompiler(open_directory)


@pytest.mark.parametrize(
    ("before", "after", "trial"),
    [
        ("+ NOTHING", "- NOTHING", Trial(equal=True)),
        ("a + b", "a - b", Trial()),
        ("a + b", "a + missing", Trial("../source/src/sum.c:5:")),
        ("a + b", "missing(a)", Trial("../source/src/sum.c:5:")),
        ("int b)", "int *b)", Trial("../source/src/sum.c:3:")),
        ("return a", "return &a", Trial("../source/src/sum.c:5:")),
    ],
)
def test_a_changed_file(compiler: TrialCompiler, before: str, after: str, trial: Trial) -> None:
    found = compiler.trial("src/sum.c", SUM.replace(before, after))
    assert (bool(found.error), found.equal) == (bool(trial.error), trial.equal)
    assert found.error.startswith(trial.error)


def test_a_file_is_unchanged_after_a_trial(compiler: TrialCompiler) -> None:
    assert compiler.trial("src/sum.c", "an error").error
    assert compiler.trial("src/sum.c", SUM) == Trial(equal=True)


def test_a_header_is_compiled_with_a_file_that_includes_it(compiler: TrialCompiler) -> None:
    assert compiler.trial("src/sum.h", HEADER.replace("sum(int a, ", "sum(")).error
    assert compiler.trial("src/sum.h", HEADER) == Trial()
    assert compiler.trial("src/unused.h", "an error") == Trial()


def test_a_directory_without_commands_is_named(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=f"cannot read the compiler's commands in {tmp_path}"):
        TrialCompiler(tmp_path)
