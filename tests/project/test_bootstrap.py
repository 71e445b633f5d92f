"""Tests of set-up on incomplete machines: errors of one line, exit status 2, and parallel downloads."""

import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fuzz import __version__, bootstrap, environment, packages, workdir
from fuzz.cli import COMMANDS
from fuzz.errors import PgduelError

LAUNCHER = Path(__file__).parents[2] / "pgduel"


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a machine with python3 and dpkg, without pgduel's packages, sudo and root's rights."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("env", "sh"):
        (programs / name).symlink_to(shutil.which(name) or "")
    (programs / "python3").symlink_to(sys.executable)
    (programs / "dpkg-query").write_text("#!/bin/sh\nexit 1\n")
    (programs / "dpkg-query").chmod(0o755)
    return {"PATH": str(programs), "PGDUEL_HOME": str(tmp_path / "home")}


def launch(variables: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, LAUNCHER, *arguments], env=variables, capture_output=True, text=True, timeout=60
    )


def test_without_rights_the_error_has_the_line_for_root(bare: dict[str, str]) -> None:
    done = launch(bare, "fuzz")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "as root, run: apt-get update && apt-get install -y --no-install-recommends " in done.stderr
    assert " meson " in done.stderr
    assert "clang" not in done.stderr


@pytest.mark.parametrize(
    "line",
    [
        "test",
        "harness buckets",
        "coverage --minutes 1",
        "build --flavor=coverage",
        "fuzz --flavor guided",
        "campaign start nightly --engine libfuzzer",
        "bench fuzzers",
    ],
)
def test_some_commands_need_clang(bare: dict[str, str], line: str) -> None:
    done = launch(bare, *line.split())
    assert done.returncode == 2
    assert " clang-19 " in done.stderr


@pytest.mark.parametrize("line", ["campaign start coverage", "fuzz --series test", "bench fuzzers --flavor assert"])
def test_names_do_not_need_clang(bare: dict[str, str], line: str) -> None:
    assert "clang" not in launch(bare, *line.split()).stderr


def test_the_version_needs_no_packages(bare: dict[str, str]) -> None:
    done = launch(bare, "--version")
    assert (done.returncode, done.stdout) == (0, f"pgduel {__version__}\n")


def test_doctor_changes_nothing_and_lists_missing_packages(bare: dict[str, str]) -> None:
    done = launch(bare, "doctor")
    assert done.returncode == 2
    assert "meson: configures PostgreSQL" in done.stdout
    assert "no gcc" in done.stdout
    assert "as root, run: apt-get update" in done.stdout
    assert not list(Path(bare["PGDUEL_HOME"]).rglob("*.log"))


