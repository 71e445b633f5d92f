"""PostgreSQL's own suites pass on the patched arm, and so do the test modules that its patches touch."""

import re
from collections.abc import Callable

import pytest

from fuzz.servers.arm import build_arms, parse_arm, shipped_series
from fuzz.servers.base import Base, resolve_base
from fuzz.servers.build import Build
from fuzz.servers.flavor import FLAVORS
from fuzz.servers.regress import SuiteResult, run_isolation, run_module, run_regress

pytestmark = pytest.mark.servers

_MODULE = re.compile(rb"^\+\+\+ b/src/test/modules/(\w+)/sql/", re.MULTILINE)


@pytest.fixture(scope="module")
def base() -> Base:
    return resolve_base("pg17", print)


@pytest.fixture(scope="module")
def patched(base: Base) -> Build:
    ((build, _),) = build_arms([parse_arm("patched", base, FLAVORS["assert"], print)], print)
    return build


def require_passed(result: SuiteResult) -> None:
    assert result.passed, result.output
    assert not result.failed, result.summary


@pytest.mark.parametrize("suite", [run_regress, run_isolation])
def test_suite(patched: Build, suite: Callable[[Build], SuiteResult]) -> None:
    require_passed(suite(patched))


def test_modules_of_the_patches(base: Base, patched: Build) -> None:
    content = b"\n".join(patch.content for patch in shipped_series("patched", base).patches)
    modules = sorted({name.decode() for name in _MODULE.findall(content)})
    assert modules, "no patch brings a test module"
    for name in modules:
        require_passed(run_module(patched, name))
