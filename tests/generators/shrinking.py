"""What tests of generators of joins share: a failing case becomes small."""

import random

import pytest
from hypothesis import find, settings

from fuzz.engines.property_based import cases
from fuzz.generators.generator import Generator, Scale
from oracles.model.case import Case


class _Little(BaseException):
    """The case in hand is as small as asked for: what Hypothesis would do to it further is not waited for."""


def assert_shrinks(generator: Generator, *, scene: int, characters: int) -> None:
    """Have a case with a full join shrink to one step of so few characters, on a scene of so few steps."""

    def fails(case: Case) -> bool:
        failing = any("FULL JOIN" in step.sql for step in case.steps)
        if failing and len(case.scene) <= scene and len(case.steps) == 1 and len(case.steps[0].sql) < characters:
            raise _Little
        return failing

    tiny = Scale(rows=20, relations=2, partitions=2, queries=1)
    with pytest.raises(_Little):
        find(cases(generator, tiny), fails, settings=settings(database=None), random=random.Random(1))
