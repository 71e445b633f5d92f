"""Tests of bounds on samples: random samples exceed them as rarely as stated, and other samples do."""

from collections.abc import Callable

import numpy
import pytest
import scipy

from oracles.statistics.analyze import Numbers, RequestedSample
from oracles.statistics.sample_tests import (
    Blockwise,
    Law,
    RowByRow,
    Tablewise,
    bernstein,
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
        expected = float(scipy.stats.hypergeom.cdf(count, rows, kind, kept))
        assert hypergeometric(count, rows, kind, kept) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("count", [0, 1, 300, 400, 3999, 4000, 9000])
def test_probabilities_are_those_of_the_binomial_distribution(count: int) -> None:
    binom = scipy.stats.binom
    expected = 2 * min(float(binom.cdf(count, ROWS, 0.1)), float(binom.sf(count - 1, ROWS, 0.1)))
    bound = received(RequestedSample("t", random_fraction=0.1), ROWS, None, count)
    assert bound == pytest.approx(min(1, expected), abs=1e-12)


@pytest.mark.parametrize("estimate", [ROWS / 2, ROWS - 300, ROWS, ROWS + 100, ROWS * 2])
def test_probabilities_are_those_of_the_beta_distribution(estimate: float) -> None:
    law = scipy.stats.beta(300, ROWS - 299)
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
