"""Running a bench: arms prepared, measured interleaved, and held against the first of them.

Medians of ratios, and how sure they are.

Measuring arms interleaved: each round visits all points, and at each point all arms, one right after another.

Each other round goes through the arms backwards (ABBA), so that neither a machine that slowly changes its speed nor
what one measurement leaves behind favours an arm. A burst of other load spoils a round of some points, not a point:
many short rounds serve better than few long ones.
"""

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy
from scipy.stats import bootstrap

from fuzz.bench.bench import Bench, Point, Samples
from fuzz.servers import Report
from fuzz.servers.arm import Arm

CONFIDENCE = 0.95
_RESAMPLES = 4000
_SEED = 0  # the same measurements give the same interval


@dataclass(frozen=True, slots=True)
class Ratio:
    """A median of ratios and the ends of its confidence interval."""

    ratio: float
    low: float
    high: float


def median_ratio(measured: Sequence[float], against: Sequence[float]) -> Ratio:
    """Return the median of measured / against, round by round, with a 95 % percentile bootstrap interval.

    Both are positive, at least two, and of the same rounds. What slowed both arms of a round down drops out of its
    ratio, as it would not out of a ratio of medians; without such noise the two are equally sure.
    """
    ratios = numpy.asarray(measured) / numpy.asarray(against)
    drawn = bootstrap(
        (ratios,),
        numpy.median,
        vectorized=True,
        n_resamples=_RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=numpy.random.default_rng(_SEED),
    )
    interval = drawn.confidence_interval
    return Ratio(float(numpy.median(ratios)), float(interval.low), float(interval.high))


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


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: an arm held against the first one at a point; `mail` is what the mail says there.

    `ratio` is the median of the rounds' ratios, which need not be that of the medians.
    """

    case: str
    arm: str
    against: str
    ratio: float
    low: float
    high: float
    mail: float | None
    median: float  # of `arm`, in the bench's unit
    median_against: float
    samples: tuple[float, ...]
    samples_against: tuple[float, ...]
    extras: Mapping[str, float]


def run_bench(
    bench: Bench, arms: Sequence[Arm], points: Sequence[Point], *, rounds: int, seconds: int, report: Report
) -> list[Row]:
    """Measure all arms at all points, `rounds` times for `seconds` each. Raises BenchError, ServerError."""
    for arm in arms:
        report(f"preparing {arm.name}")
        bench.prepare(arm, points)
    by_name = {arm.name: arm for arm in arms}

    def measure(number: int, point: Point, name: str) -> float:
        report(f"round {number + 1} of {rounds}: {bench.label(point)}, {name}")
        return bench.measure(by_name[name], point, seconds)

    with ExitStack() as stack:
        for arm in arms:
            stack.enter_context(bench.conditions(arm))
        samples = measure_interleaved(points, tuple(by_name), rounds, measure)
    return [_row(bench, samples, point, arm.name, arms[0].name) for point in points for arm in arms[1:]]


def _row(bench: Bench, samples: Samples, point: Point, arm: str, against: str) -> Row:
    mine, theirs = samples[point, arm], samples[point, against]
    ratio = median_ratio(mine, theirs)
    return Row(
        bench.label(point),
        arm,
        against,
        ratio.ratio,
        ratio.low,
        ratio.high,
        bench.mail.ratio(arm, point),
        statistics.median(mine),
        statistics.median(theirs),
        tuple(mine),
        tuple(theirs),
        bench.extras(point, arm, against, samples),
    )
