"""Fixtures of the sources' tests: one arm, upstream with assertions, its source database and its executor."""

import os
from collections.abc import Iterator
from contextlib import closing

import pytest

from fuzz.execution.executor import Executor
from fuzz.execution.source_database import SourceDatabase
from fuzz.servers.arm import Arm
from fuzz.servers.base import resolve_base
from fuzz.servers.build import Build, ensure_build
from fuzz.servers.cluster import Cluster
from fuzz.servers.flavor import FLAVORS
from fuzz.sources.source import UserInput
from fuzz.sources.sqlancer.running import JAR_VARIABLE
from tests.sources.application import write_application


@pytest.fixture(scope="session")
def build() -> Build:
    return ensure_build(resolve_base("pg17", print).tree, FLAVORS["assert"], print)


@pytest.fixture(scope="session")
def given(tmp_path_factory: pytest.TempPathFactory) -> UserInput:
    """Return input for all sources that need it."""
    return UserInput(str(write_application(tmp_path_factory.mktemp("application"))), os.environ.get(JAR_VARIABLE))


@pytest.fixture(scope="session")
def arm(build: Build) -> Iterator[Arm]:
    with Cluster(build, "sources") as cluster:
        yield Arm("only", build, cluster, (build.tree,))


@pytest.fixture(scope="session")
def target(arm: Arm, given: UserInput) -> Iterator[SourceDatabase]:
    with closing(SourceDatabase(arm, "tests", given)) as target:
        yield target


@pytest.fixture(scope="session")
def executor(arm: Arm) -> Iterator[Executor]:
    with Executor((arm,), "sources") as executor:
        yield executor
