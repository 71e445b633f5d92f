"""Running a bench: arms prepared, measured interleaved, and held against the first of them."""

import statistics
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from fuzz.bench.bench import Bench, Point, Samples
from fuzz.bench.interleaved import measure_interleaved
from fuzz.bench.statistics import median_ratio
from fuzz.servers import Report
from fuzz.servers.arm import Arm


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
