"""Tests of the generator `window_frames` without servers: its frames, orders, and shrinking."""

import random
import re

import pglast
import pytest
from pglast.ast import WindowDef
from pglast.visitors import Visitor

from fuzz.generators.generator import Scale
from fuzz.generators.window_frames import WindowFrames
from oracles.model.case import Step
from tests.generators.drawing import select_of
from tests.generators.shrinking import assert_shrinks

# Functions whose value depends on the order of rows with equal keys, and aggregates of equal but distinguishable values
_NEEDS_ORDER = re.compile(r"(row_number|ntile|lag|lead|\w+_value|array_agg|string_agg)\(.*?\) OVER (w\d)")
_PICKS_NUMERIC = re.compile(r"(min|max)\(m\)")


@pytest.fixture(scope="module")
def queries() -> list[Step]:
    return [step for n in range(40) for step in WindowFrames().generate(random.Random(f"unit/{n}"), Scale()).steps]


@pytest.mark.parametrize(
    "text",
    [
        *("ROWS BETWEEN", "GROUPS BETWEEN", "RANGE BETWEEN", "EXCLUDE CURRENT ROW", "EXCLUDE GROUP", "EXCLUDE TIES"),
        *("9223372036854775807 FOLLOWING", "interval '1 day' PRECEDING", "30::int8 FOLLOWING", "a.k PRECEDING"),
        *("FILTER", "WHERE r <=", "sum(count(*))", "LIMIT", "w3", "nth_value", "array_agg", "cume_dist"),
    ],
)
def test_queries_have(queries: list[Step], text: str) -> None:
    assert any(text in step.sql for step in queries)


class _Windows(Visitor):
    """The named windows of a query, by name: the last key of their order, and their unit."""

    def __init__(self) -> None:
        super().__init__()
        self.orders: dict[str, str] = {}

    def visit_WindowDef(self, _ancestors: object, node: WindowDef) -> None:
        if node.name and node.orderClause:
            self.orders[node.name] = node.orderClause[-1].node.fields[-1].sval


def test_an_undetermined_order_decides_nothing(queries: list[Step]) -> None:
    for step in queries:
        windows = _Windows()
        windows(pglast.parse_sql(step.sql))
        totals = {name for name, key in windows.orders.items() if key == "id"}
        named = dict(re.findall(r"(w\d) AS \((.*?)\)(?=, w\d AS|\)|$| ORDER)", step.sql))
        by_row = {name for name, text in named.items() if "ROWS BETWEEN" in text}
        assert by_row | {match[1] for match in _NEEDS_ORDER.findall(step.sql)} <= totals, step.sql
        assert not _PICKS_NUMERIC.search(step.sql)


def test_rows_are_limited_only_under_a_total_order(queries: list[Step]) -> None:
    for step in queries:
        top = select_of(step.sql)
        assert step.ordered == ("sortClause" in top) == ("limitCount" in top), step.sql


def test_a_failing_case_shrinks() -> None:
    assert_shrinks(WindowFrames(), scene=2, characters=220, construct="EXCLUDE TIES")
