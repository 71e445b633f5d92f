"""Probability laws of samples, and tests of a column's statistics against the law of its sample.

A law bounds the probability of too many or too few rows of a kind in a sample. Each bound holds for any data, so the
total error probability does not exceed the stated one. Given the sample's size, rows chosen independently are
equivalent to rows drawn without replacement, so the number of rows of a kind is hypergeometric. If whole blocks are
chosen, or a share of each of several tables, the deviation from the kind's share is a sum of independent terms.
Bernstein's inequality bounds it.

Each test returns a bound on the probability of such a deviation in the statistics of a correct ANALYZE, for any data. A
test of several values, or of values that the sample itself determined, multiplies its bound by the number of the
column's values (Bonferroni correction).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy
import numpy.typing
import scipy  # scipy.special is imported when it is first used: that takes as long as all else of a worker

from oracles.statistics.analyze import AnalyzedColumn, Numbers, RequestedSample

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
    gammaln = scipy.special.gammaln
    return numpy.asarray(gammaln(of + 1) - gammaln(chosen + 1) - gammaln(of - chosen + 1))


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
    return float(scipy.special.bdtr(count, rows, fraction)) if 0 <= count < rows else float(count >= rows)


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


def largest_key(limit: int, rows: int, estimate: float) -> float:
    """Return the probability that an estimate of `rows` is at least as wrong as this one.

    The estimate is k - 1, divided by the largest random number of the k rows that the limit lets pass. That is the k-th
    smallest of `rows` random numbers, which follows a beta distribution.
    """
    key = min((limit - 1) / estimate, 1.0)
    low = float(scipy.special.betainc(limit, rows - limit + 1, key))
    return min(1.0, 2 * min(low, 1 - low))


LEVEL: Final = 1e-4  # a test fails if its bound is lower

_MOST: Final = 40  # tested values of a list: the most frequent, or evenly distributed
_TOO_WIDE: Final = 1000  # bytes; wider values are in no list (WIDTH_THRESHOLD of analyze.c is 1024)
_KERNEL: Final = 6.0  # largest difference between the contributions of two triples of rows to a rank correlation


@dataclass(frozen=True, slots=True)
class Deviation:
    """The result of a test: the bound on the figure's probability, and texts of the expected and actual figure."""

    probability: float
    expected: str
    actual: str


NO_DEVIATION: Final = Deviation(1.0, "", "")


def _least(deviations: Iterator[Deviation], cases: int) -> Deviation:
    """Return the result with the lowest bound, multiplied by the number of tested `cases`."""
    gravest = min(deviations, key=lambda deviation: deviation.probability, default=NO_DEVIATION)
    return Deviation(min(1.0, gravest.probability * max(cases, 1)), gravest.expected, gravest.actual)


def null_fraction(column: AnalyzedColumn, law: Law) -> Deviation:
    """Test the share of NULLs."""
    assert column.null_frac is not None
    nulls = column.ranks == 0
    chance = law.exactly(nulls, round(column.null_frac * law.kept))
    return Deviation(chance, f"null_frac about {nulls.mean():.6g}", f"null_frac {column.null_frac:.6g}")


def common_values(column: AnalyzedColumn, law: Law) -> Deviation:
    """Test the frequencies of the most common values; a value of no row has the frequency 0."""
    number = {value: rank for rank, value in enumerate(column.values, start=1)}

    def deviations() -> Iterator[Deviation]:
        for value, frequency in list(zip(column.common, column.frequencies, strict=True))[:_MOST]:
            kind = column.ranks == number.get(value, -1)
            chance = law.exactly(kind, round(frequency * law.kept))
            yield Deviation(chance, f"{value!r} in {kind.mean():.6g} of the rows", f"{value!r} in {frequency:.6g}")

    return _least(deviations(), len(column.values))


def histogram(column: AnalyzedColumn, law: Law) -> Deviation:
    """Test the share of values below each bound, which its position in the histogram determines.

    The histogram leaves out the most common values.
    """
    number = {value: rank for rank, value in enumerate(column.values, start=1)}
    common = {
        number.get(value, 0): round(frequency * law.kept)
        for value, frequency in zip(column.common, column.frequencies, strict=True)
    }
    listed = law.kept - round((column.null_frac or 0) * law.kept) - sum(common.values())
    last = len(column.bounds) - 1

    def up_to(rank: int, others: int) -> tuple[Mask, int]:
        count = others + sum(count for each, count in common.items() if 0 < each <= rank)
        return (column.ranks > 0) & (column.ranks <= rank), count

    def deviations() -> Iterator[Deviation]:
        for place in sorted({round(step * last / _MOST) for step in range(_MOST + 1)}):
            bound = column.bounds[place]
            rank = number.get(bound)
            if rank is None:
                yield Deviation(0.0, "a value of the column", f"bound {bound!r}")
                continue
            below = place * (listed - 1) // last  # number of other values that are at most the bound
            chance = min(law.at_most(*up_to(rank - 1, below)), law.at_least(*up_to(rank, below + 1)))
            share = up_to(rank, 0)[0].mean()
            yield Deviation(
                chance, f"bound {place} of {last} at its share", f"{bound!r}, behind {share:.6g} of the rows"
            )

    return _least(deviations(), 2 * len(column.values)) if last > 0 else NO_DEVIATION


