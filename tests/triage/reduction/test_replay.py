"""Tests of `load`: reproducers, scripts and identities of cases, and errors about others."""

from pathlib import Path

import pytest

from fuzz.errors import CaseError
from fuzz.triage.reproducer.reproducer import load
from oracles.model.case import Step
from tests.triage.reduction.test_reproducer import CASE, script


def test_a_reproducer_has_its_case_and_its_finding(tmp_path: Path) -> None:
    path = tmp_path / "x.sql"
    path.write_text(script(), encoding="utf-8")
    replay = load(str(path))
    assert replay.case == CASE
    assert replay.about is not None
    assert replay.about.oracle == "result"


def test_a_plain_script_is_a_case_for_every_oracle(tmp_path: Path) -> None:
    path = tmp_path / "x.sql"
    path.write_text("VACUUM", encoding="utf-8")
    replay = load(str(path))
    assert replay.case.all_steps == (Step("VACUUM"),)
    assert replay.about is None


def test_a_seed_is_a_case() -> None:
    first, again, other = (load(f"1/partitioned_joins/{index}").case for index in (3, 3, 4))
    assert first == again != other


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"SELECT 'x", "x.sql, line 1: the quotation or comment that ' opens"),
        (b"\xff", "x.sql cannot be read .*UTF-8"),
        (b"-- nothing", "x.sql has no statement"),
    ],
)
def test_an_unreadable_file_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x.sql"
    path.write_bytes(content)
    with pytest.raises(CaseError, match=message):
        load(str(path))


@pytest.mark.parametrize("what", ["nowhere.sql", "1/2", "", "1/no such/2"])
def test_names_of_neither_files_nor_cases_are_refused(what: str) -> None:
    with pytest.raises(CaseError, match="SEED/GENERATOR/INDEX"):
        load(what)


def test_the_error_about_an_unknown_generator_lists_all_generators() -> None:
    with pytest.raises(CaseError, match=r"no generator is called 'nosuch'; give one of .*partitioned_joins"):
        load("1/nosuch/2")
