"""CODDTest, constant folding and propagation: a query means the same with a constant in the place of what is one.

Zhang and Rigger, "Constant Optimization Driven Database System Testing", SIGMOD 2025. A subquery that needs no row from
outside is asked for first, and then replaced by what it returned; and constants are put into subqueries, so that
partitions are pruned while the query runs and not when it is planned, indexes are entered with what is not yet known,
and estimates are made without it.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

from oracles.canary_case import canary_case, query
from oracles.claims import PLAINLY, Claim, Played
from oracles.constant_folding import folded, question, unfolded
from oracles.metamorphic import Metamorphic
from oracles.observation import Outcome
from oracles.oracle import Canary
from oracles.sampling import FOLDED, Sample
from oracles.wording import texts_of

_MODES: Final = (FOLDED.mode,)


class Coddtest(Metamorphic):
    """A constant and what it stands for are one."""

    name: ClassVar[str] = "coddtest"
    samples: ClassVar[tuple[Sample, ...]] = (FOLDED,)
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary(
            "misread_constant",
            canary_case(query("SELECT n FROM canary WHERE n = (SELECT max(flock.n) FROM flock)"), modes=_MODES),
        ),
        Canary("misread_constant", canary_case(query("SELECT count(*) FROM canary WHERE n < 3"), modes=_MODES)),
    )

    def claims(self, played: Played) -> Iterator[Claim]:
        """Yield a claim for each direction."""
        plain = {step: sql for step, sql in played.exact().items() if not played.case.all_steps[step].params}
        answers = _answers(played, plain)
        made = {step: sql for step, each in answers.items() if (sql := folded(plain[step], each))}
        yield from played.claim_of("a subquery is not what it returned", made)
        moved = {step: sql for step, each in plain.items() if (sql := unfolded(each))}
        yield from played.claim_of("a constant is not itself in a subquery", moved)


def _answers(played: Played, queries: Mapping[int, str]) -> dict[int, tuple[tuple[int, str], ...]]:
    """Return what the subqueries of each query return, where that could be asked."""
    asked = {step: sql for step, each in queries.items() if (sql := question(each))}
    if not asked:
        return {}
    steps = played.seen(played.way(asked, PLAINLY)).steps
    return {
        step: tuple((int(number), value) for number, value in map(texts_of, steps[step].rows))
        for step in asked
        if steps[step].outcome is Outcome.OK
    }
