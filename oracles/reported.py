"""Reported: two queries of which another program says that they have the same rows have them when we play them.

Other fuzzers report what contradicts itself by their own oracles. What they did is played as a case, in which a query
that is to have the rows of the one before it bears a tag; nothing is taken from the report but that claim.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import ClassVar, Final

from oracles.framework.canaries import canary_case, query
from oracles.framework.metamorphic import Metamorphic
from oracles.framework.relations import MetamorphicRelation, Played
from oracles.model.case import Case, Step
from oracles.model.oracle import Canary
from oracles.model.sampling import Sample

AS_BEFORE: Final = "as before"  # the tag of a query that is to have the rows of the step before it
OF_THIS_SCENE: Final = "of this scene"  # the tag of one that is to have them because of what the tables hold
REPORTED: Final = Sample("reported", 1)  # cases of other sources have no step to judge


class Reported(Metamorphic):
    """What another fuzzer takes for a contradiction is one."""

    name: ClassVar[str] = "reported"
    samples: ClassVar[tuple[Sample, ...]] = (REPORTED,)
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary(
            "drop_row",
            canary_case(query("SELECT n FROM flock"), replace(query("SELECT n FROM canary"), tags=(AS_BEFORE,))),
        ),
    )

    def claims(self, played: Played) -> Iterator[MetamorphicRelation]:
        """Yield the claims that tags make, unless sums of floating-point numbers are shown."""
        steps = played.case.all_steps
        tagged = [position for position, step in enumerate(steps) if AS_BEFORE in step.tags]
        if tagged:
            exact = played.exact()
            pairs = {each: (steps[each - 1].sql, exact[each]) for each in tagged if {each - 1, each} <= exact.keys()}
            yield from played.claims(pairs, "queries reported to have the same rows have not")

    def may_become(self, whole: Case, smaller: Case) -> bool:
        """Tell whether each claim is one of the whole case's: of other queries, nobody has claimed anything."""
        return all(
            claimed in _claimed(whole) and (smaller.scene == whole.scene or OF_THIS_SCENE not in claimed[1].tags)
            for claimed in _claimed(smaller)
        )


def _claimed(case: Case) -> set[tuple[Step, Step]]:
    return {pair for pair in pairwise(case.all_steps) if AS_BEFORE in pair[1].tags}
