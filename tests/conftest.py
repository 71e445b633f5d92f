"""What all tests share: no deadlines, what shares servers shares a process, parts of the long tests, and a summary."""

from collections import defaultdict

import pytest
from hypothesis import settings

# How fast a test is depends on the machine, and on what else it does.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

_ALONE = ("tests/patches", "tests/libfuzzer")  # their tests share no server: each may go to any process


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", metavar="N/M", help="of each file's long tests, every Mth, beginning with the Nth")


@pytest.hookimpl(tryfirst=True)  # before -m and -k, so that they have no part in what is in which part
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if part := config.getoption("part"):
        others = outside_part(part, [item for item in items if item.get_closest_marker("long")])
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in set(others)]
    for item in items:
        file = item.nodeid.partition("::")[0]
        if not file.startswith(_ALONE):
            item.add_marker(pytest.mark.xdist_group(file))


def outside_part(part: str, items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the tests that are not in part N of M, which has every Mth test of each file."""
    number, _, parts = part.partition("/")
    if not (number.isdigit() and parts.isdigit() and 1 <= int(number) <= int(parts)):
        raise pytest.UsageError(f"--part takes N/M, with N from 1 to M, not {part!r}")
    files = defaultdict(list)
    for item in sorted(items, key=lambda item: item.nodeid):
        files[item.nodeid.partition("::")[0]].append(item)
    return [
        item
        for tests in files.values()
        for position, item in enumerate(tests)
        if position % int(parts) != int(number) - 1
    ]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what passed on real servers, of what tests say that they cover."""
    covered = defaultdict(set)
    for report in terminalreporter.stats.get("passed", []):
        for kind, name in report.user_properties:
            covered[kind].add(str(name))
    for kind, names in sorted(covered.items()):
        terminalreporter.write_line(f"passed on real servers: {len(names)} {kind}: {', '.join(sorted(names))}")
