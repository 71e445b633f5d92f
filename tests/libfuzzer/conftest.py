"""Fixtures of native harnesses for any tree of PostgreSQL 17, with the headers of one build, or a build of the tree."""

from pathlib import Path

import pytest

from fuzz.engines.libfuzzer.build import build_harness, harness_named
from fuzz.servers.arm import parse_series, shipped_series
from fuzz.servers.base import Base, resolve_base
from fuzz.servers.build import Build, ensure_build
from fuzz.servers.flavor import FLAVORS
from fuzz.servers.series import Series, apply_series, series_from_files
from tests.libfuzzer.harnesses import Harness


@pytest.fixture(scope="session")
def base() -> Base:
    return resolve_base("pg17", print)


@pytest.fixture(scope="session")
def build(base: Base) -> Build:
    return ensure_build(apply_series(base.tree, shipped_series("patched", base))[-1], FLAVORS["assert"], print)


@pytest.fixture(scope="session")
def harness(base: Base, build: Build) -> Harness:
    def made(name: str, *, bug: Path | None = None, arm: str = "patched") -> Path:
        series = parse_series(arm, base)
        if bug is not None:
            series += series_from_files([bug])
        tree = apply_series(base.tree, Series(arm, series.patches))[-1]
        flavor = harness_named(name).flavor
        return build_harness(ensure_build(tree, FLAVORS[flavor], print) if flavor else build, name, tree)

    return made
