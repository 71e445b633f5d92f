"""Tests of `read_script`: the statements of a psql script, read without a server."""

from fuzz.sources.scripts.psql import Sent, read_script


def sent(text: str, **environment: str) -> list[str]:
    return [each.sql for each in read_script(text, {}, environment)]


def test_statements_end_where_psql_ends_them() -> None:
    assert sent("SELECT ';'; SELECT $a$;$a$; /* ; /* ; */ ; */ SELECT (1;2);\n-- ;\nSELECT 3") == [
        "SELECT ';'",
        "SELECT $a$;$a$",
        "SELECT (1;2)",
        "SELECT 3",
    ]
    assert sent("SELECT 1\n\\q\nSELECT 2") == ["SELECT 1"]


def test_the_body_of_a_routine_is_one_statement() -> None:
    body = "CREATE OR REPLACE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END"
    assert sent(f"{body}; BEGIN; SELECT 1; END;") == [body, "BEGIN", "SELECT 1", "END"]


def test_an_escaped_semicolon_does_not_end_a_statement() -> None:
    assert sent(r"SELECT 1 \; SELECT 2;") == ["SELECT 1 ; SELECT 2"]


def test_data_belong_to_the_statement_that_reads_them() -> None:
    text = "COPY t FROM stdin;\n1\t;\n\\N\n\\.\nSELECT 1;\n\\copy u (a) from stdin\nx\n\\.\nSELECT 2;"
    assert read_script(text, {}, {}) == [
        Sent("COPY t FROM stdin", b"1\t;\n\\N\n", 1),
        Sent("SELECT 1", None, 5),
        Sent("COPY u (a) from stdin", b"x\n", 6),
        Sent("SELECT 2", None, 9),
    ]


def test_variables_are_replaced_by_their_values() -> None:
    text = "\\getenv top TOP\n\\set file :top '/a b.data'\nCOPY t FROM :'file'; SELECT :\"file\", :n, a[1:n], x::int;"
    assert sent(text, TOP="/top") == ["COPY t FROM '/top/a b.data'", 'SELECT "/top/a b.data", :n, a[1:n], x::int']


def test_a_quote_in_a_value_is_doubled() -> None:
    assert sent("\\set a 'it''s'\nSELECT :'a', :{?a}, :{?b};") == ["SELECT 'it''s', TRUE, FALSE"]


def test_conditions_select_statements() -> None:
    text = r"""
\set yes on
\if :yes
SELECT 1;
\if false
SELECT 2;
\elif true
SELECT 3;
\else
SELECT 4;
\endif
\else
SELECT 5;
\if true
SELECT 6;
\endif
\endif
SELECT 7;
"""
    assert sent(text) == ["SELECT 1", "SELECT 3", "SELECT 7"]


def test_conditions_on_values_of_a_server_are_false() -> None:
    text = "SELECT true AS skip \\gset\n\\if :skip\n\\quit\n\\endif\nSELECT 1;\n\\q\nSELECT 2;"
    assert sent(text) == ["SELECT true AS skip", "SELECT 1"]


def test_commands_that_print_are_ignored() -> None:
    assert sent("\\d t\n\\echo ; \n\\pset null x\nSELECT 1\n\\g\nSELECT 2 \\gexec\n\\unknown\n") == [
        "SELECT 1",
        "SELECT 2",
    ]


def test_a_new_connection_discards_the_session() -> None:
    assert sent("SET a.b = 1;\n\\c -\nSHOW a.b;") == ["SET a.b = 1", "DISCARD ALL", "SHOW a.b"]


def test_an_unclosed_quotation_ends_the_script() -> None:
    assert sent("SELECT 1; SELECT 'open; SELECT 2;") == ["SELECT 1"]
