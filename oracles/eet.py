"""EET, equivalent expression transformation: a query means the same with its expressions written otherwise.

Jiang and Su, "Detecting Logic Bugs in Database Engines via Equivalent Expression Transformation", OSDI 2024. Any query
will do: what changes is every condition, at every level of it, and every value that it shows.
"""

from collections.abc import Iterator
from typing import ClassVar, Final

from oracles.canary_case import canary_case, query
from oracles.claims import Claim, Played
from oracles.expression_transforming import transformed
from oracles.metamorphic import Metamorphic
from oracles.oracle import Canary
from oracles.sampling import TRANSFORMED, Sample

_MODES: Final = (TRANSFORMED.mode,)


class Eet(Metamorphic):
    """Another way to write a condition or a value changes nothing."""

    name: ClassVar[str] = "eet"
    samples: ClassVar[tuple[Sample, ...]] = (TRANSFORMED,)
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary("choose_first", canary_case(query("SELECT n FROM canary WHERE n < 3"), modes=_MODES)),
        Canary("lose_negated", canary_case(query("SELECT max(n) FROM canary WHERE n <= 3"), modes=_MODES)),
    )

    def claims(self, played: Played) -> Iterator[Claim]:
        """Yield the claim that nothing changes."""
        made = {position: transformed(sql) for position, sql in played.exact().items()}
        changed = {position: sql for position, sql in made.items() if sql}
        yield from played.claim_of("an expression is not what it was written as otherwise", changed)
