"""Tests of known faults: their file, the findings that match, and their end."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from fuzz.campaign.known import SHIPPED, KnownFault, corrections_of, fault_of, known_fault, marked, read_known
from fuzz.errors import CaseError
from fuzz.servers.series import Patch
from fuzz.triage.blame import Blame
from fuzz.triage.findings import StoredFinding, bug_key
from fuzz.triage.interestingness import ReducedCase
from oracles.model.case import Case, Kind, Step
from oracles.model.finding import UNDER_PLAN, Finding

FINDING = Finding("result", ("master", "patched"), f"rows{UNDER_PLAN}Hash Join", 0, "rows differ", "", "")
TODAY = date(2026, 11, 23)


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "known.toml"
    file.write_text(text)
    return file


def test_a_file_names_faults_by_fingerprint_or_by_oracle_and_origin(tmp_path: Path) -> None:
    text = f"""
        [[known]]
        fingerprint = "{FINDING.fingerprint}"
        link = "https://example.org/1"
        until = 2027-01-31
        [[known]]
        oracle = "result"
        origin = "rows"
        """
    by_fingerprint, by_origin = read_known(written(tmp_path, text))
    assert by_fingerprint.until == "2027-01-31"
    assert str(by_fingerprint) == f"{FINDING.fingerprint} (https://example.org/1)"
    assert known_fault(FINDING, [by_fingerprint]) is by_fingerprint
    assert known_fault(FINDING, [by_origin]) is by_origin
    other = replace(FINDING, origin="row count")
    assert known_fault(other, [by_fingerprint, by_origin]) is None


def test_a_fault_of_a_statement_is_known_whatever_the_literals_and_the_oracle() -> None:
    fault = KnownFault(statement="SELECT a FROM t WHERE b = 1", link="https://example.org/1")
    other = KnownFault(statement="SELECT a FROM t WHERE c = 1")
    case = Case("regress", (), (Step("SELECT a FROM t WHERE b = 2", Kind.QUERY),))
    on_all = replace(FINDING, arms=("master", "master"))
    seen = marked(on_all, case, [other, fault])
    assert known_fault(seen, [other, fault]) is fault
    assert seen.fingerprint != on_all.fingerprint  # so it does not stand for findings on other statements
    assert known_fault(on_all, [other, fault]) is None
    assert marked(FINDING, case, [fault]) is FINDING  # only some arms have it
    assert marked(on_all, case, [other]) is on_all
    assert marked(replace(on_all, step=None), case, [fault]).step is None


def test_a_fault_with_a_correction_is_one_that_the_correction_hides(tmp_path: Path) -> None:
    (tmp_path / "0001-fix.patch").write_text("a patch")
    (fault,) = read_known(written(tmp_path, "[[known]]\ncorrection = '0001-fix.patch'"))
    assert str(fault) == "0001-fix.patch"
    assert corrections_of([fault, KnownFault("abc")]) == (Patch("0001-fix.patch", b"a patch"),)
    blame = Blame("master", (), ((0, True),))
    found = StoredFinding(FINDING, "1/g/0", Case("g", (), ()), 1, None, reduced=True, blame=blame)
    assert fault_of(found, [fault]) is None
    hidden = replace(found, blame=replace(blame, correction="0001-fix.patch"))
    assert fault_of(hidden, [KnownFault("abc"), fault]) is fault
    assert hidden.blamed_on_base
    assert bug_key(replace(hidden, smallest=shown("result"))) == bug_key(replace(hidden, smallest=shown("tlp")))


def shown(oracle: str) -> ReducedCase:
    return ReducedCase(Case("g", (), ()), replace(FINDING, oracle=oracle), 1, 1)


def test_faults_of_the_corpus_are_known_if_all_arms_have_them() -> None:
    shipped = read_known(SHIPPED)
    for fault in shipped:
        assert fault.correction or fault.reproducer
        assert not fault.reproducer or (SHIPPED.parent / f"{fault.reproducer}.sql").exists()
    crash = next(fault for fault in shipped if fault.oracle == "crash")
    found = replace(FINDING, oracle="crash", origin=crash.origin, arms=("master", "master"))
    assert known_fault(found, shipped) is crash
    assert known_fault(replace(found, arms=("master", "patched")), shipped) is None


@pytest.mark.parametrize(
    ("until", "expected"),
    [
        ("", True),
        ("17.12", True),
        ("17.11", False),
        ("18", True),
        ("17", False),
        ("2026-11-24", True),
        ("2026-11-23", False),
        ("20261123", False),
    ],
)
def test_a_fault_is_expected_until_a_version_or_a_date(until: str, *, expected: bool) -> None:
    assert KnownFault("abc", until=until).is_expected("17.11", TODAY) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("known = 1", "write a table [[known]] for each fault"),
        ("[[known]]\nlink = 'x'", "fault 1: write fingerprint"),
        ("[[known]]\noracle = 'result'", "fault 1: write fingerprint"),
        ("[[known]]\nfingerprint = 'a'\noracle = 'result'\norigin = 'rows'", "fault 1: write fingerprint"),
        ("[[known]]\noracle = 'absent'\norigin = 'x'", "no oracle is called 'absent'"),
        ("[[known]]\nstatement = 'no SQL'", "statement cannot be parsed"),
        ("[[known]]\nstatement = 'SELECT 1'\nfingerprint = 'a'", "fault 1: write fingerprint"),
        ("[[known]]\ncorrection = 'absent.patch'", "absent.patch (No such file or directory); name the patch"),
        ("[[known]]\ncorrection = '.'\nfingerprint = 'a'", "cannot read"),
        ("[[known]]\nfingerprnt = 'x'", "no key is called 'fingerprnt'"),
        ("[[known]]\nfingerprint = 1", "all values are texts"),
        ("[[known]]\nfingerprint = 'a'\nuntil = 'soon'", "until is a version such as 17.12 or a date"),
        ("[[known]", "cannot be read"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CaseError) as raised:
        read_known(written(tmp_path, text))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="cannot be read"):
        read_known(tmp_path / "none.toml")
