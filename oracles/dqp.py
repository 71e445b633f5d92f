"""DQP, differential query plans: a query has the same rows whatever plan it gets.

Ba and Rigger, "Keep It Simple: Testing Databases via Differential Query Plans", SIGMOD 2024. The plans are those of
`other_plans`, by which `result` settles whether a difference between arms is the suspect's fault. Here they are reason
enough for a finding, so a query has to be one whose text says that it returns the same each time.
"""

from collections.abc import Iterator
from typing import ClassVar, Final

from oracles.framework.canaries import canary_case, query
from oracles.framework.metamorphic import Metamorphic
from oracles.framework.other_plans import OTHER_PLANS
from oracles.framework.relations import MetamorphicRelation, Played
from oracles.model.oracle import Canary
from oracles.model.sampling import Sample
from oracles.sql.determinism import is_known

REPLANNED: Final = Sample("replanned", 40)  # one run for each kind of plan


class Dqp(Metamorphic):
    """A plan is a matter of time, not of rows."""

    name: ClassVar[str] = "dqp"
    samples: ClassVar[tuple[Sample, ...]] = (REPLANNED,)
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary(
            "lose_looped",
            canary_case(query("SELECT canary.n FROM canary JOIN flock ON canary.n = flock.n"), samples=(REPLANNED,)),
        ),
    )

    def claims(self, played: Played) -> Iterator[MetamorphicRelation]:
        """Yield a claim for each kind of plan: tables are filled under the case's own, so that only queries differ."""
        known = {position: (sql, sql) for position, sql in played.exact().items() if is_known(sql)}
        for mode in OTHER_PLANS:
            name = f"rows change when plans are {mode.name}"
            yield from played.claims(known, name, mode.settings)
