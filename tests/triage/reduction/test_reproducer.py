"""Tests of reproducers: a script has exactly its case, with arbitrary text, and edits change the case."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fuzz.errors import CaseError
from fuzz.triage.reproducer.reproducer import About, parse, read_about, render
from oracles.model.case import Case, Kind, Step
from oracles.model.finding import Evidence, Finding
from oracles.model.mode import Mode, Protocol
from tests.triage.reduction.cases import cases, characters

ARMS = {"master": {"build": "abc", "series": []}, "patched": {"build": "def", "series": ["0001.patch"]}}
FINDING = Finding("result", ("master", "patched"), "rows", 1, "rows differ", "1\n2", "1")
CASE = Case(
    "copy_batches",
    (Step("CREATE TABLE t (a int, b text)"),),
    (
        Step("COPY t FROM STDIN", Kind.COPY_IN, b"1\tone\n2\t\\N\n"),
        Step("COPY t FROM STDIN", Kind.COPY_IN, b"bad\t\xff\n", may_fail=True),
        Step("SELECT * FROM t ORDER BY a", Kind.QUERY, ordered=True),
        Step("SELECT a FROM t WHERE b = $1", Kind.QUERY, params=("one",)),
    ),
    (Mode("small", (("work_mem", "64kB"),)),),
)


def script(case: Case = CASE, finding: Finding = FINDING) -> str:
    return render(case, finding, ARMS, "42/copy_batches/7", "./pgduel replay x.sql")


@given(cases)
@example(CASE)
def test_a_script_has_exactly_its_case(case: Case) -> None:
    assert parse(script(case)) == case


@given(st.text(characters), st.text(characters), st.text(characters))
@example("step 1: query", "-- end\n-- step 2: command", "\r\\q 'never closed")
def test_text_about_the_finding_does_not_change_the_case(summary: str, expected: str, actual: str) -> None:
    finding = Finding("result", ("master", "patched"), "rows", None, summary, expected, actual)
    assert parse(script(finding=finding)) == CASE


def test_the_header_has_the_finding_its_origin_and_the_replay_command() -> None:
    text = script()
    head = text[: text.index("-- pgduel: ")]
    parts = ("rows differ", "0001.patch", "42/copy_batches/7", "./pgduel replay x.sql", FINDING.fingerprint)
    assert all(each in head for each in parts)
    assert read_about(text) == About("copy_batches", "42/copy_batches/7", "result", FINDING.fingerprint, FINDING.arms)


def test_the_header_has_the_settings_of_arms_and_commands_for_one_server() -> None:
    arms = {name: {"build": "abc", "settings": ["datestyle=German, DMY"]} for name in ("master", "patched")}
    arms["master"] = {"build": "abc"}
    text = render(CASE, FINDING, arms, "1/g/2", "./pgduel replay x.sql")
    assert "\n--   arm       patched: build abc, settings datestyle=German, DMY\n" in text
    assert "\n--             master: psql -X -f THIS_FILE\n" in text
    assert "\n--             patched: PGOPTIONS='-c datestyle=German,\\ DMY' psql -X -f THIS_FILE\n" in text
    assert parse(text) == CASE
    arms["patched"] |= {"server_settings": ["wal_level=logical"]}
    text = render(CASE, FINDING, arms, "1/g/2", "./pgduel replay x.sql")
    assert "server settings wal_level=logical" in text
    assert "PGOPTIONS" not in text


@given(case=cases, sql=st.text(characters), step=st.integers(0, 9), explained=st.booleans())
@example(case=CASE, sql="SELECT '\n-- step 9: command\n'", step=4, explained=False)
@example(case=CASE, sql="SELECT b FROM t WHERE a = $1", step=4, explained=True)
def test_evidence_is_no_part_of_the_case(case: Case, sql: str, step: int, *, explained: bool) -> None:
    evidence = (Evidence(sql, (("work_mem", "'"),), explained), Evidence("SELECT 2"))
    finding = replace(FINDING, step=step, evidence=evidence)
    if step < len(case.all_steps) and case.all_steps[step].kind is Kind.QUERY:
        assert parse(script(case, finding)) == case


def test_evidence_runs_in_the_protocol_of_its_step() -> None:
    evidence = (Evidence("SELECT b FROM t", (("enable_hashjoin", "off"), ("work_mem", "1MB"))),)
    text = script(finding=replace(FINDING, step=4, evidence=evidence))
    block = text[text.index("-- evidence") : text.index("-- end")].split("\n")
    assert block[:3] == ["-- evidence 5: query executed", "SET enable_hashjoin = 'off';", "SET work_mem = '1MB';"]
    assert block[3:5] == ["PREPARE duel_statement_5 AS SELECT b FROM t;", "EXECUTE duel_statement_5('one');"]
    assert block[5:7] == ["RESET enable_hashjoin;", "SET work_mem = '64kB';"]
    explained = script(finding=replace(FINDING, step=4, evidence=(Evidence("SELECT b FROM t", explained=True),)))
    assert "\nEXPLAIN (ANALYZE, BUFFERS, SETTINGS, TIMING OFF) EXECUTE duel_statement_5('one');" in explained
    planned = script(finding=replace(FINDING, step=4, evidence=(Evidence("SELECT b FROM t", planned=True),)))
    assert "\nEXPLAIN (VERBOSE, SETTINGS, SUMMARY, MEMORY) EXECUTE duel_statement_5('one');" in planned


def test_evidence_of_the_simple_protocol_is_plain() -> None:
    cursor = replace(CASE, modes=(Mode("cursor", protocol=Protocol.CURSOR),))
    changed = "BEGIN;DELETE FROM t;ROLLBACK"
    text = script(
        cursor, replace(FINDING, step=3, evidence=(Evidence(changed, simple_protocol=True), Evidence("SELECT 2")))
    )
    first, second = text[text.index("-- evidence") : text.index("-- step 4")].split("\n\n")[:2]
    assert "DECLARE" not in first
    assert "DECLARE" in second
    assert parse(text) == cursor


def test_data_without_errors_are_inline() -> None:
    assert "COPY t FROM STDIN;\n1\tone\n2\t\\N\n\\.\n" in script()


def test_an_edited_script_has_the_edited_case() -> None:
    edited = script().replace("ORDER BY a", "ORDER BY a DESC").replace("2\t\\N\n", "3\tthree\n4\tfour\n")
    edited = edited.replace("EXECUTE duel_statement_4('one')", "EXECUTE duel_statement_4('two')")
    steps = parse(edited).steps
    assert steps[0].copy_data == b"1\tone\n3\tthree\n4\tfour\n"
    assert steps[2].sql == "SELECT * FROM t ORDER BY a DESC"
    assert steps[3].params == ("two",)


def test_a_statement_may_be_removed_or_added_below_a_marker() -> None:
    text = script()
    start = text.index("-- step 2:")
    shorter = text[:start] + text[text.index("-- step 3:") :]
    assert parse(shorter).steps == CASE.steps[:1] + CASE.steps[2:]
    longer = text.replace("CREATE TABLE t (a int, b text);", "CREATE TABLE t (a int, b text);\nCREATE INDEX ON t (a);")
    assert [step.sql for step in parse(longer).scene] == ["CREATE TABLE t (a int, b text)", "CREATE INDEX ON t (a)"]


def test_any_psql_script_is_a_case() -> None:
    text = "\\set x 1\nCREATE TABLE t (a int);\nCOPY t FROM STDIN;\n1\n\\.\n"
    text += "SELECT ';' FROM t\n;\nCOPY t TO STDOUT;\nTABLE t"
    assert parse(text).steps == (
        Step("CREATE TABLE t (a int)"),
        Step("COPY t FROM STDIN", Kind.COPY_IN, b"1\n"),
        Step("SELECT ';' FROM t", Kind.QUERY),
        Step("COPY t TO STDOUT", Kind.COPY_OUT),
        Step("TABLE t", Kind.QUERY),
    )


@pytest.mark.parametrize(
    "changing",
    [
        "WITH gone AS (DELETE FROM t RETURNING *) SELECT * FROM gone",
        "SELECT * INTO u FROM t",
        "SELECT 1\\; DELETE FROM t",
    ],
)
def test_a_query_of_a_psql_script_that_changes_data_is_a_command(changing: str) -> None:
    kinds = [step.kind for step in parse(f"{changing};\nWITH q AS (TABLE t) SELECT * FROM q;\n").steps]
    assert kinds == [Kind.COMMAND, Kind.QUERY]


def test_the_body_of_a_routine_does_not_end_its_statement() -> None:
    atomic = "CREATE FUNCTION f(a int) RETURNS int BEGIN ATOMIC SELECT 1; SELECT CASE WHEN a = 1 THEN 2 END; END"
    begin = "BEGIN"
    assert parse(f"{atomic};\n{begin};\nSELECT f(1);\nEND;\n").steps == (
        *map(Step, (atomic, begin)),
        Step("SELECT f(1)", Kind.QUERY),
        Step("END"),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT 1;\nSELECT 'a;\n", "line 2: the quotation or comment that ' opens is never closed"),
        ("SELECT 1;\n\\i other.sql\n", "line 2: .i cannot be replayed"),
        (
            "\\set n 3\nSELECT 1::n,\n:'n';",
            "line 3: :'n is a variable of psql; write its value instead",
        ),
        ("COPY t FROM STDIN;\n1\n", "line 1: the COPY data below this statement"),
        ("-- step 1: qery\nSELECT 1;", "line 1: 'qery' is no kind of step"),
        ('-- step 1: query {"tags": }\nSELECT 1;', "line 1: the text in braces is not JSON"),
        ("-- step 1: query prepared\nSELECT 1;", "line 2: this step needs PREPARE"),
        ("-- step 1: query cursor\nSELECT 1;", "line 2: this step needs DECLARE"),
        ('-- mode {"name": "x"}\nSELECT 1;', "line 2: below a mode"),
        ('-- mode {"name": "x", "protocol": "y"}\n', "line 1: .* not a Mode: .* @ data.protocol"),
        ('-- step 1: query {"params": [1]}\nSELECT 1;', r"line 1: .* not a Step: .* @ data.params\[0\]"),
        ("-- pgduel: {}\nSELECT 1;", "line 1: .* is damaged"),
    ],
)
def test_the_error_about_an_unreadable_script_has_its_line(text: str, message: str) -> None:
    with pytest.raises(CaseError, match=message):
        parse(text)


def test_a_zero_character_is_refused() -> None:
    with pytest.raises(CaseError, match="zero character"):
        script(Case("g", (), (Step("SELECT '\0'"),)))


def test_protocols_are_written_in_sql() -> None:
    query = Step("SELECT 1", Kind.QUERY)
    written = {
        protocol: script(Case("g", (), (query,), (Mode("m", protocol=protocol),)))
        for protocol in (Protocol.PREPARED, Protocol.CURSOR, Protocol.CLOSED_EARLY)
    }
    assert written[Protocol.PREPARED].count("EXECUTE duel_statement_0;") == 2
    assert "FETCH ALL FROM duel_cursor\\;\nCLOSE duel_cursor;" in written[Protocol.CURSOR]
    assert "FETCH 5 FROM duel_cursor\\;\nCLOSE duel_cursor;" in written[Protocol.CLOSED_EARLY]


def test_a_fault_of_all_arms_has_no_arm_with_the_expected_behaviour() -> None:
    crash = Finding("crash", ("a", "a"), "assertion", 3, "a crashes (as all arms do)", "the server stays up", "TRAP")
    head = script(finding=crash).partition("\n-- pgduel: ")[0]
    assert "--   expected:\n--     the server stays up\n" in head
    assert "--   actual:\n--     TRAP\n" in head
    assert "--   expected, as master did:\n" in script()


def test_a_script_of_a_hang_ends() -> None:
    text = script(finding=replace(FINDING, oracle="hang"))
    assert "\nSET statement_timeout = '30s';" in text
    assert parse(text) == CASE