def test_a_read_only_cache_is_refused(bare: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = launch(bare | {"PGDUEL_HOME": str(tmp_path / "file" / "below")}, "doctor")
    assert done.returncode == 2
    assert "set PGDUEL_HOME to a writable directory" in done.stderr


def test_system_packages_python_packages_and_the_source_are_fetched_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the three waits for the other two, so a sequence of them would not end."""
    all_started, installed = threading.Barrier(3, timeout=60), []

    def install(missing: list[packages.Package]) -> None:
        installed.append([package.name for package in missing])
        if not missing[0].first:
            all_started.wait()

    def ensure() -> Path:
        assert installed[:2] == [["update"], ["python3-venv"]]
        all_started.wait()
        return Path("python")

    def fetch(source: str) -> None:
        assert source == "pg18"
        all_started.wait()

    monkeypatch.setattr(packages, "require_installable", lambda _: None)
    monkeypatch.setattr(packages, "update_lists", lambda _: installed.append(["update"]))
    monkeypatch.setattr(packages, "install", install)
    monkeypatch.setattr(bootstrap, "ensure_environment", ensure)
    monkeypatch.setattr(bootstrap, "fetch", fetch)
    named = [package for package in packages.PACKAGES if package.name in ("python3-venv", "gcc")]
    assert bootstrap.set_up(named, ["fuzz", "--base=pg18"]) == Path("python")
    assert installed == [["update"], ["python3-venv"], ["gcc"]]


def test_a_complete_set_up_fetches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "is_complete", lambda _: True)
    monkeypatch.setattr(bootstrap, "ensure_environment", lambda: Path("python"))
    monkeypatch.setattr(bootstrap, "fetch", lambda _: pytest.fail("fetched"))
    assert bootstrap.set_up([], ["fuzz"]) == Path("python")


@pytest.mark.parametrize(
    ("line", "source"),
    [
        ("fuzz", "pg17"),
        ("build --arm master", "pg17"),
        ("fuzz --minutes 1 --base pg18", "pg18"),
        ("fuzz --base=pg18", "pg18"),
        ("fuzz --base ../postgresql", None),
        ("fuzz --base", "pg17"),  # an error of the command
        ("fuzz --repo=../postgresql --range master..topic", None),
        ("fuzz --resume last", None),
        ("list", None),
    ],
)
def test_the_fetched_source_is_that_of_the_command(line: str, source: str | None) -> None:
    assert bootstrap.source_wanted(line.split()) == source


def test_errors_of_fetching_are_left_to_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PGDUEL_HOME", str(tmp_path))
    (tmp_path / "downloads").mkdir()
    (tmp_path / "downloads" / "pg17.json").write_text('{"archive": "damaged.tar.xz"}')
    (tmp_path / "downloads" / "damaged.tar.xz").write_bytes(b"not a tarball")
    bootstrap.fetch("pg17")


def test_a_library_that_needs_the_compiler_is_installed_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    installed: list[str] = []
    tried: list[list[str]] = []

    def ensure() -> Path:
        tried.append(list(installed))
        if len(tried) == 1:
            raise PgduelError("cannot install Python packages: no gcc")
        return Path("python")

    monkeypatch.setattr(packages, "require_installable", lambda _: None)
    monkeypatch.setattr(packages, "update_lists", lambda _: None)
    monkeypatch.setattr(packages, "install", lambda missing: installed.extend(package.name for package in missing))
    monkeypatch.setattr(bootstrap, "ensure_environment", ensure)
    absent = [package for package in packages.PACKAGES if package.name == "gcc"]
    assert bootstrap.set_up(absent, ["list"]) == Path("python")
    assert tried[1] == ["gcc"]


@pytest.mark.parametrize(
    ("line", "extra"),
    [
        ("report", "report"),
        ("report 3 --into .", "report"),
        ("report --as junit --as html", "report"),
        ("report --as=html", "report"),
        ("campaign serve nightly", "report"),
        ("campaign report nightly", "report"),
        ("campaign report nightly --as markdown", None),
        ("campaign status nightly", None),
        ("report --as junit", None),
        ("mutate --mutants 3", "mutate"),
        ("fuzz --dask local", "dask"),
        ("campaign start nightly --dask=tcp://10.0.0.1:8786", "dask"),
        ("campaign worker tcp://10.0.0.1:8786", "dask"),
        ("campaign scheduler", "dask"),
        ("list report", None),
        ("fuzz", None),
    ],
)
def test_few_commands_need_an_extra(line: str, extra: str | None) -> None:
    assert bootstrap.extra_wanted(line.split()) == extra


def test_packages_of_an_extra_are_installed_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    installed: list[list[str]] = []
    monkeypatch.setenv("PGDUEL_HOME", str(tmp_path))
    monkeypatch.setattr(environment, "ensure_environment", lambda: Path("python"))
    monkeypatch.setattr(environment, "_pip_install", lambda _, wanted, __: installed.append(wanted))
    environment.environment_directory().mkdir(parents=True)
    for _ in range(2):
        environment.ensure_extra("report")
    (wanted,) = installed
    assert any(package.startswith("altair") for package in wanted)
    assert wanted[:2] == ["--constraint", str(environment.LOCK)]


def test_environment_depends_on_the_dependencies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PGDUEL_HOME", str(tmp_path))
    before = environment.environment_directory()
    monkeypatch.setattr(environment, "dependencies", lambda: ["other"])
    assert environment.environment_directory() != before


def test_the_help_without_packages_names_every_command() -> None:
    for command in COMMANDS:
        assert re.search(rf"\b{command}\b", bootstrap._HELP), command


@pytest.mark.installs
def test_killed_set_up_is_repeated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PGDUEL_HOME", str(tmp_path))
    monkeypatch.setattr(environment, "dependencies", lambda: ["pip"])  # each set-up downloads it
    half = environment.environment_directory()
    (half / "lib" / "half").mkdir(parents=True)
    python = environment.ensure_environment()
    assert subprocess.run([python, "-c", "import pip"]).returncode == 0
    assert not (half / "lib" / "half").exists()
    made = (half / "complete").stat().st_mtime_ns
    assert environment.ensure_environment() == python
    assert (half / "complete").stat().st_mtime_ns == made  # not created again


@pytest.mark.installs
def test_an_archive_with_another_hash_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PGDUEL_HOME", str(tmp_path))
    others, package, its_hashes = environment.LOCK.read_text().partition("\nunidiff==")
    altered = re.sub(r"sha256:[0-9a-f]+", f"sha256:{'0' * 64}", its_hashes)
    monkeypatch.setattr(environment, "LOCK", tmp_path / "altered.lock")
    environment.LOCK.write_text(others + package + altered)
    monkeypatch.setattr(environment, "dependencies", lambda: ["unidiff>=0.7"])
    with pytest.raises(PgduelError, match="cannot install Python packages"):
        environment.ensure_environment()
    assert "DO NOT MATCH THE HASHES" in (tmp_path / "logs" / "environment.log").read_text()


def test_another_lock_makes_another_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PGDUEL_HOME", str(tmp_path))
    before = environment.environment_directory()
    (tmp_path / "other.lock").write_text("")
    monkeypatch.setattr(environment, "LOCK", tmp_path / "other.lock")
    assert environment.environment_directory() != before


@pytest.mark.installs
def test_failing_set_up_names_its_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PGDUEL_HOME", str(tmp_path))
    monkeypatch.setattr(environment, "dependencies", lambda: ["no-such-thing @ file:///nowhere"])
    with pytest.raises(PgduelError, match=r"cannot install Python packages: .*environment\.log"):
        environment.ensure_environment()
    assert not environment.is_complete(environment.environment_directory())


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"PGDUEL_HOME": "/x/y"}, "/x/y"),
        ({"XDG_CACHE_HOME": "/caches"}, "/caches/pgduel"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/home/dev"}, "/home/dev/.cache/pgduel"),
        ({"HOME": "/home/dev"}, "/home/dev/.cache/pgduel"),
    ],
)
def test_the_directory_of_the_cache(variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGDUEL_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(Path, "mkdir", lambda *_args, **_options: None)
    assert str(workdir.root()) == expected


def test_root_keeps_its_cache_where_servers_may_enter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGDUEL_HOME", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(Path, "mkdir", lambda *_args, **_options: None)
    assert str(workdir.root()) == "/var/cache/pgduel"
