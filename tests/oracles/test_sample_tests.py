"""Tests of statistical tests: they accept ANALYZE's statistics of random rows, and reject those of other rows."""

from collections import Counter
from dataclasses import replace

import numpy
import pytest

from oracles.statistics.analyze import AnalyzedColumn, Numbers
from oracles.statistics.sample_tests import LEVEL, RowByRow, deviations

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
