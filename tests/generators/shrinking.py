"""A check that Hypothesis shrinks cases of generators."""

import random

import pytest
from hypothesis import find, settings

from fuzz.engines.property_based import cases
from fuzz.generators.generator import Generator, Scale
from oracles.model.case import Case


class _SmallEnough(BaseException):
    """The end of shrinking, when the case is as small as required."""


def assert_shrinks(
    generator: Generator, *, scene: int, characters: int, construct: str = "FULL JOIN", steps: int = 1
) -> None:
    """Require that a case with a construct shrinks to a scene of at most `scene` steps, and at most `steps` others.

    The first of these must have fewer characters than `characters`.
    """

    smallest: list[Case] = []

    def fails(case: Case) -> bool:
        failing = any(construct in step.sql for step in case.steps)
        smallest[:] = [case] if failing else smallest
        if failing and len(case.scene) <= scene and len(case.steps) <= steps and len(case.steps[0].sql) < characters:
            raise _SmallEnough
        return failing

    tiny = Scale(rows=20, relations=2, partitions=2, queries=1)
    try:
        find(cases(generator, tiny), fails, settings=settings(database=None, max_examples=400), random=random.Random(1))
    except _SmallEnough:
        return
    found = smallest[0]
    pytest.fail(
        f"the smallest case has a scene of {len(found.scene)} steps and {len(found.steps)} others, the first of "
        f"{len(found.steps[0].sql)} characters; allow that, or draw simpler alternatives first: "
        f"{[step.sql for step in found.all_steps]}"
    )
