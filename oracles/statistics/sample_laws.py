"""Probability laws of samples: bounds on the probability of too many or too few rows of a kind in a sample.

Each bound holds for any data, so the total error probability does not exceed the stated one.

Given the sample's size, rows chosen independently are equivalent to rows drawn without replacement, so the number of
rows of a kind is hypergeometric. If whole blocks are chosen, or a share of each of several tables, the deviation from
the kind's share is a sum of independent terms. Bernstein's inequality bounds it.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy
import numpy.typing
from scipy import special  # scipy.stats takes as long to import as all else that a worker needs

from oracles.statistics.analyze import Numbers
from oracles.statistics.remote_sql import RequestedSample

Mask = numpy.typing.NDArray[numpy.bool_]
Floats = numpy.typing.NDArray[numpy.float64]


class Law(ABC):
    """The probability law of a sample of `kept` rows."""

    kept: int

    @abstractmethod
    def at_most(self, kind: Mask, count: int) -> float:
        """Return a bound on the probability of no more than `count` rows of a kind."""

    def at_least(self, kind: Mask, count: int) -> float:
        """Return a bound on the probability of at least `count` rows of a kind, from that of few other rows."""
        return self.at_most(~kind, self.kept - count)

    def exactly(self, kind: Mask, count: int) -> float:
        """Return a bound on the probability of a count at least as far from the expected one, in either direction."""
        return min(1.0, 2 * min(self.at_most(kind, count), self.at_least(kind, count)))


@dataclass(frozen=True, slots=True)
class RowByRow(Law):
    """The law of a sample in which all sets of `kept` rows have the same probability."""

    rows: int
    kept: int

    def at_most(self, kind: Mask, count: int) -> float:
        """Return the probability from the hypergeometric distribution."""
        return hypergeometric(count, self.rows, int(kind.sum()), self.kept)


@dataclass(frozen=True, slots=True)
class Tablewise(Law):
    """The law of samples of several tables, row by row."""

    members: Numbers  # number of each row's table
    shares: Sequence[int]  # number of rows kept of each table

    @property
    def kept(self) -> int:  # type: ignore[override]
        """Return the total number of rows."""
        return sum(self.shares)

    def at_most(self, kind: Mask, count: int) -> float:
        """Return Bernstein's bound. Each table's sample is expected to have the kind's share in that table."""
        expected = variance = 0.0
        for member, share in enumerate(self.shares):
            here = self.members == member
            part = float(kind[here].mean()) if here.any() else 0.0
            expected += share * part
            variance += share * part * (1 - part)
        return bernstein(expected - count, variance, 1.0)


@dataclass(frozen=True, slots=True)
class Blockwise(Law):
    """The law of a sample of blocks, each chosen with `block_fraction`, and of their rows, each with `row_fraction`.

    `thinned`: ANALYZE may have received more rows than it kept.
    """

    blocks: Numbers
    kept: int
    block_fraction: float
    row_fraction: float
    thinned: bool

    def at_most(self, kind: Mask, count: int) -> float:
        """Return a bound from the variance among and within blocks, plus that of thinning."""
        part = float(kind.mean())
        sizes = numpy.bincount(self.blocks)
        deviation = numpy.bincount(self.blocks, kind.astype(float) - part)
        among_blocks = self.block_fraction * self.row_fraction**2 * float((deviation**2).sum())
        fraction = self.block_fraction * self.row_fraction
        within = fraction * (1 - self.row_fraction) * len(self.blocks) * part * (1 - part)
        variance, off = among_blocks + within, self.kept * part - count
        if not self.thinned or off <= 0:
            return bernstein(off, variance, float(numpy.max(sizes)))
        spread = math.sqrt(variance), math.sqrt(self.kept) / 2
        first = off * spread[0] / sum(spread) if sum(spread) else off
        thinning = math.exp(-2 * (off - first) ** 2 / self.kept)
        return min(1.0, bernstein(first, variance, float(numpy.max(sizes))) + thinning)


def log_ways(of: Floats | float, chosen: Floats | float) -> Floats:
    """Return the logarithm of the number of ways to choose `chosen` of `of` items."""
    return numpy.asarray(special.gammaln(of + 1) - special.gammaln(chosen + 1) - special.gammaln(of - chosen + 1))


def hypergeometric(count: int, rows: int, kind: int, kept: int) -> float:
    """Return the probability of no more than `count` rows of a kind among `kept` of `rows`; `kind` rows are of it."""
    least, most = max(0, kept - (rows - kind)), min(kind, kept)
    if not least <= count < most:
        return float(count >= most)
    few = count * rows < kept * kind  # sum the shorter tail
    first, last = (least, count) if few else (count + 1, most)
    counts = numpy.arange(first, last + 1, dtype=float)
    logs = log_ways(kind, counts) + log_ways(rows - kind, kept - counts) - log_ways(rows, kept)
    tail = float(numpy.exp(logs).sum())
    return min(1.0, tail) if few else max(0.0, 1 - tail)


def binomial(count: float, rows: int, fraction: float) -> float:
    """Return the probability of no more than `count` of `rows` rows, each chosen with probability `fraction`."""
    return float(special.bdtr(count, rows, fraction)) if 0 <= count < rows else float(count >= rows)


def bernstein(off: float, variance: float, largest: float) -> float:
    """Return Bernstein's bound on the probability that a sum of centred terms is at least `off`.

    `largest` bounds each term.
    """
    if off <= 1e-6:
        return 1.0
    return math.exp(-(off**2) / 2 / (variance + largest * off / 3))


def received(request: RequestedSample, rows: int, blocks: Numbers | None, count: float) -> float:
    """Return a bound on the probability of a row count as far from the expected one, for a sample without a limit."""
    fraction = min(request.fraction, 1.0)
    if request.tablesample != "SYSTEM":
        return min(1.0, 2 * min(binomial(count, rows, fraction), 1 - binomial(count - 1, rows, fraction)))
    if blocks is None:
        return 1.0
    sizes = numpy.bincount(blocks)
    among_blocks = request.tablesample_fraction * request.random_fraction**2 * float((sizes.astype(float) ** 2).sum())
    variance = among_blocks + fraction * (1 - request.random_fraction) * rows
    return min(1.0, 2 * bernstein(abs(count - fraction * rows), variance, float(numpy.max(sizes))))


def largest_key(kept: int, rows: int, estimate: float) -> float:
    """Return the probability that an estimate of `rows` is at least as wrong as this one.

    The estimate is k - 1, divided by the largest random number of the k rows kept. That is the k-th smallest of `rows`
    random numbers, which follows a beta distribution.
    """
    key = min((kept - 1) / estimate, 1.0)
    low = float(special.betainc(kept, rows - kept + 1, key))
    return min(1.0, 2 * min(low, 1 - low))
