"""Tests of PostgreSQL's own suites on all arms and variants, and of the suites of modules that patches change."""

import re
from collections.abc import Callable

import pytest

from fuzz import workdir
from fuzz.servers.arm import build_arms, parse_arm, shipped_series
from fuzz.servers.base import Base, resolve_base
from fuzz.servers.build import Build
from fuzz.servers.flavor import FLAVORS
from fuzz.servers.regress import SuiteResult, run_isolation, run_module, run_regress

pytestmark = pytest.mark.servers

VARIANTS = workdir.PROJECT / "patches" / "pg17" / "variants"
SANITIZED = pytest.mark.long(group="sanitized")  # these tests share a build
_MODULE = re.compile(rb"^\+\+\+ b/(src/test/modules/\w+|contrib/\w+)/sql/", re.MULTILINE)


@pytest.fixture(scope="module")
def base() -> Base:
    return resolve_base("pg17", print)


def compiled(series: str, flavor: str, base: Base) -> Build:
    ((build, _),) = build_arms([parse_arm(f"it={series}", base, FLAVORS[flavor], print)], print)
    return build


def require_passed(result: SuiteResult) -> None:
    assert result.passed, result.output
    assert not result.failed, result.summary


@pytest.mark.parametrize(
    ("series", "flavor"),
    [
        pytest.param("patched", "assert", id="patched", marks=pytest.mark.quick),
        pytest.param("patched", "sanitize", id="patched, sanitized", marks=SANITIZED),
        pytest.param("master", "assert", id="master", marks=pytest.mark.long),
        *(
            pytest.param(str(path), "assert", id=path.name, marks=pytest.mark.long(group=path.name))
            for path in sorted(VARIANTS.iterdir())
        ),
    ],
)
@pytest.mark.parametrize("suite", [run_regress, run_isolation])
def test_suite(base: Base, series: str, flavor: str, suite: Callable[[Build], SuiteResult]) -> None:
    require_passed(suite(compiled(series, flavor, base)))


@pytest.mark.parametrize(
    ("arm", "flavor"),
    [
        pytest.param("patched", "assert", id="patched", marks=pytest.mark.quick),
        pytest.param("patched", "sanitize", id="patched, sanitized", marks=SANITIZED),
        pytest.param("master", "assert", id="master", marks=pytest.mark.long),
    ],
)
def test_modules_of_the_patches(base: Base, arm: str, flavor: str) -> None:
    content = b"\n".join(patch.content for patch in shipped_series(arm, base).patches)
    modules = sorted({name.decode() for name in _MODULE.findall(content)})
    assert "contrib/postgres_fdw" in modules
    build = compiled(arm, flavor, base)
    for path in modules:
        require_passed(run_module(build, path))
