"""Tests of builds that do not end, and of those whose programs hang, or print nothing that can be used."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from fuzz import workdir
from fuzz.errors import CompileError, ServerError
from fuzz.servers import build as builds
from fuzz.servers import compile as compiling
from fuzz.servers import git
from fuzz.servers import template as templates
from fuzz.servers.account import server_account
from fuzz.servers.build import Build
from fuzz.servers.flavor import FLAVORS
from fuzz.servers.modules import server_headers

HANGS = "sleep 600"
MESON = """\
project('postgresql', ['c'], version: '17.99')
custom_target('made.h', output: 'made.h', command: ['sh', '-c', '{script}'], build_by_default: true)
server = executable('postgres', 'main.c')
alias_target('testprep', server)
"""
OPTIONS = """\
option('icu', type: 'feature')
option('readline', type: 'feature')
option('tap_tests', type: 'feature')
option('docs', type: 'feature')
option('cassert', type: 'boolean')
"""


@pytest.fixture
def build(open_directory: Path) -> Build:
    """Return a build without any program."""
    build = Build("0" * 12, open_directory / "install", "0" * 40, FLAVORS["assert"], (), "17.99")
    build.bindir.mkdir(parents=True)
    return build


def program(build: Build, name: str, commands: str) -> Path:
    """Write a shell script as one of the build's programs."""
    path = build.bindir / name
    path.write_text(f"#!/bin/sh\n{commands}\n")
    path.chmod(0o755)
    return path


def test_an_initdb_that_hangs_is_ended(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    program(build, "initdb", HANGS)
    monkeypatch.setattr(templates, "_SECONDS", 0.2)
    with pytest.raises(
        ServerError, match=r"initdb of build 0+ did not end within 0.2 s, so its servers cannot start; "
    ):
        templates.template(build, server_account())


def test_an_initdb_that_prints_without_end_is_ended(build: Build) -> None:
    program(build, "initdb", "yes spam >&2")
    with pytest.raises(ServerError, match=r"initdb of build 0+ failed, so its servers cannot start: its output"):
        templates.template(build, server_account())


@pytest.mark.parametrize(
    ("commands", "message"),
    [
        (HANGS, "the new server does not run: postgres --version does not end"),
        ("echo 'FATAL: no' >&2; exit 1", "the new server does not run: FATAL: no"),
        ("true", "the new server does not print its version, but 'nothing'"),
        ("echo surprise", "the new server does not print its version, but 'surprise'"),
        ("exec yes", "the new server does not run: its output does not end"),
    ],
    ids=["hangs", "fails", "prints nothing", "prints something else", "prints without end"],
)
def test_a_server_without_a_version_does_not_compile(
    build: Build, monkeypatch: pytest.MonkeyPatch, commands: str, message: str
) -> None:
    monkeypatch.setattr(compiling, "_VERSION_SECONDS", 5)
    server = program(build, "postgres", commands)
    with pytest.raises(CompileError, match=message):
        compiling.version_of(server, {"PATH": "/usr/bin:/bin"})


@pytest.mark.parametrize("commands", ["true", "exit 3"])
def test_a_pg_config_without_directories_is_an_error_of_the_source(build: Build, commands: str) -> None:
    program(build, "pg_config", commands)
    with pytest.raises(CompileError, match=r"pg_config of build 0+ does not name its headers"):
        server_headers(build)


@pytest.mark.servers
@pytest.mark.quick
@pytest.mark.parametrize(
    ("first", "script", "message"),
    [
        ('#include "/dev/zero"', "true", "cc1: out of memory"),
        ("", "while :; do :; done", "CPU time limit exceeded"),
        ("", "yes > made.h", "File size limit exceeded"),
        ("", "sleep 9000", "it takes over 9 s"),
        ("", "yes", "terminate called after throwing an instance of 'std::bad_alloc'"),
    ],
    ids=["includes", "loops", "writes", "waits", "prints"],
)
def test_a_build_without_end_is_ended(
    open_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, script: str, message: str
) -> None:
    monkeypatch.setattr(workdir, "builds", lambda: open_directory)
    monkeypatch.setattr(compiling, "_CPU_SECONDS", 1 if script.startswith("while") else 60)
    monkeypatch.setattr(compiling, "_FILE_BYTES", 16 << 20)
    monkeypatch.setattr(compiling, "_STEP_SECONDS", 9 if script.startswith("sleep") else 600)
    (tmp_path / "meson.build").write_text(MESON.format(script=script))
    (tmp_path / "meson_options.txt").write_text(OPTIONS)
    (tmp_path / "main.c").write_text(f"{first}\nint main(void) {{ return 0; }}\n")
    with pytest.raises(CompileError, match=f"^the source does not compile: {message}.*; see .*[.]log$"):
        builds.ensure_build(git.import_directory(tmp_path), replace(FLAVORS["assert"], memory=512 << 20), print)


def test_a_build_that_prints_without_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_OUTPUT", 3 << 20)
    log = tmp_path / "log"
    with pytest.raises(CompileError, match=r"^the source does not compile: its build prints over 3 MB; see /.*/log$"):
        compiling.run_step(["cat", "/dev/zero"], Path("/"), os.environ, log, print)
    assert log.stat().st_size < 4 << 20
