"""Engine: Hypothesis makes every random choice of a generator, so a failing case shrinks choice by choice.

Zero is the simplest value of each choice, so cases shrink towards few simple tables and short queries. There are two
profiles:

- `ci`: the same 40 examples each time. `hypothesis.target` does not change them, as its scores may depend on plans.
- `campaign`: new examples each time, and more of them. Up to half are changed ones of those with the highest scores of
  `hypothesis.target`. The cache keeps failing examples and those with high scores, and the next run begins with them.
"""

import os
from collections.abc import Sequence
from typing import Final

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase

from fuzz import workdir
from fuzz.engines.seeded import draw_case
from fuzz.generators.generator import Generator, Scale
from oracles.model.case import Case
from oracles.model.feature import Feature

# Hypothesis stores every choice of an example, up to several thousand. So cases are small, and there are many.
SMALL = Scale(rows=60, relations=3, partitions=4, queries=4)

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
_PROFILES: Final = {
    "ci": settings(
        max_examples=40,
        derandomize=True,
        deadline=None,
        suppress_health_check=_SLOW,
        phases=[phase for phase in Phase if phase is not Phase.target],
    ),
    # With fewer than 1,000 examples, Hypothesis would use all of the second half for target scores, even in vain.
    "campaign": settings(
        max_examples=1000, derandomize=False, deadline=None, suppress_health_check=_SLOW, phases=tuple(Phase)
    ),
}


def cases(generator: Generator, scale: Scale = SMALL, features: Sequence[Feature] = ()) -> st.SearchStrategy[Case]:
    """Return a strategy for the generator's cases, with modes, for arms with these features."""
    return st.randoms(use_true_random=False).map(lambda rng: draw_case(rng, generator, scale, features))


def profile(part: str = "") -> settings:
    """Return the profile named in $HYPOTHESIS_PROFILE, by default `ci`, as a decorator of property tests.

    A profile that Hypothesis loads would apply to all tests of the process. Hypothesis identifies the kept examples of
    a test by its function; `part` separates those of tests with one function.
    """
    found = _PROFILES[os.environ.get("HYPOTHESIS_PROFILE", "ci")]
    if found.derandomize:  # Hypothesis refuses a database then
        return found
    return settings(found, database=DirectoryBasedExampleDatabase(workdir.examples() / part))
