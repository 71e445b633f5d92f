"""Schedule: the cases of a campaign in order, computed from seed and generators without randomness.

Case indexes are assigned in ranges, to each of the G generators in turn. Range `n` belongs to generator `n % G` and has
the RANGE_SIZE indexes from `n // G * RANGE_SIZE`. The rest of an interrupted range is assigned again. So an interrupted
and resumed campaign executes the same cases as an uninterrupted one.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from oracles.model.case import CaseId

RANGE_SIZE = 8  # cases; small, so that a dying worker loses little, but large enough to keep messages rare


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
        """Return the rest of the range after the first `done` cases."""
        return Range(self.number, self.generator, self.first + done, self.end)

    @property
    def empty(self) -> bool:
        """Return whether the range has no cases."""
        return self.first >= self.end


class Schedule:
    """The sequence of ranges to execute: returned ones first, then the next that is not done."""

    def __init__(self, generators: tuple[str, ...], cases: int | None, done: Mapping[int, int]) -> None:
        """`cases` is the total number of cases; `done` has the number of executed cases by range number."""
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
        """Return the next range to execute, or None if all cases are assigned."""
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
        """Return the rest of a range to the schedule."""
        if not left.empty:
            self._returned.append(left)
