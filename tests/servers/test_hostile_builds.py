"""Tests of builds whose programs hang, or print nothing that can be used."""

from pathlib import Path

import pytest

from fuzz.errors import CompileError, ServerError
from fuzz.servers import compile as compiling
from fuzz.servers import template as templates
from fuzz.servers.account import server_account
from fuzz.servers.build import Build
from fuzz.servers.flavor import FLAVORS
from fuzz.servers.modules import server_headers

HANGS = "sleep 600"


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


@pytest.mark.parametrize(
    ("commands", "message"),
    [
        (HANGS, "the new server does not run: postgres --version does not end"),
        ("echo 'FATAL: no' >&2; exit 1", "the new server does not run: FATAL: no"),
        ("true", "the new server does not print its version, but 'nothing'"),
        ("echo surprise", "the new server does not print its version, but 'surprise'"),
    ],
    ids=["hangs", "fails", "prints nothing", "prints something else"],
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
