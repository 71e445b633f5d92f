"""Each bug planted in the C of a real server, on top of a sound series, is found within so many cases."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fuzz.generators.generator import all_generators
from tests.injected_bugs.hunt import Bug, bug_of, hunt

BUGS = [bug_of(patch) for patch in sorted(Path(__file__).parent.glob("**/*.patch"))]
# Not seconds, which would say more of the machine than of the hunt.
CASES = 150
CASES_OF_WORKLOAD = 400  # of the workload made for what the bug breaks: it has more branches to reach
LOGIC = ("cert", "coddtest", "dqe", "dqp", "eet", "norec", "pqs", "tlp")  # the literature's oracles, for an arm alone


def _marks(bug: Bug) -> list[pytest.MarkDecorator]:
    """Return the marker of a bug whose hunt takes long; those on top of a variant share builds with its suites."""
    if not bug.takes_long:
        return []
    variant = {"group": Path(bug.series).name} if bug.series else {}
    return [pytest.mark.long(**variant)]


@pytest.mark.parametrize("generator", all_generators())
def test_a_generator_has_a_bug_made_for_it(generator: str) -> None:
    assert any(generator in (bug.workload, bug.quick) for bug in BUGS)


@pytest.mark.parametrize("oracle", LOGIC)
def test_a_logic_oracle_has_a_bug_made_for_it(oracle: str) -> None:
    assert any(bug.alone and bug.oracles[0] == oracle and len(bug.oracles) <= 2 for bug in BUGS)


@pytest.mark.servers
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("bug", [pytest.param(bug, id=bug.name, marks=_marks(bug)) for bug in BUGS])
def test_an_injected_bug_is_found_and_replays(
    bug: Bug, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    record_property("told", hunt(bug, tmp_path, cases=CASES_OF_WORKLOAD if bug.workload else CASES))
