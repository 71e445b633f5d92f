"""Tests of benches: the order of measurements, ratios with their intervals, and the table."""

import random
from dataclasses import replace
from io import StringIO

import pytest

from fuzz.bench.bench import BenchError, all_benches
from fuzz.bench.bloom import FLOOR
from fuzz.bench.copying import CopyBench
from fuzz.bench.run import Row, measure_interleaved, median_ratio
from fuzz.report.bench_result import print_rows, row_json
from fuzz.report.console import Console

ROW = Row("10 rows, 1 client", "patched", "master", 4.03, 3.9, 4.2, 4.0, 403.0, 100.0, (403.0,), (100.0,), {})


def order_of(points: list[tuple[int, ...]], arms: tuple[str, ...], rounds: int) -> list[tuple[tuple[int, ...], str]]:
    order: list[tuple[tuple[int, ...], str]] = []

    def measure(_: int, point: tuple[int, ...], arm: str) -> float:
        order.append((point, arm))
        return 1.0

    measure_interleaved(points, arms, rounds, measure)
    return order


def test_arms_take_turns_in_changing_order() -> None:
    assert [arm for _, arm in order_of([(1,)], ("a", "b"), 4)] == ["a", "b", "b", "a", "a", "b", "b", "a"]
    assert [point for point, _ in order_of([(1,), (2,)], ("a", "b"), 1)] == [(1,), (1,), (2,), (2,)]


def test_measurements_of_a_round_are_adjacent() -> None:
    samples = measure_interleaved([(1,)], ("a", "b"), 3, lambda number, _, arm: number + 10 * (arm == "b"))
    assert samples == {((1,), "a"): [0, 1, 2], ((1,), "b"): [10, 11, 12]}


def test_a_ratio_is_the_median_of_the_rounds_and_lies_within_its_interval() -> None:
    ratio = median_ratio([4.0, 4.2, 100.0], [1.0, 2.0, 3.0])
    assert ratio.ratio == pytest.approx(4)
    assert ratio.low <= ratio.ratio <= ratio.high


def test_load_on_both_arms_of_a_round_does_not_widen_the_interval() -> None:
    speed = [1.0, 0.5, 0.9, 0.3, 0.7, 1.0, 0.4, 0.8]
    ratio = median_ratio([1030 * each for each in speed], [1000 * each for each in speed])
    assert (ratio.low, ratio.ratio, ratio.high) == pytest.approx((1.03, 1.03, 1.03))


def test_a_burst_of_other_load_in_one_measurement_does_not_move_the_ratio_far() -> None:
    quiet = [1000.0, 1001.0, 999.0, 1002.0, 998.0, 1000.0, 1001.0, 999.0]
    ratio = median_ratio([400.0, *quiet[1:]], quiet)
    assert ratio.ratio == pytest.approx(1)
    assert ratio.low > 0.99


def test_the_interval_usually_contains_the_true_ratio() -> None:
    rng = random.Random(4)
    held = 0
    for _ in range(50):
        measured = [2 * rng.gauss(100, 5) for _ in range(16)]
        ratio = median_ratio(measured, [rng.gauss(100, 5) for _ in range(16)])
        held += ratio.low <= 2 <= ratio.high
    assert held >= 42


def test_the_copy_bench_has_the_table_of_the_mail() -> None:
    bench = all_benches()["copy"]
    points = bench.points({})
    assert points == sorted(bench.mail.ratios)
    assert [bench.mail.ratios[1000, clients] for clients in (1, 4, 8)] == [4.03, 3.79, 2.86]
    assert bench.label((1000, 1)) == "1000 rows, 1 client"


def test_the_bloom_bench_has_both_tables_of_the_mail_and_a_floor_for_each_row() -> None:
    bench = all_benches()["bloom"]
    points = bench.points({})
    assert set(bench.mail.ratios) < set(points)
    assert [bench.mail.ratios[point] for point in ((16, 1), (16, 15), (64, 1))] == pytest.approx(
        [0.4909, 1.1291, 1.0416]
    )
    assert {limit for work_mem, limit in points if work_mem == FLOOR} == set(range(1, 16))
    assert bench.label((16, 15)) == "inner, 16 MB, 94% match"


def test_points_can_be_chosen() -> None:
    assert CopyBench().points({"rows": [1000, 10, 10], "clients": [2]}) == [(10, 2), (1000, 2)]
    with pytest.raises(BenchError, match="rows, clients must be at least 1"):
        CopyBench().points({"rows": [0]})


def test_rows_have_the_mails_figure() -> None:
    shown = StringIO()
    print_rows(Console(file=shown, width=80), [ROW], "tps")
    line = next(line for line in shown.getvalue().splitlines() if "10 rows" in line)
    assert [each in line for each in ("403", "100", "4.030", "3.900-4.200", "4.00")] == [True] * 5


def test_further_figures_have_columns_of_their_own() -> None:
    row = replace(ROW, extras={"rows spilled": 937500.0, "outer temp": 0.0625})
    shown = StringIO()
    print_rows(Console(file=shown, width=120), [row], "ms")
    line = next(line for line in shown.getvalue().splitlines() if "10 rows" in line)
    assert ("937500" in line, "0.062" in line) == (True, True)
    assert row_json(row)["outer_temp"] == 0.0625


@pytest.mark.parametrize(("rounds", "told"), [(5, True), (6, False)])
def test_few_rounds_are_not_called_a_confidence_interval(rounds: int, *, told: bool) -> None:
    shown = StringIO()
    print_rows(Console(file=shown, width=200), [replace(ROW, samples=(1.0,) * rounds)], "ms")
    assert ("Fewer than 6 rounds have no 95% interval" in shown.getvalue()) == told


@pytest.mark.parametrize("width", [20, 300])
def test_no_figure_is_truncated_in_a_narrow_terminal(width: int) -> None:
    row = replace(ROW, extras={f"figure {place}": place + 0.125 for place in range(1, 9)})
    shown = StringIO()
    print_rows(Console(file=shown, width=width), [row], "ms")
    line = next(line for line in shown.getvalue().splitlines() if "10 rows, 1 client" in line)
    assert [each for each in ("3.900-4.200", "1.125", "8.125") if each not in line] == []


@pytest.mark.parametrize(("median", "text"), [(0.12345, "0.1235"), (55.459, "55.46"), (5955.762, "5956")])
def test_small_figures_keep_their_digits(median: float, text: str) -> None:
    shown = StringIO()
    print_rows(Console(file=shown, width=80), [replace(ROW, median=median)], "ms")
    assert f" {text} " in shown.getvalue()


def test_json_has_ratio_interval_and_the_mails_figure() -> None:
    written = row_json(ROW)
    assert {key: written[key] for key in ("case", "ratio", "low", "high", "mail")} == {
        "case": "10 rows, 1 client",
        "ratio": 4.03,
        "low": 3.9,
        "high": 4.2,
        "mail": 4.0,
    }
