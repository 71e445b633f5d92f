"""Tests of builds: the cache, incremental builds, kills, and errors."""

import dataclasses
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from fuzz import workdir
from fuzz.errors import BuildError
from fuzz.servers import compile as compiling
from fuzz.servers.arm import shipped_series
from fuzz.servers.base import Base
from fuzz.servers.build import Build, ensure_build, list_builds, prune_builds
from fuzz.servers.cluster import Cluster
from fuzz.servers.flavor import FLAVORS
from fuzz.servers.modules import ensure_module
from fuzz.servers.series import Patch, Series, apply_series
from tests.servers.disk import of_limited_size

pytestmark = pytest.mark.servers

ASSERT = FLAVORS["assert"]
CHANGED_FILE = "src/backend/utils/resowner/resowner.c"
EARLY_FILE = "src/port/noblock.c"


def prefixed(base: Base, file: str, line: str) -> str:
    """Return the base's tree with an additional first line in a file."""
    first = b"/*-------------------------------------------------------------------------\n *\n"
    patch = f"--- a/{file}\n+++ b/{file}\n@@ -1,2 +1,3 @@\n+{line}\n ".encode() + first.replace(b"\n *", b"\n  *")
    return apply_series(base.tree, Series("test", (Patch("test.patch", patch),)))[-1]


@pytest.fixture
def elsewhere(open_directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty cache of builds. Trees and the compiler's cache are those of the machine."""
    monkeypatch.setattr(workdir, "builds", lambda: open_directory)
    return open_directory


@pytest.fixture
def small_disk(open_directory: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Path]:
    with of_limited_size(open_directory / "small", request.param) as disk:
        disk.chmod(0o755)
        monkeypatch.setattr(workdir, "builds", lambda: disk)
        yield disk


def test_a_build_is_made_once(base: Base, build: Build) -> None:
    reports: list[str] = []
    assert ensure_build(base.tree, ASSERT, reports.append) == build
    assert reports == []
    assert build in list_builds()
    assert build.version == base.version


def compiled(build: Build) -> int:
    """Return the number of object files that a build compiled or took from the compiler's cache."""
    note = json.loads((build.prefix.parent / "build.json").read_text())
    return int(note["cached"]) + int(note["compiled"])


def contents(build: Build) -> dict[str, str]:
    """Return the content of each installed file: the digest of its bytes, or the target of a link."""
    return {
        str(path.relative_to(build.prefix)): str(path.readlink())
        if path.is_symlink()
        else hashlib.sha256(path.read_bytes()).hexdigest()
        for path in build.prefix.rglob("*")
        if not path.is_dir()
    }


def kill_while_it_compiles(tree: str, cache: Path) -> None:
    killed = os.fork()
    if killed == 0:
        try:
            ensure_build(tree, ASSERT, print)
        finally:
            os._exit(1)  # otherwise this process would continue as a second pytest
    while not list(cache.glob("*/build/build.ninja")):
        assert os.waitpid(killed, os.WNOHANG) == (0, 0), "the build ended before it was killed"
        time.sleep(0.1)
    os.kill(killed, signal.SIGKILL)
    os.waitpid(killed, 0)


@pytest.mark.long
def test_the_second_arm_compiles_changed_files_only_and_a_killed_build_is_harmless(
    base: Base, build: Build, elsewhere: Path
) -> None:
    """The fixture `build` fills the compiler's cache."""
    another = prefixed(base, CHANGED_FILE, "/* another arm */")
    patched = apply_series(base.tree, shipped_series("patched", base))[-1]
    kill_while_it_compiles(base.tree, elsewhere)
    assert list_builds() == ()
    first = ensure_build(base.tree, ASSERT, print)
    assert compiled(first) > 1000
    kill_while_it_compiles(another, elsewhere)
    assert list_builds() == (first,)
    second = ensure_build(another, ASSERT, print, label="another: x.patch")
    assert compiled(second) == 1
    assert [each.label for each in list_builds()] == ["", "another: x.patch"]
    third = ensure_build(patched, ASSERT, print)
    assert compiled(third) < 0.5 * compiled(first)
    incremental = contents(third)
    assert {pruned.key for pruned in prune_builds()} == {first.key, second.key, third.key}
    assert not [path for path in elsewhere.iterdir() if path.is_dir()]
    assert compiled(ensure_build(patched, ASSERT, print)) > 1000
    assert contents(third) == incremental


def test_a_link_to_a_build_is_refused(build: Build, elsewhere: Path) -> None:
    theirs = elsewhere / "theirs"
    theirs.mkdir()
    (theirs / "kept").touch()
    (elsewhere / build.key).symlink_to(theirs)
    with pytest.raises(BuildError, match="remove it"):
        ensure_build(build.tree, build.flavor, print)
    assert (theirs / "kept").exists()


def test_a_build_is_kept_when_a_link_leads_to_the_cache(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "builds").symlink_to(build.prefix.parent.parent)
    monkeypatch.setattr(workdir, "builds", lambda: tmp_path / "builds")
    assert ensure_build(build.tree, build.flavor, print) == build


def test_a_compile_error_is_shown_with_its_log(base: Base, elsewhere: Path) -> None:
    tree = prefixed(base, EARLY_FILE, "#error made on purpose")
    with pytest.raises(
        BuildError, match=r"does not compile: .*noblock\.c:1:2: error: #error made on purpose; see .*\.log"
    ):
        ensure_build(tree, ASSERT, print)
    assert list_builds() == ()


@pytest.mark.parametrize("small_disk", [48, 190], indirect=True)
def test_a_full_disk_is_reported(base: Base, small_disk: Path) -> None:
    hopeful = dataclasses.replace(ASSERT, space=0)
    with pytest.raises(BuildError, match=r"no space left on the disk of .*/small.*; make room or set PGDUEL_HOME"):
        ensure_build(base.tree, hopeful, print)


@pytest.mark.parametrize("small_disk", [48], indirect=True)
def test_a_small_disk_is_refused_before_compilation(base: Base, small_disk: Path) -> None:
    with pytest.raises(BuildError, match=r"needs 1024 MB in .*/small, where 4\d MB are free"):
        ensure_build(base.tree, ASSERT, print)


def test_missing_tools_are_reported(base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "git").symlink_to(shutil.which("git") or "")
    monkeypatch.setenv("PATH", str(tmp_path))
    compiling.compiler_version.cache_clear()
    with pytest.raises(BuildError, match="cannot compile without gcc, meson, ninja, ccache, bison"):
        ensure_build(base.tree, ASSERT, print)
    compiling.compiler_version.cache_clear()


def test_modules_are_compiled_against_the_build_and_found_by_its_clusters(build: Build) -> None:
    name = "pgduel_faults"  # servers load the other modules at their start
    library = ensure_module(build, name)
    assert ensure_module(build, name) == library
    with Cluster(build, "modules") as cluster:
        where = cluster.connect_kwargs
        with psycopg.connect(host=str(where["host"]), port=cluster.port, user="postgres") as connection:
            connection.execute(f"LOAD '{name}'".encode())


def test_an_unknown_module_is_refused(build: Build) -> None:
    with pytest.raises(BuildError, match="there is no server module absent"):
        ensure_module(build, "absent")


def test_builds_of_two_processes_wait_for_each_other(base: Base, build: Build) -> None:
    program = (
        "from fuzz.servers.build import ensure_build\n"
        "from fuzz.servers.flavor import FLAVORS\n"
        f"print(ensure_build({base.tree!r}, FLAVORS['assert'], lambda line: None).key)\n"
    )
    both = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[0].strip() for process in both] == [build.key] * 2
