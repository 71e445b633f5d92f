"""A series' own regression tests: those of PostgreSQL's suites that it adds or changes."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from fuzz.errors import ServerError
from fuzz.mutation.result import seconds_allowed
from fuzz.servers import git
from fuzz.servers.build import Build
from fuzz.servers.limits import time_limit
from fuzz.servers.regress import SuiteResult, discard_results, run_isolation, run_module, run_regress

_REGRESS: Final = re.compile(r"^src/test/regress/(?:sql|expected)/(\w+?)(?:_\d+)?\.(?:sql|out)$")
_ISOLATION: Final = re.compile(r"^src/test/isolation/(?:specs|expected)/([\w-]+?)(?:_\d+)?\.(?:spec|out)$")
_MODULE: Final = re.compile(r"^((?:contrib|src/test/modules|src/pl)/[\w/]+?)/(?:sql|expected)/[\w-]+\.(?:sql|out)$")
_FIRST: Final = "test_setup"  # makes the tables of the other tests in src/test/regress

Suite = Callable[[Build], SuiteResult]


@dataclass(frozen=True, slots=True)
class SoundTests:
    """The result of the tests without a mutation: those that pass, those that fail, and the seconds of each suite."""

    passed: tuple[str, ...]
    failed: tuple[str, ...]
    seconds: Mapping[str, float]


def suites_of(before: str, after: str) -> dict[str, Suite]:
    """Return the suites that run a series' own tests, by name. The trees are those without and with it.

    TAP tests do not run. Raises SourceError.
    """
    compared = ("diff-tree", "-r", "-z", "--no-renames", "--diff-filter=d", "--name-only", before, after)
    listed = git.output("--git-dir", git.repository(), *compared, failing="cannot compare trees")
    paths = listed.decode(errors="surrogateescape").split("\0")
    suites: dict[str, Suite] = {}
    if regress := _matching(_REGRESS, paths):
        tests = [_FIRST, *(test for test in regress if test != _FIRST)]
        suites["regress"] = lambda build: run_regress(build, tests)
    if specs := _matching(_ISOLATION, paths):
        suites["isolation"] = lambda build: run_isolation(build, specs)
    for module in _matching(_MODULE, paths):
        suites[module] = partial(_module, module)
    return suites


def _module(path: str, build: Build) -> SuiteResult:
    return run_module(build, path)


def _matching(pattern: re.Pattern[str], paths: Sequence[str]) -> list[str]:
    return sorted({found[1] for path in paths if (found := pattern.match(path))})


def run_sound(build: Build, suites: Mapping[str, Suite]) -> SoundTests:
    """Run the tests on the build without a mutation. Raises ServerError."""
    passed: list[str] = []
    failed: list[str] = []
    seconds = {}
    for name, suite in suites.items():
        began = time.monotonic()
        result = suite(build)
        seconds[name] = time.monotonic() - began
        passed += (f"{name}/{test}" for test in result.passed)
        failed += (f"{name}/{test}" for test in result.failed)
    return SoundTests(tuple(passed), tuple(failed), seconds)


def failed_tests(build: Build, suites: Mapping[str, Suite], sound: SoundTests) -> Iterator[str]:
    """Yield the tests that fail on a mutant's build and pass without the mutation, or the error that prevents a suite.

    The first suite with such a test is the last one to run. A suite that hangs ends, because its servers are killed.
    """
    try:
        for name, suite in suites.items():
            try:
                with time_limit(build, seconds_allowed(sound.seconds[name])):
                    result = suite(build)
                failed = [test for each in result.failed if (test := f"{name}/{each}") in sound.passed]
            except ServerError as error:
                failed = [f"{name}: {error}"]
            yield from failed
            if failed:
                return
    finally:
        discard_results(build)
