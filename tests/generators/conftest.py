"""Fixtures of the generators' tests: one arm, upstream with assertions, and its executor."""

from collections.abc import Iterator

import pytest

from fuzz.execution.executor import Executor
from fuzz.servers.arm import Arm
from fuzz.servers.base import resolve_base
from fuzz.servers.build import ensure_build
from fuzz.servers.cluster import Cluster
from fuzz.servers.flavor import FLAVORS


@pytest.fixture(scope="session")
def arm() -> Iterator[Arm]:
    build = ensure_build(resolve_base("pg17", print).tree, FLAVORS["assert"], print)
    with Cluster(build, "generators") as cluster:
        yield Arm("only", build, cluster, (build.tree,))


@pytest.fixture(scope="session")
def executor(arm: Arm) -> Iterator[Executor]:
    with Executor((arm,), "generators") as executor:
        yield executor
