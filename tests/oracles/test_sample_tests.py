"""Tests of statistical tests: they accept ANALYZE's statistics of random rows, and reject those of other rows.

Tests of the bounds on samples: random samples exceed them as rarely as stated, and other samples do.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy
import pytest
from scipy.stats import beta, binom, hypergeom

from oracles.statistics.analyze import AnalyzedColumn, Numbers, RequestedSample
from oracles.statistics.sample_tests import (
    LEVEL,
    Blockwise,
    Law,
    RowByRow,
    Tablewise,
    bernstein,
    deviations,
    hypergeometric,
    largest_key,
    received,
)

ROWS, DRAWS = 4000, 400
RNG = numpy.random.default_rng
BLOCKS: Numbers = numpy.arange(ROWS) // 10 + 1
MEMBERS: Numbers = (numpy.arange(ROWS) < 1000).astype(numpy.int64)
KIND = numpy.arange(ROWS) % 7 == 0
CLUSTERED = BLOCKS % 7 == 0  # all rows of a block are alike

Draw = Callable[[numpy.random.Generator], tuple[Law, Numbers]]


def row_by_row(rng: numpy.random.Generator) -> tuple[Law, Numbers]:
    kept = rng.choice(ROWS, 300, replace=False)
    return RowByRow(ROWS, 300), kept


def tablewise(rng: numpy.random.Generator) -> tuple[Law, Numbers]:
    shares = (200, 100)
    kept = [rng.choice(numpy.flatnonzero(each == MEMBERS), share, replace=False) for each, share in enumerate(shares)]
    return Tablewise(MEMBERS, shares), numpy.concatenate(kept)


def blockwise(rng: numpy.random.Generator) -> tuple[Law, Numbers]:
    chosen = rng.random(int(numpy.max(BLOCKS)) + 1) < 0.3
    kept = numpy.flatnonzero(chosen[BLOCKS] & (rng.random(ROWS) < 0.5))
    return Blockwise(BLOCKS, len(kept), 0.3, 0.5, thinned=False), kept


def thinned(rng: numpy.random.Generator) -> tuple[Law, Numbers]:
    _, received = blockwise(rng)
    kept = rng.choice(received, min(450, len(received)), replace=False)
    return Blockwise(BLOCKS, len(kept), 0.3, 0.5, thinned=True), kept


LAWS = [row_by_row, tablewise, blockwise, thinned]


@pytest.mark.parametrize("kind", [KIND, CLUSTERED, MEMBERS == 1], ids=["spread", "clustered", "first"])
@pytest.mark.parametrize("draw", LAWS)
def test_correct_samples_are_rarely_rejected(draw: Draw, kind: numpy.typing.NDArray[numpy.bool_]) -> None:
    rng = RNG(1)
    rejected = 0
    for _ in range(DRAWS):
        law, kept = draw(rng)
        rejected += law.exactly(kind, int(kind[kept].sum())) < 0.05
    # three standard deviations more than 5 %
    assert rejected <= DRAWS * 0.05 + 3 * (DRAWS * 0.05 * 0.95) ** 0.5


@pytest.mark.parametrize("draw", LAWS)
def test_a_sample_without_one_kind_of_rows_is_rejected(draw: Draw) -> None:
    law, kept = draw(RNG(2))
    half = numpy.arange(ROWS) % 2 == 0
    assert law.exactly(half, 0) < 1e-4
    assert law.at_least(half, len(kept)) < 1e-4


def test_rows_of_a_block_have_weaker_bounds_than_independent_rows() -> None:
    law, kept = blockwise(RNG(3))
    off = int(CLUSTERED.mean() * len(kept) * 0.7)
    assert law.at_most(CLUSTERED, off) > RowByRow(ROWS, len(kept)).at_most(CLUSTERED, off)


def test_a_sample_of_all_rows_may_not_be_off_by_one() -> None:
    law = RowByRow(ROWS, ROWS)
    assert law.exactly(KIND, int(KIND.sum())) == 1
    assert law.exactly(KIND, int(KIND.sum()) - 1) < 1e-9


@pytest.mark.parametrize(
    ("rows", "kind", "kept"),
    [(10, 3, 4), (10, 10, 4), (10, 0, 4), (4000, 571, 300), (4000, 3990, 300), (10**6, 5, 30000)],
)
def test_probabilities_are_those_of_the_hypergeometric_distribution(rows: int, kind: int, kept: int) -> None:
    for count in (-1, 0, 1, kept * kind // rows, kept * kind // rows + 9, kept - 1, kept):
        expected = float(hypergeom.cdf(count, rows, kind, kept))
        assert hypergeometric(count, rows, kind, kept) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("count", [0, 1, 300, 400, 3999, 4000, 9000])
def test_probabilities_are_those_of_the_binomial_distribution(count: int) -> None:
    expected = 2 * min(float(binom.cdf(count, ROWS, 0.1)), float(binom.sf(count - 1, ROWS, 0.1)))
    bound = received(RequestedSample("t", random_fraction=0.1), ROWS, None, count)
    assert bound == pytest.approx(min(1, expected), abs=1e-12)


@pytest.mark.parametrize("estimate", [ROWS / 2, ROWS - 300, ROWS, ROWS + 100, ROWS * 2])
def test_probabilities_are_those_of_the_beta_distribution(estimate: float) -> None:
    law = beta(300, ROWS - 299)
    expected = 2 * min(float(law.cdf(299 / estimate)), float(law.sf(299 / estimate)))
    assert largest_key(300, ROWS, estimate) == pytest.approx(min(1, expected), abs=1e-12)


@pytest.mark.parametrize(
    ("sample", "count"),
    [
        (RequestedSample("t", random_fraction=0.1), 400),
        (RequestedSample("t", "BERNOULLI", 0.1), 380),
        (RequestedSample("t", "SYSTEM", 0.5, 0.2), 500),
        (RequestedSample("t", "SYSTEM", 0.1), 340),
    ],
)
def test_a_number_of_rows_near_the_expected_one_is_accepted(sample: RequestedSample, count: int) -> None:
    assert received(sample, ROWS, BLOCKS, count) > 0.01
    assert received(sample, ROWS, BLOCKS, 4 * count) < 1e-4
    assert received(sample, ROWS, BLOCKS, 0) < 1e-4


def test_the_largest_key_bounds_the_number_of_rows() -> None:
    estimates = [299 / float(numpy.sort(RNG(seed).random(ROWS))[299]) for seed in range(200)]
    assert sum(largest_key(300, ROWS, estimate) < 0.05 for estimate in estimates) <= 200 * 0.05 + 10
    assert largest_key(300, ROWS, ROWS * 2) < 1e-4
    assert largest_key(300, ROWS, ROWS / 2) < 1e-4


def test_a_deviation_to_the_other_side_is_accepted() -> None:
    assert bernstein(-5, 1, 1) == bernstein(0, 0, 1) == 1


ROWS, KEPT, TARGET = 3000, 300, 10
SHAPES: dict[str, Numbers] = {
    "few values": numpy.arange(ROWS) * 7 % 23 + 1,
    "unique": numpy.arange(ROWS) + 1,
    "twice": numpy.arange(ROWS) // 2 + 1,
    "hot": numpy.where(numpy.arange(ROWS) % 5 == 0, numpy.arange(ROWS) % 211 + 1, 100),
    "some null": numpy.where(numpy.arange(ROWS) % 4 == 0, 0, numpy.arange(ROWS) % 101 + 1),
    "all null": numpy.zeros(ROWS, dtype=numpy.int64),
}


def shaped(ranks: Numbers) -> AnalyzedColumn:
    """Return a column with dense ranks and without statistics."""
    values, dense = numpy.unique(ranks, return_inverse=True)
    if 0 not in values:
        values, dense = numpy.concatenate([[0], values]), dense + 1
    return AnalyzedColumn("c", dense.astype(numpy.int64), tuple(f"v{value:05}" for value in values[1:]), 6)


def with_statistics(column: AnalyzedColumn, kept: Numbers) -> AnalyzedColumn:
    """Return the column with the statistics that std_typanalyze computes from the rows at the positions `kept`."""
    ranks = column.ranks[numpy.sort(kept)]
    present = ranks[ranks > 0]
    counted = Counter(present.tolist())
    common = [(rank, count) for rank, count in counted.most_common(TARGET) if count > 1]
    rest = numpy.sort([rank for rank in present.tolist() if rank not in dict(common)])
    bins = min(TARGET + 1, len(set(rest.tolist())))
    bounds = [rest[place * (len(rest) - 1) // (bins - 1)] for place in range(bins)] if bins > 1 else []
    single = sum(count == 1 for count in counted.values())
    n, rows = len(present), ROWS * len(present) / len(ranks)
    distinct = n * len(counted) / (n - single + single * n / rows) if n else 0.0
    order = numpy.lexsort((numpy.arange(n), present))
    return replace(
        column,
        null_frac=1 - n / len(ranks),
        n_distinct=round(distinct) if distinct <= 0.1 * ROWS else -distinct / ROWS,
        common=tuple(column.values[rank - 1] for rank, _ in common),
        frequencies=tuple(count / len(ranks) for _, count in common),
        bounds=tuple(column.values[int(rank) - 1] for rank in bounds),
        correlation=float(numpy.corrcoef(order, numpy.arange(n))[0, 1]) if n > 1 else None,
    )


def rejected(column: AnalyzedColumn, kept: int = KEPT, estimate: float = ROWS) -> set[str]:
    found = deviations(column, RowByRow(ROWS, kept), estimate)
    return {name for name, deviation in found if deviation.probability < LEVEL}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_correct_sample_is_accepted(shape: str) -> None:
    column, rng = shaped(SHAPES[shape]), numpy.random.default_rng(4)
    for _ in range(50):
        assert rejected(with_statistics(column, rng.choice(ROWS, KEPT, replace=False))) == set()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_sample_of_all_rows_is_accepted(shape: str) -> None:
    assert rejected(with_statistics(shaped(SHAPES[shape]), numpy.arange(ROWS)), ROWS) == set()


@pytest.mark.parametrize(
    ("shape", "expected"),
    [("unique", {"histogram"}), ("twice", {"histogram"}), ("few values", set()), ("some null", set())],
)
def test_the_first_of_ordered_rows_are_rejected(shape: str, expected: set[str]) -> None:
    assert rejected(with_statistics(shaped(SHAPES[shape]), numpy.arange(KEPT))) >= expected


def test_each_figure_is_tested() -> None:
    sound = with_statistics(shaped(SHAPES["some null"]), numpy.random.default_rng(5).choice(ROWS, KEPT, replace=False))
    assert rejected(sound) == set()
    assert "null fraction" in rejected(replace(sound, null_frac=0.5))
    assert "common values" in rejected(replace(sound, frequencies=(0.3, *sound.frequencies[1:])))
    assert "common values" in rejected(replace(sound, common=("unheard of", *sound.common[1:])))
    assert "histogram" in rejected(replace(sound, bounds=(*sound.bounds[:5], sound.bounds[-1], *sound.bounds[6:])))
    assert "histogram" in rejected(replace(sound, bounds=("unheard of", *sound.bounds[1:])))
    assert "distinct values" in rejected(replace(sound, n_distinct=-0.9))
    assert "correlation" in rejected(replace(with_statistics(sound, numpy.arange(ROWS)), correlation=-0.9), ROWS)


def test_a_thinned_sample_may_lack_its_order() -> None:
    sound = with_statistics(shaped(SHAPES["unique"]), numpy.arange(ROWS))
    assert sound.correlation == pytest.approx(1)
    assert rejected(replace(sound, correlation=0.2), ROWS) == set()


def test_lists_lack_wide_values() -> None:
    sound = with_statistics(shaped(SHAPES["unique"]), numpy.arange(ROWS))
    assert rejected(replace(sound, widest=2000, bounds=()), ROWS) == set()


def test_a_column_without_statistics_has_no_deviations() -> None:
    assert list(deviations(shaped(SHAPES["hot"]), RowByRow(ROWS, KEPT), ROWS)) == []
