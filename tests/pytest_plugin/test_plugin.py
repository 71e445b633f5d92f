"""Tests of the plugin without servers: its options, errors in one line, and a run that does not use it."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fuzz import workdir
from fuzz.pytest_plugin.plugin import _OPTIONS, Duel, Scene
from tests.pytest_plugin.conftest import PLUGIN, Run

pytest_plugins = ["pytester"]

_ANY = "def test_any(duel):\n    duel.same('SELECT 1')\n"
_UNUSED = f"""
import sys

def test_unused():
    ours = ("fuzz.", "oracles", "psycopg", "pglast", "hypothesis")
    assert {{name for name in sys.modules if name.startswith(ours)}} <= {{"fuzz.pytest_plugin", "{PLUGIN}"}}
    assert "multiprocessing.connection" not in sys.modules
"""
_WITHOUT_HYPOTHESIS = """
import sys

sys.modules["hypothesis"] = None
import pgduel

class TestJoins:
    @pgduel.given_cases("outer_joins")
    def test_generated(self, duel, case):
        duel.same(case)
"""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--pgduel-base", "nowhere"), "no source found for 'nowhere'; give pg17, pg18, a directory"),
        (("--pgduel-series", "nowhere"), "no series found for 'nowhere'"),
        (("--pgduel-range", "a..b"), "--pgduel-range needs a checkout; give --pgduel-repo"),
        (("--pgduel-timeout", "soon"), "--pgduel-timeout soon is no number of seconds"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_wrong_option_is_one_line(run: Run, options: tuple[str, ...], message: str) -> None:
    result = run(_ANY, *options)
    result.assert_outcomes(errors=1)
    heading, *rest = result.stdout.str().partition("ERROR at setup of test_any")[2].splitlines()
    assert heading.strip(" _") == ""
    assert message in rest[0]
    assert rest[1].startswith("====")


@pytest.mark.parametrize(
    "assertion",
    [
        lambda duel: duel.same("SELECT 1", Path("more.sql")),
        lambda duel: duel.same("SELECT $1", params=(None, 7)),
        lambda duel: duel.same_plan("SELECT 1", mode=None),
        lambda duel: duel.no_leak("SELECT 1", settings={"work_mem": 64}),
        lambda duel: duel.faster("SELECT 1", settings={"work_mem": 64}),
    ],
    ids=["statement", "parameter", "mode", "setting", "setting of times"],
)
def test_arguments_that_are_no_text_are_refused(assertion: Callable[[Any], None]) -> None:
    service: Any = None  # is not reached
    with pytest.raises(
        pytest.fail.Exception, match=r"^(.*more.*|7|None|64) is no text; give statements, modes, settings"
    ):
        assertion(Duel(service, Scene()))


def test_a_run_without_the_fixtures_imports_nothing_of_pgduel(run: Run) -> None:
    run(_UNUSED, "-p", "no:hypothesispytest").assert_outcomes(passed=1)


def test_without_hypothesis_generated_cases_fail_with_one_line(run: Run) -> None:
    result = run(_WITHOUT_HYPOTHESIS, "-p", "no:hypothesispytest")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["_* TestJoins.test_generated _*", "given_cases needs Hypothesis; *", "=*"], consecutive=True
    )


def test_the_page_lists_the_options() -> None:
    page = (workdir.PROJECT / "docs" / "pytest.md").read_text()
    assert re.findall(r"^\| `--pgduel-(\w+) ([^`]+)` \|", page, re.MULTILINE) == [
        (name, metavar) for name, (metavar, _, _) in _OPTIONS.items()
    ]
