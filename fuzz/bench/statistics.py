"""Ratios of medians, and how sure they are."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy
from numpy.typing import NDArray
from scipy.stats import bootstrap

CONFIDENCE = 0.95
_RESAMPLES = 4000
_SEED = 0  # the same measurements give the same interval


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of medians and the ends of its confidence interval."""

    ratio: float
    low: float
    high: float


def ratio_of_medians(measured: Sequence[float], against: Sequence[float]) -> Ratio:
    """Return median(measured) / median(against), with a 95 % percentile bootstrap interval.

    Both are positive, at least two, and of the same rounds: whole rounds are drawn, so that what slowed both arms of
    a round down does not widen the interval.
    """
    pair = (numpy.asarray(measured), numpy.asarray(against))
    drawn = bootstrap(
        pair,
        _quotient,
        paired=True,
        vectorized=True,
        n_resamples=_RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=numpy.random.default_rng(_SEED),
    )
    interval = drawn.confidence_interval
    return Ratio(float(_quotient(*pair)), float(interval.low), float(interval.high))


def _quotient(
    measured: NDArray[numpy.float64], against: NDArray[numpy.float64], axis: int = -1
) -> NDArray[numpy.float64]:
    return numpy.median(measured, axis=axis) / numpy.median(against, axis=axis)
