"""Tests of a campaign's display on a terminal and on a pipe."""

import io
from collections import Counter

from fuzz.campaign.counters import Counters
from fuzz.report.console import Console
from fuzz.report.terminal import INTERVAL, PlainDisplay, branch_tables, clock, display, rolled_up
from tests.features import SHIPPED


def test_a_pipe_gets_a_line_at_intervals() -> None:
    now = [0.0]
    out = io.StringIO()
    shown = PlainDisplay(Console(file=out), lambda: now[0])
    counters = Counters(cases=Counter(a=3), judged=Counter(a=70), seconds=7.0)
    for _ in range(100):
        shown.show(counters, ())
    assert out.getvalue() == ""
    now[0] += INTERVAL
    for _ in range(100):
        shown.show(counters, ())
    assert out.getvalue().count("\n") == 1
    assert "3 cases, 70 statements compared (10/s)" in out.getvalue()


def test_a_pipe_gets_each_topic_of_the_set_up_once() -> None:
    out = io.StringIO()
    shown = PlainDisplay(Console(file=out), lambda: 0.0)
    for line in ("compiling a: 5%", "compiling a: 10%", "starting a"):
        shown.progress(line)
    assert out.getvalue() == "compiling a: 5%\nstarting a\n"


def test_square_brackets_are_no_markup() -> None:
    out = io.StringIO()
    PlainDisplay(Console(file=out), lambda: 0.0).say("int[] [bold]")
    assert out.getvalue() == "int[] [bold]\n"


def test_a_terminal_shows_every_number() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=100, height=40, color_system=None)
    counters = Counters(cases=Counter(joins=3), reach=Counter(hash_join=12), tags=Counter({("joins", "lateral"): 34}))
    counters.count_plan("joins", "Seq Scan")
    with display(console, 300) as shown:
        shown.progress("starting master")
        shown.say("campaign 1")
        shown.show(counters, ())
    for text in ("starting master", "campaign 1", "hash_join 12", "lateral 34", "0:00 of 5:00", "shapes of plans 1"):
        assert text in out.getvalue()


def test_counters_roll_up_by_family() -> None:
    counts = {"hash_join": 5, "hash_join.left": 2, "copy.text": 3, "copy.csv": 4, "window": 1}
    assert rolled_up(counts) == {"hash_join (2 kinds)": 5, "copy (2 kinds)": 7, "window": 1}


def test_branches_are_a_table_of_all_combinations() -> None:
    assert list(branch_tables({"hash_join": 3}, SHIPPED)) == []
    (table,) = branch_tables({"bloom": 3, "bloom.left.emitted": 2, "bloom.inner.shared": 1}, SHIPPED)
    out = io.StringIO()
    Console(file=out, width=120).print(table)
    lines = [line.split() for line in out.getvalue().splitlines()]
    others = ["false_positive", "deferred", "switched_off", "late"]
    assert lines[0] == ["bloom", "discarded", "emitted", "shared", "shared_emitted", *others]
    assert ["left", "2", "0", "0", "0", "0", "0", "0"] in lines  # a left join discards no rows
    assert ["inner", "0", "1", "0", "0", "0", "0"] in lines


def test_clock() -> None:
    assert [clock(59.9), clock(187), clock(3787)] == ["0:59", "3:07", "1:03:07"]
