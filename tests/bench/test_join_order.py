"""Tests of the planning benches: the mail's figures, and errors in files of queries."""

from pathlib import Path

import pytest

from fuzz.bench.bench import BenchError, all_benches
from fuzz.bench.join_order import HOME, JoinOrderBench

SIZES = [(size,) for size in (1, 2, 4, 8, 16, 32, 64, 128, 256)]


def test_query_b_has_the_table_of_the_mail_for_each_of_its_variants() -> None:
    bench = all_benches()["query_b"]
    assert bench.points({}) == sorted(bench.mail.ratios) == SIZES
    assert [bench.mail.ratio(arm, (256,)) for arm in ("v5", "v6", "v7", "ours")] == pytest.approx(
        [321.450 / 5955.762, 322.739 / 5955.762, 342.601 / 5955.762, 342.601 / 5955.762]
    )
    assert bench.mail.ratio("ours", (512,)) is None


def test_query_a_has_more_points_and_no_figures() -> None:
    bench = all_benches()["query_a"]
    assert bench.points({}) == [*SIZES, (512,), (1024,)]
    assert bench.mail.ratio("v7", (1,)) is None


def test_the_mails_speed_up_of_the_join_order_queries_is_a_ratio() -> None:
    bench = all_benches()["join_order"]
    assert bench.points({}) == SIZES
    assert [bench.mail.ratio("v5", (2,)), bench.mail.ratio("v7", (256,))] == pytest.approx([1 / 0.973, 1 / 7.732])


def test_pgbench_has_the_mails_figures_for_both_scripts() -> None:
    bench = all_benches()["pgbench"]
    assert bench.points({}) == sorted(bench.mail.ratios)
    assert [bench.mail.ratio("v6", (script, 64)) for script in (1, 2)] == pytest.approx([7541 / 7555] * 2)
    assert bench.extras((1, 128), "ours", "master", {}) == {"mail master": 7542}


@pytest.mark.parametrize(
    ("text", "message"),
    [(None, "there is no SELECT in"), ("CREATE TABLE a ()", "there is no SELECT in"), ("SELEC", "cannot parse")],
)
def test_queries_that_cannot_be_used_are_refused(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "1.sql").write_text(text)
    with pytest.raises(BenchError, match=message):
        JoinOrderBench(HOME / "schema.sql", tmp_path)


def test_a_schema_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"cannot read .*nowhere.sql \(No such file"):
        JoinOrderBench(tmp_path / "nowhere.sql")
