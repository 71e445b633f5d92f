"""Medians of ratios, and how sure they are."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy
from scipy.stats import bootstrap

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
