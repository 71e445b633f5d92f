"""Statements that are nested too deeply for pglast are refused, and all others can be printed again."""

import pytest
from pglast.parser import ParseError

from oracles.sql.building import printed, trees
from oracles.sql.parsing import MOST_LEVELS, parse_statements

LEVELS = {
    "operators": ("SELECT 1", "+1", ""),
    "casts": ("SELECT 1", "::int", ""),
    "tests": ("SELECT 1", " ISNULL", ""),
    "calls": ("SELECT ", "f(a, ", "1", ")"),
    "subqueries": ("SELECT ", "(SELECT b, ", "1", ")"),
    "set operations": ("SELECT a, b", " UNION SELECT a, b", ""),
    "joins": ("SELECT a, b FROM t", " CROSS JOIN t", ""),
    "cases": ("SELECT ", "CASE WHEN a THEN b ELSE ", "c", " END"),
}


def nested(opening: tuple[str, ...], levels: int) -> str:
    """Return a statement with so many levels of a kind."""
    start, more, middle, *closing = opening
    return start + more * levels + middle + "".join(closing) * levels


@pytest.mark.parametrize("kind", LEVELS.values(), ids=LEVELS)
@pytest.mark.parametrize("levels", [MOST_LEVELS + 1, 200_000])
def test_statements_with_too_many_levels_are_refused(kind: tuple[str, ...], levels: int) -> None:
    with pytest.raises(ParseError):
        parse_statements(nested(kind, levels))


@pytest.mark.parametrize("kind", LEVELS.values(), ids=LEVELS)
def test_statements_with_fewer_levels_are_printed(kind: tuple[str, ...]) -> None:
    sql = nested(kind, MOST_LEVELS // 4)
    (tree,) = trees(sql)
    assert printed(tree.stmt)


def test_long_statements_of_few_levels_are_parsed() -> None:
    rows = ", ".join(["((1 + 2), 'a, b', f(3, 4))"] * 5_000)
    assert len(parse_statements(f"INSERT INTO t VALUES {rows}; SELECT 1")) == 2


def test_what_pglast_prints_as_no_sql_is_not_printed() -> None:
    sql = "SELECT string_agg(b, '-' ORDER BY b USING OPERATOR(pg_catalog.~>~)) FROM t"
    assert not printed(trees(sql)[0].stmt)
