"""Tests of the forms of a finding that need no server."""

import runpy
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fuzz.report.forms.form import Form, Opened, ReportedFinding, all_forms, title_of
from fuzz.report.forms.mail import WIDTH, mail_text
from fuzz.report.forms.regress import regress_script
from fuzz.triage.interestingness import ReducedCase
from oracles.model.case import Case, Kind, Step
from oracles.model.finding import Evidence, Finding
from tests.triage.reduction.cases import cases, characters

FINDING = Finding(
    "result", ("master", "patched"), "rows", 1, "step 1: 1 row missing", "these rows\n  1 | one", "no row at all"
)
CASE = Case("joins", (Step("CREATE TABLE t (a int, b text)"),), (Step(f"SELECT '{'long ' * 40}'", Kind.QUERY),))
FACTS = {
    name: {"base": {"version": "17.11"}, "flavor": "assert", "series": series}
    for name, series in {"master": [], "patched": ["0001-Make-it-fast.patch"]}.items()
}


def nothing_opened() -> AbstractContextManager[Opened]:
    raise AssertionError


def reported(script: str = "SELECT 1;\n", case: Case = CASE, finding: Finding | None = FINDING) -> ReportedFinding:
    return ReportedFinding(
        "0123456789ab", "result", FINDING.arms, case, script, "--arm a=b", nothing_opened, finding, "0001"
    )


def only(form: str, about: ReportedFinding) -> str:
    (text,) = all_forms()[form].files(about).values()
    return text


def test_each_form_has_a_name_and_a_docstring() -> None:
    assert {"sql", "regress", "pytest", "mail"} <= set(all_forms())
    assert all(isinstance(form, Form) and form.__doc__ for form in all_forms().values())


@given(st.text(characters))
@example("SELECT '\"\"\"', E'\\\\', '\t\r\n\x85';\n\"")
def test_the_form_sql_is_the_exact_script(script: str) -> None:
    assert only("sql", reported(script)) == script


@given(script=st.text(characters))
@example(script="SELECT '\"\"\"', E'\\\\', '\t\r\n\x85\u2028';\n\"")
def test_a_test_for_pytest_has_the_exact_script(tmp_path_factory: pytest.TempPathFactory, script: str) -> None:
    file = Path(tmp_path_factory.mktemp("form")) / "test_x.py"
    file.write_text(only("pytest", reported(script)), encoding="utf-8")
    made = runpy.run_path(str(file))
    assert made["SCRIPT"] == script
    assert made["ARMS"] == "--arm a=b"
    assert "test_finding_0123456789ab_does_not_show" in made


@given(case=cases)
def test_a_script_for_pg_regress_has_no_comments_for_pgduel(case: Case) -> None:
    script = regress_script(case, replace(FINDING, step=None))
    assert not any(
        line.startswith(("-- step ", "-- scene ", "-- mode {", "-- pgduel: ")) for line in script.split("\n")
    )


def test_a_script_for_pg_regress_has_the_evidence_without_explain() -> None:
    evidence = (
        Evidence("SELECT 'evidence'"),
        Evidence("SELECT 'explained'", explained=True),
        Evidence("SELECT 2", planned=True),
    )
    script = regress_script(CASE, replace(FINDING, evidence=evidence))
    assert script.startswith("--\n-- 1 row missing\n--\n\nCREATE SCHEMA duel;\n")
    assert "\nSELECT 'evidence';\n" in script
    assert "EXPLAIN" not in script


def test_a_mail_is_complete_and_has_short_lines() -> None:
    plans = {"master": ["Hash Join", f"  Hash Cond: ({'a = b AND ' * 20} c = d)"], "patched": ["Seq Scan"]}
    text = mail_text(reported(), FACTS, ReducedCase(CASE, FINDING, 3, 3), plans)
    parts = ["Subject: 1 row missing", "PostgreSQL 17.11", "0001-Make-it-fast.patch", "CREATE TABLE t (a int, b text);"]
    parts += ["Expected, as master did:", "1 | one", "Actual, as patched did:", "no row at all"]
    parts += ["Plan of master:", "Hash Join", "Plan of patched:", "0123456789ab", "To blame: 0001."]
    for each in parts:
        assert each in text
    assert all(len(line) <= WIDTH or line.startswith("SELECT ") for line in text.split("\n"))
    assert "-- step" not in text
    assert "did not show again" not in text


def test_a_mail_about_a_crash_has_a_backtrace() -> None:
    crash = replace(FINDING, oracle="crash", step=None, actual='TRAP: failed Assert("x")\nExecMakeTableFunctionResult')
    text = mail_text(replace(reported(), oracle="crash"), FACTS, ReducedCase(CASE, crash, 0, 20), {})
    assert 'Backtrace, as patched did:\n\n  TRAP: failed Assert("x")\n  ExecMake' in text
    assert "It did not show again in 20 runs just now." in text


def test_a_title_numbers_no_steps() -> None:
    assert title_of(FINDING) == "1 row missing"
