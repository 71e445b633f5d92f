"""DQP, differential query plans: a query must return the same rows under every plan.

Ba and Rigger, "Keep It Simple: Testing Databases via Differential Query Plans", SIGMOD 2024. The plans are those of
`OTHER_PLANS`. The oracle `result` uses them to confirm differences between arms; here, a difference between two plans
is a finding. So only queries are judged that are deterministic according to their text.
"""

from collections.abc import Iterator
from typing import ClassVar, Final

from oracles.framework.canaries import canary_case, query
from oracles.framework.metamorphic import Metamorphic
from oracles.framework.relations import ArmRuns, MetamorphicRelation
from oracles.framework.shared_runs import OTHER_PLANS
from oracles.model.oracle import Canary, Sample
from oracles.sql.determinism import is_known

REPLANNED: Final = Sample("replanned", 40)  # one run for each kind of plan


class Dqp(Metamorphic):
    """Queries that return other rows under another plan."""

    name: ClassVar[str] = "dqp"
    samples: ClassVar[tuple[Sample, ...]] = (REPLANNED,)
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary(
            "lose_looped",
            canary_case(query("SELECT canary.n FROM canary JOIN flock ON canary.n = flock.n"), samples=(REPLANNED,)),
        ),
    )

    def relations(self, arm_runs: ArmRuns) -> Iterator[MetamorphicRelation]:
        """Yield a relation for each plan type.

        Its settings apply to the queries only, so that all variants read the same data.
        """
        known = {position: (sql, sql) for position, sql in arm_runs.exact_queries().items() if is_known(sql)}
        for mode in OTHER_PLANS:
            name = f"rows change when plans are {mode.name}"
            yield from arm_runs.relations(known, name, mode.settings)
