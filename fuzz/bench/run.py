"""Execution of a bench: arms are prepared, measured interleaved, and compared with the first of them.

Each round visits all points, and at each point all arms one after another. Every second round visits the arms in
reverse (ABBA). So neither a machine that slowly changes its speed, nor the after-effects of a measurement, favour an
arm. A burst of other load spoils some points of one round, not a point of all rounds. So many short rounds are better
than few long ones. The result is the median of the rounds' ratios, with a confidence interval.
"""

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy
import scipy  # scipy.stats is imported when it is first used: that takes longer than all else of a command

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

    Both have positive values, at least two, of the same rounds. A slowdown of both arms in a round cancels out in its
    ratio, but not in a ratio of medians. Without such noise, both have the same precision.
    """
    ratios = numpy.asarray(measured) / numpy.asarray(against)
    drawn = scipy.stats.bootstrap(
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
    """Return the measurements of each point and arm, one per round, in order."""
    samples: dict[tuple[Point, str], list[float]] = defaultdict(list)
    for number, point, arm in turns(points, arms, rounds):
        samples[point, arm].append(measure(number, point, arm))
    return samples


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: an arm compared with the first one at a point. `mail` is the mail's ratio there.

    `ratio` is the median of the rounds' ratios, which may differ from the ratio of the medians.
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
