"""Tests of the parameters of an assertion's queries."""

import re
from collections.abc import Sequence

import pytest

from fuzz.errors import CaseError
from fuzz.pytest_plugin.checks import _with_params, steps_of

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
