"""The cases that tests of generators without servers look at. Each is made once in a process."""

import random
from functools import cache

from fuzz.generators.generator import Generator, Scale
from oracles.model.case import Case


def cases_of(kind: type[Generator], count: int, scale: Scale | None = None) -> list[Case]:
    """Return the first `count` cases of a generator."""
    return [_case(kind, number, scale or Scale()) for number in range(count)]


@cache
def _case(kind: type[Generator], number: int, scale: Scale) -> Case:
    return kind().generate(random.Random(f"unit/{number}"), scale)
