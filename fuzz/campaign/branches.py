"""Branches: what a campaign should reach of a feature that an arm has, so that it can say what it did not reach.

A feature is known by a setting that comes with it. Its branches are reach counters, FEATURE.KIND.BRANCH.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final

_DISCARDING: Final = ("inner", "semi", "right", "right_anti")
_EMITTING: Final = ("left", "anti", "full")
_BLOOM: Final = (
    *(f"bloom.{kind}.discarded" for kind in _DISCARDING),
    *(f"bloom.{kind}.emitted" for kind in _EMITTING),
    *(f"bloom.{kind}.shared" for kind in _DISCARDING),  # a shared hash table cannot emit rows while it is filled
    *(
        f"bloom.{kind}.{branch}"
        for kind in _DISCARDING + _EMITTING
        for branch in ("false_positive", "deferred", "switched_off", "late")
    ),
)
BRANCHES: Final[Mapping[str, tuple[str, ...]]] = {"enable_hashjoin_bloom": _BLOOM}


def expected(settings: AbstractSet[str]) -> tuple[str, ...]:
    """Return the branches of all features that come with one of the settings, which are in lower case."""
    return tuple(branch for setting, branches in BRANCHES.items() if setting in settings for branch in branches)
