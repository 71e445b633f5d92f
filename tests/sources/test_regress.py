"""Tests of `needed`: the earlier statements that later ones need."""

import pglast
import pytest

from fuzz.sources.regress import needed


def chosen(earlier: str, later: str) -> list[str]:
    first, second = pglast.split(earlier), pglast.split(later)
    trees = [[pglast.parse_sql(sql)[0].stmt for sql in script] for script in (first, second)]
    return [first[position] for position in needed(*trees)]


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        ("SELECT * FROM b", ["CREATE TABLE b (x colour)", "INSERT INTO b SELECT y FROM a"]),
        ("SELECT f(1)", ["CREATE FUNCTION f(int) RETURNS int LANGUAGE sql AS 'SELECT 1'"]),
        ("SELECT 1", []),
        ("CREATE TABLE c () INHERITS (gone)", ["CREATE TABLE gone (z int)"]),
    ],
)
def test_tables_in_a_query_need_their_definition_and_rows(later: str, expected: list[str]) -> None:
    earlier = """
        CREATE TYPE colour AS ENUM ('red'); CREATE TABLE a (y colour); INSERT INTO a VALUES ('red');
        CREATE TABLE b (x colour); INSERT INTO b SELECT y FROM a; SELECT * FROM b; COPY b TO STDOUT;
        CREATE FUNCTION f(int) RETURNS int LANGUAGE sql AS 'SELECT 1';
        CREATE TABLE gone (w int); INSERT INTO gone VALUES (1); DROP TABLE gone; CREATE TABLE gone (z int)"""
    found = chosen(earlier, later)
    assert [sql for sql in found if sql in expected] == expected
    others = {sql for sql in found if sql not in expected}
    filled = ["CREATE TYPE colour AS ENUM ('red')", "CREATE TABLE a (y colour)", "INSERT INTO a VALUES ('red')"]
    assert others == (set(filled) if "b" in later.split() else set())


def test_tables_in_a_query_need_their_indexes_and_changes() -> None:
    earlier = "CREATE TABLE t (a int); CREATE INDEX i ON t (a); ALTER TABLE t ADD b int; ANALYZE t; DROP TABLE u"
    assert chosen(earlier, "SELECT b FROM t") == list(pglast.split(earlier))[:4]
