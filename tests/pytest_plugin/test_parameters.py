"""Tests of the arguments of assertions: parameters of queries, and arguments that would have no effect."""

import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from fuzz.errors import CaseError
from fuzz.execution.modes.roles import ORDINARY
from fuzz.pytest_plugin.checks import Checks, Statements, _with_params, steps_of

TEXT = "CREATE TABLE t (a int); SELECT '$3' FROM t; SELECT a FROM t WHERE a = $2 OR a = $1; SELECT $1"


def test_each_query_has_the_parameters_that_it_names() -> None:
    steps = _with_params(steps_of([TEXT]), ("1", None))
    assert [step.params for step in steps] == [(), (), ("1", None), ("1",)]
    assert [step.params for step in _with_params(steps_of([TEXT]), ())] == [()] * 4


@pytest.mark.parametrize("params", [("1",), ("1", "2", "3")])
def test_other_numbers_of_parameters_are_refused(params: Sequence[str]) -> None:
    message = re.escape(f"params has {len(params)} values, but the highest parameter of a query is $2; give")
    with pytest.raises(CaseError, match=message):
        _with_params(steps_of([TEXT]), params)


@pytest.fixture
def checks(tmp_path: Path) -> Checks:
    """Return the assertions of a run whose servers are not reached."""
    executor: Any = None
    return Checks((), executor, "", {}, tmp_path)


@pytest.mark.parametrize("given", [{"mode": "merge_only"}, {"mode": "unknown"}, {"settings": {"work_mem": "64kB"}}])
def test_modes_of_no_statements_are_refused(checks: Checks, given: Mapping[str, Any]) -> None:
    with pytest.raises(CaseError, match=r"without statements judges earlier ones in their own modes; give mode and"):
        checks.no_leak(scene=(), **given)


@pytest.mark.parametrize("given", [{"ordered": True}, {"params": ("1",)}, {"may_fail": True}])
def test_arguments_of_statements_are_refused_for_generated_cases(checks: Checks, given: Mapping[str, Any]) -> None:
    number, _ = checks.draw("outer_joins", random.Random(0))
    with pytest.raises(CaseError, match=r"give ordered, params and may_fail to an assertion about statements"):
        checks._case(Statements(scene=(), case=number, **given))


def test_a_generated_case_is_ordinary_unless_the_scene_needs_a_superuser(checks: Checks) -> None:
    numbers = [checks.draw("outer_joins", random.Random(seed))[0] for seed in range(20)]

    def ordinary(scene: str) -> int:
        cases = [checks._case(Statements(scene=(scene,), case=number)) for number in numbers]
        return sum(ORDINARY in case.modes for case in cases)

    assert ordinary("CREATE TABLE t (a int)") > 0
    assert ordinary("CREATE EXTENSION pg_buffercache") == 0
