"""Tests of the known good version, with which the shipped patches were last tested."""

import hashlib
from pathlib import Path

import pytest

from fuzz.servers.known_good import FILE, is_newer, known_archive, known_good, made_for, newer_than_known


@pytest.mark.parametrize(
    ("version", "good", "newer"),
    [
        ("17.12", "17.11", True),
        ("17.9", "17.11", False),
        ("17.11", "17.11", False),
        ("18.1", "17.11", False),
        ("17devel", "17.11", False),
        ("17.12", "", False),
    ],
)
def test_only_later_minor_releases_are_newer(version: str, good: str, newer: bool) -> None:  # noqa: FBT001
    assert is_newer(version, good) is newer


def test_a_version_without_a_record_is_not_newer() -> None:
    assert known_good(17)
    assert newer_than_known(f"{known_good(17)}0") == known_good(17)
    assert newer_than_known("16.99") == newer_than_known("19devel") == ""


def test_a_version_is_recorded_once_for_all_series_of_a_major_version(tmp_path: Path) -> None:
    patch = tmp_path / "pg17" / "variants" / "one" / "1.patch"
    assert made_for([patch]) == ""
    patch.parent.mkdir(parents=True)
    (tmp_path / "pg17" / FILE).write_text("17.11 0123abcd\n")
    assert made_for([tmp_path / "other.patch", patch]) == "17.11"


def test_the_archive_of_the_known_good_version_is_recorded_by_its_hash() -> None:
    recorded = known_archive(17)
    assert recorded is not None
    assert recorded[0] == known_good(17)
    assert len(bytes.fromhex(recorded[1])) == hashlib.sha256().digest_size
    assert known_archive(16) is None
