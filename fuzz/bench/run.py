"""Execution of a bench: arms are prepared, measured interleaved, and compared with the first of them.

Each round visits all points, and at each point all arms one after another. Every second round visits the arms in
reverse (ABBA). So neither a machine that slowly changes its speed, nor the after-effects of a measurement, favour an
arm. A burst of other load spoils some points of one round, not a point of all rounds. So many short rounds are better
than few long ones. The result is the median of the rounds' ratios, with a confidence interval.

With a limit of time, points with a narrow interval get no more rounds. So the time is spent where the interval is wide.
The width alone decides, never the ratio.
"""

import math
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy
import scipy  # scipy.stats is imported when it is first used: that takes longer than all else of a command

from fuzz.bench.bench import Bench, BenchError, Point, Samples
from fuzz.execution.exchanges import never
from fuzz.servers import Report
from fuzz.servers.arm import Arm

CONFIDENCE = 0.95
LEAST_ROUNDS = 6  # fewer have no 95 % confidence interval of a median
_IN_ANY_CASE = 3  # rounds, even if no time is left
_NARROW = 0.04  # width of an interval, relative to the ratio
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


@dataclass(frozen=True, slots=True)
class Limits:
    """The end of a bench's rounds: their number, and an interrupt.

    `until` is a time of time.monotonic. With it, rounds also end at that time, and a point gets no more once its
    intervals are narrow.
    """

    rounds: int
    until: float | None = None
    interrupted: Callable[[], bool] = never


@dataclass(frozen=True, slots=True)
class Visit:
    """The measurements of all arms at a point in one round."""

    point: tuple[int, ...]
    figures: dict[str, float]
    seconds: float  # duration


class Measurements:
    """The visits of a run. Each is passed to `keep` at once."""

    def __init__(self, earlier: Iterable[Visit] = (), keep: Callable[[Visit], None] = lambda _: None) -> None:
        self._keep = keep
        self._seconds: dict[Point, float] = {}
        self._samples: dict[tuple[Point, str], list[float]] = defaultdict(list)
        self._rounds: dict[Point, int] = defaultdict(int)
        for visit in earlier:
            self._note(visit)

    @property
    def samples(self) -> Samples:
        """Return the measurements of each point and arm, one per round, in order."""
        return dict(self._samples)

    def add(self, visit: Visit) -> None:
        """Store a visit."""
        self._note(visit)
        self._keep(visit)

    def _note(self, visit: Visit) -> None:
        self._seconds[visit.point] = visit.seconds
        self._rounds[visit.point] += 1
        for arm, figure in visit.figures.items():
            self._samples[visit.point, arm].append(figure)

    def rounds(self, point: Point) -> int:
        """Return the number of a point's rounds."""
        return self._rounds[point]

    def seconds_left(self, points: Sequence[Point], rounds: int) -> float:
        """Return the expected duration of the remaining rounds."""
        return sum(self._seconds.get(point, 0.0) * max(rounds - self._rounds[point], 0) for point in points)

    def wants(self, point: Point, arms: Sequence[str], until: float) -> bool:
        """Return whether a point gets another round."""
        rounds = self._rounds[point]
        if rounds < _IN_ANY_CASE:
            return True
        if time.monotonic() + self._seconds[point] > until:
            return False
        return rounds < LEAST_ROUNDS or not all(self._is_narrow(point, arm, arms[0]) for arm in arms[1:])

    def _is_narrow(self, point: Point, arm: str, against: str) -> bool:
        ratio = median_ratio(self._samples[point, arm], self._samples[point, against])
        return ratio.high - ratio.low <= _NARROW * ratio.ratio


Measure = Callable[[int, Point, str], float]  # (round, point, arm) -> figure


def measure_rounds(
    points: Sequence[Point], arms: Sequence[str], limits: Limits, taken: Measurements, measure: Measure
) -> None:
    """Measure each arm at each point, round by round, and add the measurements to those taken before."""
    for number in range(limits.rounds):
        order = arms if number % 2 == 0 else tuple(reversed(arms))
        for point in points:
            if taken.rounds(point) > number or not (limits.until is None or taken.wants(point, arms, limits.until)):
                continue
            started, figures = time.monotonic(), {}
            for arm in order:
                if limits.interrupted():
                    return
                figures[arm] = measure(number, point, arm)
            taken.add(Visit(point, figures, time.monotonic() - started))


def measure_interleaved(points: Sequence[Point], arms: Sequence[str], rounds: int, measure: Measure) -> Samples:
    """Return the measurements of each point and arm, one per round, in order."""
    taken = Measurements()
    measure_rounds(points, arms, Limits(rounds), taken, measure)
    return taken.samples


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
    bench: Bench,
    arms: Sequence[Arm],
    points: Sequence[Point],
    *,
    limits: Limits,
    seconds: int,
    report: Report,
    taken: Measurements | None = None,
    filled: Collection[str] = (),
) -> list[Row]:
    """Measure all arms at all points for `seconds` each, and return the rows with at least two rounds.

    `taken` are measurements of an earlier run. The arms `filled` have the data. Raises BenchError, ServerError.
    """
    taken = Measurements() if taken is None else taken
    with ExitStack() as stack:
        for arm in arms:
            if limits.interrupted():
                return []
            report(f"preparing {arm.name}")
            if arm.name not in filled:
                bench.fill(arm, points)
            bench.prepare(arm, points)
        for arm in arms:
            stack.enter_context(bench.conditions(arm))
        measure = _measure_of(bench, arms, points, limits, seconds, report, taken)
        try:
            measure_rounds(points, [arm.name for arm in arms], limits, taken, measure)
        except BenchError:
            if not limits.interrupted():  # Ctrl-C may end pgbench, too
                raise
    measured = [point for point in points if taken.rounds(point) > 1]
    samples = {key: found for key, found in taken.samples.items() if key[0] in measured}
    return [_row(bench, samples, point, arm, arms[0]) for point in measured for arm in arms[1:]]


def _measure_of(
    bench: Bench,
    arms: Sequence[Arm],
    points: Sequence[Point],
    limits: Limits,
    seconds: int,
    report: Report,
    taken: Measurements,
) -> Measure:
    by_name = {arm.name: arm for arm in arms}

    def measure(number: int, point: Point, name: str) -> float:
        left = "" if limits.until is not None else _time_left(taken.seconds_left(points, limits.rounds))
        rounds = f" of {limits.rounds}" if limits.until is None else ""
        report(f"round {number + 1}{rounds}: {bench.label(point)}, {name}{left}")
        return bench.measure(by_name[name], point, seconds)

    return measure


def _time_left(seconds: float) -> str:
    return f"; {math.ceil(seconds / 60)} minutes left" if seconds > 60 else ""


def _row(bench: Bench, samples: Samples, point: Point, arm: Arm, against: Arm) -> Row:
    mine, theirs = samples[point, arm.name], samples[point, against.name]
    ratio = median_ratio(mine, theirs)
    same = (arm.build.key, arm.settings) == (against.build.key, against.settings)
    return Row(
        bench.label(point),
        arm.name,
        against.name,
        ratio.ratio,
        ratio.low,
        ratio.high,
        None if same else bench.mail.ratio(arm.name, point),
        statistics.median(mine),
        statistics.median(theirs),
        tuple(mine),
        tuple(theirs),
        bench.extras(point, arm.name, against.name, samples),
    )
