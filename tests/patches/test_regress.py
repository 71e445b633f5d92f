"""Tests of PostgreSQL's own suites on each series and each prefix of the shipped ones, and of modules' suites.

They pass with PostgreSQL's settings. With little memory, and each feature of a series forced, many plans differ from
the expected ones. So these outputs are compared with those of the same series without the feature. They have equal
lines; rows without ORDER BY may have another order. A test that prints a parameter of the feature, or its part of
EXPLAIN, has other output legitimately. Its server must not crash.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import unified_diff
from itertools import islice
from typing import Any, Final

import pytest

from fuzz import workdir
from fuzz.servers.arm import UP_TO, build_arms, parse_arm
from fuzz.servers.arm_settings import Settings
from fuzz.servers.base import resolve_base
from fuzz.servers.build import Build
from fuzz.servers.flavor import DEFAULT_FLAVOR, FLAVORS
from fuzz.servers.regress import SuiteResult, run_isolation, run_module, run_regress, run_specs_of_module
from fuzz.servers.release import DEFAULT as DEFAULT_BASE
from fuzz.servers.series import Series, series_from_directory
from oracles.model.feature import Feature, forced_settings

pytestmark = pytest.mark.servers

PATCHES: Final = workdir.PROJECT / "patches"
SANITIZE: Final = "sanitize"
BOTH: Final = (DEFAULT_FLAVOR, SANITIZE)
LITTLE_MEMORY: Final = (("hash_mem_multiplier", "1"), ("work_mem", "64kB"))
SHOWN: Final = 40  # lines of a difference
REPETITIONS: Final = 2  # of all outputs, if some differ: a few depend on the workers' shares of rows
BUG: Final = workdir.PROJECT / "tests" / "injected_bugs" / "bloom" / "bloom_left_join_drops.patch"
_MODULE: Final = re.compile(rb"^\+\+\+ b/(src/test/modules/\w+|contrib/\w+)/", re.MULTILINE)
_LOST: Final = re.compile(r"server closed the connection|connection to server was lost|terminating connection because")


@dataclass(frozen=True, slots=True)
class Subject:
    """A series on a base. `arm` is in the form of `--arm`, `patches` are those that it has, without its baseline."""

    name: str
    base: str
    arm: str
    patches: Series

    @property
    def modules(self) -> list[str]:
        """Return the directories of the modules that the series changes."""
        content = b"\n".join(patch.content for patch in self.patches.patches)
        return sorted({name.decode() for name in _MODULE.findall(content)})

    @property
    def features(self) -> tuple[Feature, ...]:
        """Return the features whose parameters a patch of the series adds."""
        content = b"\n".join(patch.content for patch in self.patches.patches)
        return tuple(each for each in self.patches.features if each.setting and each.setting.encode() in content)

    def built(self, flavor: str) -> Build:
        """Return the build of the series."""
        spec = parse_arm(f"it={self.arm}", resolve_base(self.base, print), FLAVORS[flavor], print)
        ((build, _),) = build_arms([spec], print)
        return build


def shipped(base: str) -> list[Subject]:
    """Return the arm `patched` of a base, and its prefixes."""
    whole = series_from_directory(PATCHES / base / "optimizations")
    name = "patched" if base == DEFAULT_BASE else base
    subjects = [Subject(name, base, "patched", whole)]
    for length, patch in enumerate(whole.patches[:-1], 1):
        up_to = f"{UP_TO}{patch.name.partition('-')[0]}"
        prefix = replace(whole, patches=whole.patches[:length])
        subjects.append(Subject(f"{name}{up_to}", base, f"patched{up_to}", prefix))
    return subjects


OTHER_BASES: Final = sorted(path.name for path in PATCHES.glob("pg*") if path.name != DEFAULT_BASE)
HOME: Final = PATCHES / DEFAULT_BASE
PATCHED: Final = shipped(DEFAULT_BASE)
MASTER: Final = Subject("master", DEFAULT_BASE, "master", series_from_directory(HOME / "baseline"))
VARIANTS: Final = [
    Subject(path.name, DEFAULT_BASE, str(path), series_from_directory(path))
    for path in sorted((HOME / "variants").iterdir())
]
OTHERS: Final = [shipped(base) for base in OTHER_BASES]  # their arm `master` is unchanged unless they have a baseline
WHOLE_OTHERS: Final = [whole for whole, *_ in OTHERS]
ALL: Final = [*PATCHED, MASTER, *VARIANTS, *(subject for subjects in OTHERS for subject in subjects)]
SANITIZED: Final = [*PATCHED, MASTER, *VARIANTS, *WHOLE_OTHERS]


def _param(subject: Subject, flavor: str, *, quick: bool) -> Any:
    name = subject.name if flavor == DEFAULT_FLAVOR else f"{subject.name}, sanitized"
    mark = pytest.mark.quick if quick and name == "patched" else pytest.mark.long(group=name)
    return pytest.param(subject, flavor, id=name, marks=mark)


def each_of(subjects: Sequence[Subject], sanitized: Sequence[Subject], *, quick: bool = False) -> list[Any]:
    """Return a parameter set for each subject with assertions, and for each with sanitizers."""
    plain = [_param(subject, DEFAULT_FLAVOR, quick=quick) for subject in subjects]
    return [*plain, *(_param(subject, SANITIZE, quick=quick) for subject in sanitized)]


def require_passed(result: SuiteResult) -> None:
    assert result.passed, result.output
    assert not result.failed, result.summary


@pytest.mark.parametrize(("subject", "flavor"), each_of(ALL, SANITIZED, quick=True))
@pytest.mark.parametrize("suite", [run_regress, run_isolation])
def test_suite(subject: Subject, flavor: str, suite: Callable[[Build], SuiteResult]) -> None:
    require_passed(suite(subject.built(flavor)))


def having_modules(subjects: Sequence[Subject]) -> list[Subject]:
    return [subject for subject in subjects if subject.modules]


@pytest.mark.parametrize(("subject", "flavor"), each_of(having_modules(ALL), having_modules(SANITIZED), quick=True))
def test_modules_of_the_patches(subject: Subject, flavor: str) -> None:
    for result in run_modules(subject, flavor):
        require_passed(result)


@pytest.mark.quick
def test_tests_of_a_module_run_in_its_own_order() -> None:
    build = PATCHED[0].built(DEFAULT_FLAVOR)
    require_passed(run_module(build, "contrib/citext"))  # one makes the extension, an earlier one needs its absence


@pytest.mark.quick
def test_each_shipped_series_changes_modules_and_has_a_feature() -> None:
    for whole in (PATCHED[0], *WHOLE_OTHERS):
        assert whole.modules
        assert whole.features


def run_modules(subject: Subject, flavor: str, settings: Settings = ()) -> Iterator[SuiteResult]:
    """Yield the results of the modules' tests. The files of a result exist until the next one."""
    build = subject.built(flavor)
    for path in subject.modules:
        yield run_module(build, path, settings=settings)
        if (specs := run_specs_of_module(build, path, settings)) is not None:
            yield specs


