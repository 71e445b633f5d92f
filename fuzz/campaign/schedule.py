"""Schedule: which cases a campaign runs, in which order. Arithmetic on (seed, generators), so nothing is drawn.

Case indexes are handed out in ranges, generator by generator in turn. Range `n` belongs to generator `n % G` and
holds the `size` indexes from `n // G * size`. Work that was cut off is given out again from where it stopped, so the
set of cases done is the same whether a campaign ran through or was interrupted and resumed.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from oracles.model.case import CaseId

RANGE_SIZE = 8  # cases: small enough to lose little when a worker dies, large enough to keep messages rare


@dataclass(frozen=True, slots=True)
class Range:
    """The cases `first` to `end - 1` of one generator; `number` is the range's place in the schedule."""

    number: int
    generator: str
    first: int
    end: int

    def case_ids(self, seed: int) -> Iterator[CaseId]:
        """Yield the cases in order."""
        return (CaseId(seed, self.generator, index) for index in range(self.first, self.end))

    def after(self, done: int) -> "Range":
        """Return what is left when the first `done` cases are done."""
        return Range(self.number, self.generator, self.first + done, self.end)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        return self.first >= self.end


class Schedule:
    """Hands out ranges: those given back first, then the next one not yet done."""

    def __init__(self, generators: tuple[str, ...], cases: int | None, done: Mapping[int, int]) -> None:
        """`cases` limits the number of cases altogether; `done` says, by range number, how many cases were done."""
        self._generators = generators
        self._cases = cases
        self._done = done
        self._returned: deque[Range] = deque()
        self._number = 0

    def _numbered(self, number: int) -> Range:
        turn, which = divmod(number, len(self._generators))
        first = turn * RANGE_SIZE
        size = RANGE_SIZE if self._cases is None else min(RANGE_SIZE, max(0, self._cases - number * RANGE_SIZE))
        return Range(number, self._generators[which], first, first + size)

    def next(self) -> Range | None:
        """Return the next range to run, or None when all cases have been given out."""
        if self._returned:
            return self._returned.popleft()
        while self._cases is None or self._number * RANGE_SIZE < self._cases:
            number = self._number
            self._number += 1
            left = self._numbered(number).after(self._done.get(number, 0))
            if not left.empty:
                return left
        return None

    def give_back(self, left: Range) -> None:
        """Take back what a worker did not do."""
        if not left.empty:
            self._returned.append(left)
