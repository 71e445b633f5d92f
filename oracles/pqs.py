"""PQS, pivoted query synthesis: a row that a condition holds for is among those that it lets through.

Rigger and Su, "Testing Database Engines via Pivoted Query Synthesis", OSDI 2020. Pivot rows come from the query's
tables, one of each; what its WHERE says of them is worked out without the tables; and each condition that is false or
unknown is turned into one that is true. The paper has an interpreter of its own for conditions; here the server works
them out, of constants, so what is found is what access paths, joins and pruning lose, not what an operator gets wrong
everywhere.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

from oracles.canary_case import canary_case, query
from oracles.claims import PLAINLY, Claim, Played, Way
from oracles.metamorphic import Metamorphic
from oracles.observation import Outcome
from oracles.oracle import Canary
from oracles.pivoting import Pivots, pivots
from oracles.sampling import PIVOTED, Sample
from oracles.wording import texts_of

_MODES: Final = (PIVOTED.mode,)


class Pqs(Metamorphic):
    """A row that meets a query's conditions is found by it."""

    name: ClassVar[str] = "pqs"
    samples: ClassVar[tuple[Sample, ...]] = (PIVOTED,)
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary("misread_constant", canary_case(query("SELECT n FROM canary WHERE n * 10 % 10 = 0"), modes=_MODES)),
    )

    def claims(self, played: Played) -> Iterator[Claim]:
        """Yield the claim that the pivot rows are found."""
        plain = {step: sql for step, sql in played.queries().items() if not played.case.all_steps[step].params}
        found = {step: each for step, sql in plain.items() if (each := pivots(sql)) is not None}
        made = played.tight(found, lambda each: each.filtered)
        picking = played.way({step: each.pick() for step, each in made.items()}, PLAINLY)
        rows = _single_rows(played, picking, made)
        asking = played.way({step: made[step].truths(row) for step, row in rows.items()}, PLAINLY)
        truths = _single_rows(played, asking, {step: made[step] for step in rows})
        wanted = {step: made[step].rectified(rows[step], told) for step, told in truths.items()}
        if wanted:
            finding = played.way(wanted, PLAINLY)
            yield Claim(
                "a row is not found that all conditions hold for", frozenset(wanted), picking, finding, (asking,)
            )


def _single_rows(played: Played, way: Way, asked: Mapping[int, Pivots]) -> dict[int, list[str]]:
    """Return the values of the only row that was returned at each step, where one was."""
    if not asked:
        return {}
    steps = played.seen(way).steps
    return {
        step: texts_of(steps[step].rows[0])
        for step in asked
        if steps[step].outcome is Outcome.OK and len(steps[step].rows) == 1
    }
