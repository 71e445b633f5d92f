"""Configuration of all tests: no deadlines, distribution over processes, parts of the long tests, and a summary."""

import os
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import settings
from xdist.remote import Producer  # type: ignore[import-untyped]
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from tests.parts import Times, note_times, noted_times, parts_of, seconds_of

pytest_plugins = ["tests.fixtures"]

os.environ.pop("PGDUEL_STORE", None)  # a developer's own; tests have stores of their own

# Deadlines would depend on the load of the machine.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# Each test below these directories may run in any process. The tests of another file share servers, and so a process.
_ALONE = ("tests/cli/", "tests/injected_bugs/", "tests/libfuzzer/", "tests/patches/")
_GROUP = "group of the long tests"  # property of a report
_REPORT = "report"  # property of a report: a line that the summary prints unchanged


@pytest.hookimpl(trylast=True)  # after the plugin that makes the writer
def pytest_configure(config: pytest.Config) -> None:
    """Widen output that is not a terminal's, because the summary cuts off the reasons of failures at its width."""
    if not sys.stdout.isatty():
        config.get_terminal_writer().fullwidth = 240


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", metavar="N/M", help="of the long tests, the Nth of M parts of about equal time")
    parser.addoption(
        "--note-times", action="store_true", help="write the times of tests on servers to tests/times.json"
    )


@pytest.hookimpl(tryfirst=True)  # before -m and -k, so that parts do not depend on these
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    groups = groups_of(items)
    if part := config.getoption("part"):
        others = outside_part(part, noted_times().with_long(groups))
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in others])
        items[:] = [item for item in items if item.nodeid not in others]
    for item in items:
        if group := groups.get(item.nodeid):
            item.user_properties.append((_GROUP, group))
    if hasattr(config, "workerinput"):
        longest_first(items)


def groups_of(items: list[pytest.Item]) -> Mapping[str, str]:
    """Return the group of each long test. A test without shared builds is its own group."""
    marked = [(item.nodeid, item.get_closest_marker("long")) for item in items]
    return {name: marker.kwargs.get("group", name) for name, marker in marked if marker is not None}


def outside_part(part: str, times: Times) -> frozenset[str]:
    """Return the long tests that are not in part N of M."""
    number, _, parts = part.partition("/")
    if not (number.isdigit() and parts.isdigit() and 1 <= int(number) <= int(parts)):
        raise pytest.UsageError(f"--part takes N/M, with N from 1 to M, not {part!r}")
    mine = parts_of(times, int(parts))[int(number) - 1]
    return frozenset(test for tests in times.long.values() for test in tests if test not in mine)


def unit_of(test: str) -> str:
    """Return the unit that one process runs: the test's file, or the test alone if it shares no servers."""
    return test if test.startswith(_ALONE) else test.partition("::")[0]


def longest_first(items: list[pytest.Item]) -> None:
    """Sort units by their times, so that processes end at about the same time. Each unit keeps its order."""
    times, taken = noted_times(), defaultdict[str, float](float)
    for item in items:
        taken[unit_of(item.nodeid)] += times.of(item.nodeid) or 0
    items.sort(key=lambda item: -taken[unit_of(item.nodeid)])


class UnitScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """A scheduler that distributes units. xdist 3.8 has markers for this, without effect under pytest 9.2."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


@pytest.hookimpl(optionalhook=True)  # absent without xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """Return the scheduler for `--dist loadscope`."""
    if config.getoption("dist") != "loadscope":
        return None
    config.option.loadscopereorder = False  # sort by times, not by numbers of tests
    return UnitScheduling(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the tests' own lines, the covered parts that passed on real servers, and the time of the long tests."""
    passed = terminalreporter.stats.get("passed", [])
    covered, groups = defaultdict(set), dict[str, str]()
    for report in passed:
        for kind, name in report.user_properties:
            if kind == _GROUP:
                groups[report.nodeid] = name
            elif kind == _REPORT:
                terminalreporter.write_line(name)
            else:
                covered[kind].add(str(name))
    for kind, names in sorted(covered.items()):
        terminalreporter.write_line(f"passed on real servers: {len(names)} {kind}: {', '.join(sorted(names))}")
    took = seconds_taken([*terminalreporter.stats.get("", []), *passed])
    if groups:
        now, times = {test: took[test] for test in groups}, noted_times()
        noted = {test: times.of(test) or 0 for test in groups}
        line = f"{len(groups)} long tests: {seconds_of(now):.0f} s, {seconds_of(noted):.0f} s as recorded"
        terminalreporter.write_line(line)
    if config.getoption("note_times"):
        note_times(took, groups)


def seconds_taken(reports: Sequence[pytest.TestReport]) -> Mapping[str, float]:
    """Return the seconds of each test on servers, including its fixtures."""
    took = defaultdict[str, float](float)
    for report in reports:
        if "servers" in report.keywords:
            took[report.nodeid] += report.duration
    return took
