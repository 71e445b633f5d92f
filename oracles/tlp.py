"""TLP, ternary logic partitioning: a query has the rows for which p holds, those for which it does not, and those for
which it is unknown.

Rigger and Su, "Finding Bugs in Database Systems via Query Partitioning", OOPSLA 2020. All four variants of the paper:
WHERE, HAVING, aggregates and DISTINCT. Here p is one of the query's own conditions, so whatever a generator writes into
WHERE and HAVING is tried under all three truth values.
"""

from collections.abc import Iterator
from typing import ClassVar

from oracles.canary_case import canary_case, query
from oracles.claims import Claim, Played
from oracles.metamorphic import Metamorphic
from oracles.oracle import Canary
from oracles.query_partitioning import partitioned
from oracles.sampling import PARTITIONED, Sample

_MODES = (PARTITIONED.mode,)


class Tlp(Metamorphic):
    """A query has the rows of its three parts."""

    name: ClassVar[str] = "tlp"
    samples: ClassVar[tuple[Sample, ...]] = (PARTITIONED,)
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary("keep_unknown", canary_case(query("SELECT n FROM canary WHERE nullif(n, 2) < 4"), modes=_MODES)),
        Canary(
            "keep_unknown",
            canary_case(query("SELECT count(*) FROM canary GROUP BY n HAVING max(nullif(n, 2)) < 4"), modes=_MODES),
        ),
        Canary("keep_unknown", canary_case(query("SELECT sum(n) FROM canary WHERE nullif(n, 2) < 4"), modes=_MODES)),
        Canary("lose_negated", canary_case(query("SELECT DISTINCT n FROM canary WHERE n > 1"), modes=_MODES)),
    )

    def claims(self, played: Played) -> Iterator[Claim]:
        """Yield a claim for each variant."""
        made = {step: each for step, sql in played.exact().items() if (each := partitioned(sql)) is not None}
        pairs = {step: (each.whole, each.parts) for step, each in made.items()}
        names = {step: f"a query is not its three parts, by {each.shape}" for step, each in made.items()}
        yield from played.claims(pairs, names)
