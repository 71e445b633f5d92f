"""DQP, differential query plans: a query must return the same rows under every plan.

Ba and Rigger, "Keep It Simple: Testing Databases via Differential Query Plans", SIGMOD 2024. The plans are those of
`OTHER_PLANS`, which the oracle `result` uses to confirm differences between arms, and `FURTHER_PLANS`. Here, a
difference between two plans is a finding. So only queries are judged that are deterministic according to their text.
"""

from collections.abc import Iterator
from typing import ClassVar, Final

from oracles.framework.canaries import canary_case, query
from oracles.framework.metamorphic import Metamorphic
from oracles.framework.relations import ArmRuns, MetamorphicRelation
from oracles.framework.shared_runs import OTHER_PLANS, SERIAL
from oracles.model.mode import Mode
from oracles.model.oracle import Canary, Sample
from oracles.sql.determinism import is_known

REPLANNED: Final = Sample("replanned", 40)  # one run for each kind of plan

# Plans that those of `OTHER_PLANS` have by chance only: hash joins and sorts with temporary files, inner sides that are
# executed again or remembered, bitmaps of any index, input in the order of an index, and other orders of joins.
FURTHER_PLANS: Final = (
    Mode(
        "spilled",
        (
            ("enable_mergejoin", "off"),
            ("enable_nestloop", "off"),
            ("work_mem", "64kB"),
            ("hash_mem_multiplier", "1"),
            SERIAL,
        ),
    ),
    Mode(
        "memoized",
        (
            ("enable_hashjoin", "off"),
            ("enable_mergejoin", "off"),
            ("enable_material", "off"),
            ("enable_seqscan", "off"),
            SERIAL,
        ),
    ),
    Mode(
        "bitmapped",
        (("enable_seqscan", "off"), ("enable_indexscan", "off"), ("enable_indexonlyscan", "off"), SERIAL),
    ),
    Mode(
        "presorted",
        (
            ("enable_hashjoin", "off"),
            ("enable_hashagg", "off"),
            ("enable_seqscan", "off"),
            ("enable_bitmapscan", "off"),
            SERIAL,
        ),
    ),
    Mode("as_written", (("from_collapse_limit", "1"), ("join_collapse_limit", "1"))),
    Mode("genetic_order", (("geqo_threshold", "2"), ("geqo_effort", "1"))),
)


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
        for mode in (*OTHER_PLANS, *FURTHER_PLANS):
            name = f"rows change when plans are {mode.name}"
            yield from arm_runs.relations(known, name, mode.settings)
