"""Metamorphic joins: claims about joins that an arm must not contradict.

An outer join is a smaller join and the rows without a match; one side is its rows that have a match, and those that
have none; and a Bloom filter changes no row (where the arm has such a filter: others lack its setting, which is not
taken for agreement).
"""

from collections.abc import Iterator
from typing import ClassVar, Final

from oracles.canary_case import canary_case, query
from oracles.claims import Claim, Played, Way
from oracles.determinism import is_known
from oracles.join_rewriting import rewritten
from oracles.metamorphic import Metamorphic
from oracles.mode import Mode
from oracles.oracle import Canary
from oracles.sampling import REWRITTEN, Sample

WITHOUT_FILTER: Final = Mode("without Bloom filters", (("enable_hashjoin_bloom", "off"),), optional=True)


class MetamorphicJoins(Metamorphic):
    """The same join asked for in another way has the same rows."""

    name: ClassVar[str] = "metamorphic_joins"
    samples: ClassVar[tuple[Sample, ...]] = (REWRITTEN,)
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary(
            "lose_unmatched",
            canary_case(
                query("SELECT canary.n, nest.name FROM canary LEFT JOIN nest ON canary.n = nest.n"),
                modes=(REWRITTEN.mode,),
            ),
        ),
        Canary(
            "lose_appended",
            canary_case(
                query("SELECT n FROM canary WHERE EXISTS (SELECT 1 FROM flock WHERE flock.n = canary.n + 1)"),
                modes=(REWRITTEN.mode,),
            ),
        ),
    )

    def claims(self, played: Played) -> Iterator[Claim]:
        """Yield the claims about outer joins, about sides of joins, and about the filter."""
        queries = played.exact()
        made = {position: rewritten(sql) for position, sql in queries.items()}
        plain = {position for position in queries if not played.case.all_steps[position].params}
        parts = {position: each.parts for position, each in made.items() if each.parts}
        sides = {position: each for position, each in made.items() if each.whole and position in plain}
        joins = {
            position: sql
            for position, sql in queries.items()
            if is_known(sql) and ("JOIN" in sql.upper() or made[position])
        }
        if parts:
            yield Claim("outer join is not its parts", frozenset(parts), Way(), played.way(parts))
        if sides:
            whole = played.way({position: each.whole for position, each in sides.items()})
            halves = played.way({position: each.halves for position, each in sides.items()})
            yield Claim("side of a join is not its halves", frozenset(sides), whole, halves)
        if joins:
            yield Claim("Bloom filter changes rows", frozenset(joins), Way(), played.way(joins, WITHOUT_FILTER))
