"""Fixtures for tests on real servers: one build, upstream with assertions, shared through the cache."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzz import workdir
from fuzz.campaign.database import home
from fuzz.execution.executor import Executor
from fuzz.servers.arm import Arm
from fuzz.servers.base import Base, resolve_base
from fuzz.servers.build import Build, ensure_build
from fuzz.servers.cluster import Cluster
from fuzz.servers.flavor import FLAVORS
from fuzz.store_url import VARIABLE
from tests.servers.rights import open_to_all
from tests.shared_store import BOTH, new_database, url_of


@pytest.fixture(scope="session")
def base() -> Base:
    return resolve_base("pg17", print)


@pytest.fixture(scope="session")
def build(base: Base) -> Build:
    return ensure_build(base.tree, FLAVORS["assert"], print)


@pytest.fixture(scope="module")
def empty_cache() -> Iterator[Path]:
    """Yield an empty cache, in which nothing is built. The compiler's cache is that of the machine."""
    with open_to_all() as directory:
        for kept in (workdir.compiler_cache(), workdir.downloads()):
            (directory / kept.name).symlink_to(kept)
        yield directory


@pytest.fixture
def cluster(build: Build) -> Iterator[Cluster]:
    with Cluster(build, "test") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def arms(build: Build) -> Iterator[tuple[Arm, ...]]:
    """Yield a single arm."""
    with Cluster(build, "only") as cluster:
        yield (Arm("only", build, cluster, ()),)


@pytest.fixture(scope="module")
def executor(arms: tuple[Arm, ...]) -> Iterator[Executor]:
    with Executor(arms) as executor:
        yield executor


@pytest.fixture(scope="module")
def store_server(build: Build) -> Iterator[Cluster]:
    """Yield a server for shared stores."""
    with Cluster(build, "store") as server:
        yield server


@pytest.fixture
def shared_store(store_server: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the name of a new database, which is the store of this process."""
    monkeypatch.setenv("PGDUEL_CAMPAIGNS", str(tmp_path / "campaigns"))
    with new_database(store_server) as name:
        monkeypatch.setenv(VARIABLE, url_of(store_server, name))
        yield name


@pytest.fixture(params=BOTH)
def campaigns(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of campaigns whose stores are in SQLite, or in a new database of PostgreSQL."""
    monkeypatch.setenv("PGDUEL_CAMPAIGNS", str(tmp_path / "campaigns"))
    if request.param == "postgresql":
        request.getfixturevalue("shared_store")
    return home()


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """Yield an empty directory that all users may enter, servers' account included."""
    with open_to_all() as directory:
        yield directory
