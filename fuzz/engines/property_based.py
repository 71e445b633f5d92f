"""Engine: Hypothesis makes every random choice of a generator, so a failing case shrinks choice by choice.

Zero is the simplest value of each choice, so cases shrink towards few simple tables and short queries. There are two
profiles: `ci` (the same examples each time) and `dev` (new examples, and more of them).
"""

import os
from collections.abc import Sequence
from typing import Final

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from fuzz.engines.seeded import draw_case
from fuzz.generators.generator import Generator, Scale
from oracles.model.case import Case
from oracles.model.feature import Feature

# Hypothesis stores every choice of an example, up to several thousand. So cases are small, and there are many.
SMALL = Scale(rows=60, relations=3, partitions=4, queries=4)

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
_PROFILES: Final = {
    "ci": settings(max_examples=40, derandomize=True, deadline=None, suppress_health_check=_SLOW),
    "dev": settings(max_examples=400, deadline=None, suppress_health_check=_SLOW, print_blob=True),
}


def cases(generator: Generator, scale: Scale = SMALL, features: Sequence[Feature] = ()) -> st.SearchStrategy[Case]:
    """Return a strategy for the generator's cases, with modes, for arms with these features."""
    return st.randoms(use_true_random=False).map(lambda rng: draw_case(rng, generator, scale, features))


def profile() -> settings:
    """Return the profile named in $HYPOTHESIS_PROFILE, by default `ci`, as a decorator of property tests.

    A profile that Hypothesis loads would apply to all tests of the process.
    """
    return _PROFILES[os.environ.get("HYPOTHESIS_PROFILE", "ci")]
