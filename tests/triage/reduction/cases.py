"""Hypothesis strategies for cases with more unusual text than any generator's."""

from hypothesis import strategies as st

from oracles.model.case import Case, Kind, SameRows, Step
from oracles.model.mode import Mode, Protocol

characters = st.characters(codec="utf-8", exclude_characters="\0")
nasty = st.sampled_from(
    [
        "SELECT 1",
        "SELECT 'a;b', \"c;d\", $x$;$x$ -- ;",
        "SELECT 1 /* ; */",
        "SELECT 1; SELECT 2",
        "SELECT 'never closed",
        "SELECT $a$ never closed",
        "SELECT (1",
        "\\q",
        "SELECT :HOST, a[1:2], b::int",
        "SELECT '\n-- step 1: query\n'",
        "-- end\nSELECT 1",
        "SELECT 1 -- comment",
        "SELECT E'\\'' || 'x'",
        "SELECT 1\r\n",
        " \n SELECT 1 \n",
        ";",
        "DECLARE duel_cursor CURSOR FOR SELECT 1\n;\nFETCH 3 FROM duel_cursor;CLOSE duel_cursor",
        "PREPARE a AS SELECT 1",
        "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; END",
    ]
)
copies = st.sampled_from(
    [
        "COPY t FROM STDIN",
        "COPY t (a, b) FROM STDIN (FORMAT csv)",
        "COPY t FROM STDIN WITH (FORMAT binary)",
        "copy t from stdin",
        "COPY t\nFROM STDIN",
        "COPY t FROM STDIN; SELECT 1",
        "COPY t FROM STDIN -- comment",
        "COPY \" FROM STDIN\" FROM STDIN (DELIMITER ':')",
        "COPY t FROM PROGRAM 'cat \"$PGDUEL_DATA\"'",
        "COPY t FROM :'pgduel_data' FROM STDIN",
        "COPY t TO STDOUT",
    ]
)
sql = st.one_of(nasty, copies, st.text(characters))
lines = st.sampled_from(
    [b"1\ta\n", b"\\.\n", b"\\.\r\n", b"\\N\n", b"'\"$x$\n", b"-- end\n", b"\xff\xfe\n", b"\0", b"x", b""]
)
data = st.one_of(st.none(), st.binary(), st.lists(lines).map(b"".join))
values = st.one_of(st.none(), st.sampled_from(["", "NULL", "null", "'", "\\", "a,b", "1)"]), st.text(characters))
names = st.from_regex(r"[a-z][a-z_0-9]{0,9}(\.[a-z]{1,5})?", fullmatch=True)

# Words of which none begins like a mode or a tag of earlier versions (fuzz/documents.py), which reading converts.
words = st.text(characters).map(lambda word: f"x{word}")

steps = st.builds(
    Step,
    sql=sql,
    kind=st.sampled_from(Kind),
    copy_data=data,
    params=st.lists(values, max_size=3).map(tuple),
    ordered=st.booleans(),
    may_fail=st.booleans(),
    tags=st.lists(words, max_size=2).map(tuple),
    same_rows=st.none() | st.sampled_from(SameRows),
)
modes = st.builds(
    Mode,
    name=words,
    settings=st.lists(st.tuples(names, st.text(characters)), max_size=3).map(tuple),
    protocol=st.one_of(st.none(), st.sampled_from(Protocol)),
    changes_results=st.booleans(),
    optional=st.booleans(),
)
cases = st.builds(
    Case,
    generator=st.text(characters),
    scene=st.lists(steps, max_size=4).map(tuple),
    steps=st.lists(steps, max_size=6).map(tuple),
    modes=st.lists(modes, max_size=3).map(tuple),
    samples=st.lists(st.text(characters), max_size=2).map(tuple),
)
