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
from fuzz.servers.release import DEFAULT as DEFAULT_BASE

pytestmark = pytest.mark.servers

PATCHES = workdir.PROJECT / "patches"
VARIANTS = PATCHES / DEFAULT_BASE / "variants"
OTHERS = [  # other versions, whose arm `master` is unchanged unless they have a baseline
    pytest.param(path.name, "patched", "assert", id=path.name, marks=pytest.mark.long(group=path.name))
    for path in sorted(PATCHES.glob("pg*"))
    if path.name != DEFAULT_BASE
]
SANITIZED = pytest.mark.long(group="sanitized")  # these tests share a build
_MODULE = re.compile(rb"^\+\+\+ b/(src/test/modules/\w+|contrib/\w+)/sql/", re.MULTILINE)


def compiled(series: str, flavor: str, base: Base) -> Build:
    ((build, _),) = build_arms([parse_arm(f"it={series}", base, FLAVORS[flavor], print)], print)
    return build


def require_passed(result: SuiteResult) -> None:
    assert result.passed, result.output
    assert not result.failed, result.summary


@pytest.mark.parametrize(
    ("base", "series", "flavor"),
    [
        pytest.param(DEFAULT_BASE, "patched", "assert", id="patched", marks=pytest.mark.quick),
        pytest.param(DEFAULT_BASE, "patched", "sanitize", id="patched, sanitized", marks=SANITIZED),
        pytest.param(DEFAULT_BASE, "master", "assert", id="master", marks=pytest.mark.long),
        *(
            pytest.param(DEFAULT_BASE, str(path), "assert", id=path.name, marks=pytest.mark.long(group=path.name))
            for path in sorted(VARIANTS.iterdir())
        ),
        *OTHERS,
    ],
)
@pytest.mark.parametrize("suite", [run_regress, run_isolation])
def test_suite(base: str, series: str, flavor: str, suite: Callable[[Build], SuiteResult]) -> None:
    require_passed(suite(compiled(series, flavor, resolve_base(base, print))))


@pytest.mark.parametrize(
    ("base", "arm", "flavor"),
    [
        pytest.param(DEFAULT_BASE, "patched", "assert", id="patched", marks=pytest.mark.quick),
        pytest.param(DEFAULT_BASE, "patched", "sanitize", id="patched, sanitized", marks=SANITIZED),
        pytest.param(DEFAULT_BASE, "master", "assert", id="master", marks=pytest.mark.long),
        *OTHERS,
    ],
)
def test_modules_of_the_patches(base: str, arm: str, flavor: str) -> None:
    source = resolve_base(base, print)
    content = b"\n".join(patch.content for patch in shipped_series(arm, source).patches)
    modules = sorted({name.decode() for name in _MODULE.findall(content)})
    assert modules
    build = compiled(arm, flavor, source)
    for path in modules:
        require_passed(run_module(build, path))


@pytest.mark.quick
def test_tests_of_a_module_run_in_its_own_order() -> None:
    build = compiled("patched", "assert", resolve_base(DEFAULT_BASE, print))
    require_passed(run_module(build, "contrib/citext"))  # one makes the extension, an earlier one needs its absence
