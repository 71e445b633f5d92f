"""Tests of all injected bugs: campaigns find them within a number of cases, and their reproducers replay."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fuzz.generators.generator import all_generators
from tests.injected_bugs.injected_bug import Bug, all_bugs, find_bug

BUGS = all_bugs()
# A limit in seconds would depend on the machine.
CASES = 150
CASES_OF_WORKLOAD = 400  # of the bug's own workload, which has more branches to reach
LOGIC = (
    "cert",
    "coddtest",
    "dqe",
    "dqp",
    "eet",
    "norec",
    "pqs",
    "tlp",
)  # oracles of the literature, which judge a single arm


def _marks(bug: Bug) -> list[pytest.MarkDecorator]:
    """Return the markers of a bug: each campaign is long, and a missed bug is expected to fail.

    Bugs on top of a variant share builds with its suites. `--runxfail` runs the tests of missed bugs, too.
    """
    missed = [pytest.mark.xfail(reason=bug.missed, run=False)] if bug.missed else []
    variant = {"group": Path(bug.series).name} if bug.series else {}
    return [*missed, pytest.mark.long(**variant)]


@pytest.mark.parametrize("generator", all_generators())
def test_a_generator_has_a_bug_made_for_it(generator: str) -> None:
    named = any(generator in (bug.workload, bug.quick) for bug in BUGS)
    assert named, f"add a bug with the header `# Workload: {generator}` or `# Quick: {generator}`; see CONTRIBUTING.md"


@pytest.mark.parametrize("oracle", LOGIC)
def test_a_logic_oracle_has_a_bug_made_for_it(oracle: str) -> None:
    assert any(bug.alone and bug.oracles[0] == oracle and len(bug.oracles) <= 2 for bug in BUGS)


@pytest.mark.servers
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("bug", [pytest.param(bug, id=bug.name, marks=_marks(bug)) for bug in BUGS])
def test_an_injected_bug_is_found_and_replays(
    bug: Bug, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    record_property("report", find_bug(bug, tmp_path, cases=CASES_OF_WORKLOAD if bug.workload else CASES))