def distinct_values(column: AnalyzedColumn, law: Law, estimate: float) -> Deviation:
    """Test the number of distinct values.

    The estimator of analyze.c is n * d / (n - f1 + f1 * n / N): n of N rows are in the sample, with d distinct values,
    of which f1 occur once. Replacing a row of the sample changes d by at most one and f1 by at most two. So both are
    close to their expected values (McDiarmid's inequality, which holds without replacement, too).
    """
    if not isinstance(law, RowByRow) or estimate < law.kept:
        return NO_DEVIATION
    kept = law.kept - round((column.null_frac or 0) * law.kept)
    sizes = numpy.bincount(column.ranks)[1:].astype(float)
    rows = float(sizes.sum())
    if kept < 1 or kept > rows:
        return NO_DEVIATION
    slack = 0.0 if kept == rows else math.sqrt(kept * math.log(4 / LEVEL) / 2)
    distinct, single = _expected(sizes, rows, kept)
    believed = estimate * (1 - (column.null_frac or 0))
    low, high = (
        _duj1(kept, believed, min(max(distinct + sign * slack, 1), kept), min(max(single + 2 * sign * slack, 0), kept))
        for sign in (-1, 1)
    )
    actual = column.n_distinct if column.n_distinct > 0 else -column.n_distinct * estimate
    inside = low * (1 - 1e-5) - 1 <= actual <= high * (1 + 1e-5) + 1
    return Deviation(1.0 if inside else 0.0, f"{low:.6g} to {high:.6g} distinct values", f"{actual:.6g}")


def _expected(sizes: Floats, rows: float, kept: int) -> tuple[float, float]:
    """Return the expected numbers of distinct values in a sample, and of those that occur once.

    `sizes` has the number of rows of each value.
    """
    with numpy.errstate(invalid="ignore"):
        others, all_ways = rows - sizes, log_ways(rows, kept)
        absent = numpy.where(others >= kept, numpy.exp(log_ways(numpy.maximum(others, kept), kept) - all_ways), 0)
        fewer = numpy.exp(log_ways(numpy.maximum(others, kept - 1), kept - 1) - all_ways)
    once = numpy.where(others >= kept - 1, sizes * fewer, 0)
    return float((1 - absent).sum()), float(once.sum())


def _duj1(kept: float, rows: float, distinct: float, single: float) -> float:
    estimate = kept * distinct / (kept - single + single * kept / rows)
    return min(max(estimate, distinct), rows)


def correlation(column: AnalyzedColumn, law: Law, estimate: float) -> Deviation:
    """Test the correlation of values with the order of rows.

    It may be weaker than that of all rows, because local thinning changes the order of a sample. A rank correlation is
    an average over triples of rows; a row is part of 3 of n triples (McDiarmid's inequality).
    """
    present = column.ranks[column.ranks > 0]
    kept = law.kept - round((column.null_frac or 0) * law.kept)
    if not isinstance(law, RowByRow) or column.correlation is None or kept < 2:
        return NO_DEVIATION
    places = numpy.arange(len(present), dtype=float)
    order = numpy.lexsort((places, present)).astype(float)
    whole = float(numpy.corrcoef(order, places)[0, 1]) if len(present) > 1 else 1.0
    slack = 1e-4 if kept == len(present) else 3 * _KERNEL * math.sqrt(math.log(2 / LEVEL) / (2 * kept)) + 12 / kept
    inside = min(whole, 0) - slack <= column.correlation <= max(whole, 0) + slack
    return Deviation(1.0 if inside else 0.0, f"correlation 0 to {whole:.4g}", f"{column.correlation:.4g}")


_Test = Callable[[AnalyzedColumn, Law, float], Deviation]
TESTS: Final[Mapping[str, _Test]] = MappingProxyType(
    {
        "null fraction": lambda column, law, _: null_fraction(column, law),
        "common values": lambda column, law, _: common_values(column, law),
        "histogram": lambda column, law, _: histogram(column, law),
        "distinct values": distinct_values,
        "correlation": correlation,
    }
)


def deviations(column: AnalyzedColumn, law: Law, estimate: float) -> Iterator[tuple[str, Deviation]]:
    """Yield name and result of each applicable test; `estimate` is ANALYZE's estimate of all rows."""
    if column.null_frac is None or not law.kept:
        return
    for name, test in TESTS.items():
        if name == "null fraction" or column.widest <= _TOO_WIDE:
            yield name, test(column, law, estimate)