def run_server_tests(subject: Subject, flavor: str, settings: Settings = ()) -> Iterator[SuiteResult]:
    """Yield the result of src/test/regress."""
    yield run_regress(subject.built(flavor), settings=settings)


def run_specs(subject: Subject, flavor: str, settings: Settings = ()) -> Iterator[SuiteResult]:
    """Yield the result of src/test/isolation."""
    yield run_isolation(subject.built(flavor), settings=settings)


Suites = Callable[[Subject, str, Settings], Iterator[SuiteResult]]


def outputs(results: Iterator[SuiteResult]) -> dict[str, str]:
    """Return the output of each test."""
    return {test: result.printed_by(test) for result in results for test in (*result.passed, *result.failed)}


def differences(without: str, forced: str) -> list[str]:
    """Return the first different lines of two outputs, whose lines may have any order."""
    one, other = (sorted(text.splitlines()) for text in (without, forced))
    return list(islice(unified_diff(one, other, "without", "forced", lineterm="", n=0), SHOWN))


def with_features(subjects: Sequence[Subject]) -> list[Subject]:
    return [subject for subject in subjects if subject.features]


@pytest.mark.parametrize(
    ("subject", "flavor"),
    each_of(with_features([*PATCHED, *VARIANTS, *WHOLE_OTHERS]), with_features([PATCHED[0], *WHOLE_OTHERS])),
)
@pytest.mark.parametrize("suites", [run_server_tests, run_specs, run_modules])
@pytest.mark.timeout(3600)
def test_forced_features_change_no_other_output(subject: Subject, flavor: str, suites: Suites) -> None:
    different = changed_by_force(subject, subject, flavor, suites)
    assert not different, "\n".join(line for lines in different.values() for line in lines)


@pytest.mark.long(group="patched")
@pytest.mark.timeout(3600)
def test_a_bug_in_a_forced_feature_changes_outputs() -> None:
    sound = PATCHED[0]
    bugged = replace(sound, arm=f"{sound.arm},{BUG}")
    assert changed_by_force(sound, bugged, DEFAULT_FLAVOR, run_server_tests)


def changed_by_force(sound: Subject, forced: Subject, flavor: str, suites: Suites) -> dict[str, list[str]]:
    """Return the differences by test of a series with forced features from the sound one without the features.

    A difference occurs in each run, and the sound series repeats its output. Asserts that the same tests end without a
    crash.
    """
    features = sound.features
    force, off = forced_settings(features), tuple(pair for feature in features for pair in feature.off)
    about = {name for name, _ in (*force, *off)} | {feature.group for feature in features if feature.group}

    def without_features() -> dict[str, str]:
        return outputs(suites(sound, DEFAULT_FLAVOR, (*LITTLE_MEMORY, *off)))

    def with_features_forced() -> dict[str, str]:
        found = outputs(suites(forced, flavor, (*LITTLE_MEMORY, *force)))
        assert found.keys() == expected.keys()
        assert [test for test in found if len(_LOST.findall(found[test])) > len(_LOST.findall(expected[test]))] == []
        return found

    expected = without_features()
    found = with_features_forced()
    compared = [
        test for test in found if not any(name in text for name in about for text in (found[test], expected[test]))
    ]
    assert compared
    different = {test: lines for test in compared if (lines := differences(expected[test], found[test]))}
    for _ in range(REPETITIONS if different else 0):
        again, found = without_features(), with_features_forced()
        repeated = [test for test in different if not differences(expected[test], again[test])]
        different = {test: lines for test in repeated if (lines := differences(expected[test], found[test]))}
    return different
