"""Schedule: the cases of a campaign in order, computed from the generators' weights without randomness or clock.

Case indexes are assigned in ranges. Each range goes to the generator that will have the fewest cases relative to its
weight when it has the range, the first of equals. The first range of a generator is one case, and later ones double. So
cases that have a large weight, as they are cheap or directed at what the patches change, come first, and what any case
shows is found before expensive cases begin. The rest of an interrupted range is assigned again. So an interrupted and
resumed campaign executes the same cases as an uninterrupted one.

A number of first cases of some generators may precede all others. A generator may begin with a later case than 0.

Ranges, reductions and retries are the jobs of workers, which return their results.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import count, takewhile

from fuzz.campaign.counters import Counters
from oracles.model.case import CaseId

# Cases of the largest ranges; small, so that a dying worker loses little, but large enough to keep messages rare.
RANGE_SIZE = 8


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


def _ranges(
    weights: Mapping[str, int], size: int, first: Mapping[str, int], begin: Mapping[str, int]
) -> Iterator[Range]:
    """Yield ranges without end. Those of a smaller weight have fewer cases, so that no generator waits long.

    `first` has the number of cases by generator that precede all others. Each has its own range. `begin` has the
    index of a generator's first case, unless it is 0.
    """
    most = max(weights.values())
    assigned = dict.fromkeys(weights, 0)
    numbers = count()

    def numbered(name: str, start: int, end: int) -> Range:
        return Range(next(numbers), name, begin.get(name, 0) + start, begin.get(name, 0) + end)

    def end(name: str) -> int:
        """Return how many cases the generator will have with its next range."""
        limit = max(1, size * weights[name] // most)
        return assigned[name] + min(limit, max(1, assigned[name]))

    for name, cases in first.items():
        yield from (numbered(name, case, case + 1) for case in range(cases))
        assigned[name] = cases
    while True:
        name = min(weights, key=lambda each: Fraction(end(each), weights[each]))
        yield numbered(name, assigned[name], end(name))
        assigned[name] = end(name)


def next_cases(
    weights: Mapping[str, int], done: Mapping[int, int], first: Mapping[str, int], begin: Mapping[str, int]
) -> dict[str, int]:
    """Return the index of each generator's first case that was not executed. Later ones may have been.

    Parameters are those of `Schedule`.
    """
    found = {name: begin.get(name, 0) for name in weights}
    last = max(done, default=-1)
    for each in takewhile(lambda each: each.number <= last, _ranges(weights, RANGE_SIZE, first, begin)):
        if found[each.generator] == each.first:
            found[each.generator] += done.get(each.number, 0)
    return found


def _limited(ranges: Iterator[Range], cases: int) -> Iterator[Range]:
    """Yield ranges up to a total number of cases; the last one may be cut off."""
    while cases > 0:
        each = next(ranges)
        yield replace(each, end=min(each.end, each.first + cases))
        cases -= each.end - each.first


class Schedule:
    """The sequence of ranges to execute: returned ones first, then the next that is not done."""

    def __init__(
        self,
        weights: Mapping[str, int],
        cases: int | None,
        done: Mapping[int, int],
        size: int = RANGE_SIZE,
        first: Mapping[str, int] | None = None,
        begin: Mapping[str, int] | None = None,
    ) -> None:
        """`weights` has relative numbers of cases by generator, `cases` is the total number of cases.

        `done` has the number of executed cases by range number. `size` is the number of cases in the largest ranges.
        `first` has numbers of cases by generator; these precede all other cases. `begin` has the indexes of the
        generators' first cases, unless they are 0.
        """
        ranges = _ranges(weights, size, first or {}, begin or {})
        self._ranges = ranges if cases is None else _limited(ranges, cases)
        self._done = done
        self._returned: deque[Range] = deque()

    def next(self) -> Range | None:
        """Return the next range to execute, or None if all cases are assigned."""
        if self._returned:
            return self._returned.popleft()
        rests = (each.after(self._done.get(each.number, 0)) for each in self._ranges)
        return next((rest for rest in rests if not rest.empty), None)

    def give_back(self, left: Range) -> None:
        """Return the rest of a range to the schedule."""
        if not left.empty:
            self._returned.append(left)


@dataclass(frozen=True, slots=True)
class Reduction:
    """The job to reduce the stored finding of this fingerprint and write its reproducer."""

    fingerprint: str


@dataclass(frozen=True, slots=True)
class Retry:
    """Judge the case of the stored doubt of this name again, several times and alone."""

    doubt: str


@dataclass(slots=True)
class RangeResult:
    """Result of the first `done` cases of a range. Their findings are already in the store."""

    done: int = 0
    counters: Counters = field(default_factory=Counters)
    found: list[str] = field(default_factory=list)  # fingerprints that are new in the store
    failures: dict[str, str] = field(default_factory=dict)  # of pgduel: generator and kind of error → line about one
    outage: str | None = None  # reason for an early end: a server is down
    fatal: str | None = None  # reason why the campaign cannot continue: a finding could not be stored


@dataclass(frozen=True, slots=True)
class ReductionResult:
    """Result of a reduction: a line for the user. The reproducer's path is already in the store."""

    note: str


@dataclass(frozen=True, slots=True)
class RetryResult:
    """Result of a Retry: a line for the user, and fingerprints of new findings. The outcome is in the store."""

    note: str
    found: tuple[str, ...] = ()
    client_cpu: float = 0.0  # CPU seconds of the worker
    server_cpu: float = 0.0  # CPU seconds of the retry's own servers


Job = Range | Reduction | Retry
Result = RangeResult | ReductionResult | RetryResult
