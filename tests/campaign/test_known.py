"""Tests of known faults: their file, the findings that match, and their end."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from fuzz.campaign.known import KnownFault, known_fault, read_known
from fuzz.errors import CaseError
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
