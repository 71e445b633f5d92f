"""Measuring arms interleaved: each round visits all points, and at each point all arms, one right after another.

Each other round goes through the arms backwards (ABBA), so that neither a machine that slowly changes its speed nor
what one measurement leaves behind favours an arm. A burst of other load spoils a round of some points, not a point:
many short rounds serve better than few long ones.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from fuzz.bench.bench import Point, Samples


def turns(points: Sequence[Point], arms: Sequence[str], rounds: int) -> Iterator[tuple[int, Point, str]]:
    """Return (round, point, arm) in the order of measurement."""
    for number in range(rounds):
        order = arms if number % 2 == 0 else tuple(reversed(arms))
        for point in points:
            for arm in order:
                yield number, point, arm


def measure_interleaved(
    points: Sequence[Point],
    arms: Sequence[str],
    rounds: int,
    measure: Callable[[int, Point, str], float],
) -> Samples:
    """Return the measurements of each point and arm, one a round, in order."""
    samples: dict[tuple[Point, str], list[float]] = defaultdict(list)
    for number, point, arm in turns(points, arms, rounds):
        samples[point, arm].append(measure(number, point, arm))
    return samples
