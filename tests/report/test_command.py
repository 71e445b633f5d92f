"""Tests of `pgduel report`: which formats are printed, where files go, and refusals of one line."""

import json
from pathlib import Path

import pytest

from tests.campaign.old_store import old_campaign
from tests.cli.preloaded import PreloadedCommand


@pytest.fixture
def pgduel(tmp_path: Path) -> PreloadedCommand:
    return PreloadedCommand(old_campaign(tmp_path / "campaigns").parent)


def test_a_text_format_is_printed(pgduel: PreloadedCommand) -> None:
    ended = pgduel("report", "--as", "markdown")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.startswith("# 4 distinct bugs\n")


def test_the_page_is_written_beside_the_store(pgduel: PreloadedCommand) -> None:
    ended = pgduel("report")
    assert ended.out == f"{pgduel.campaigns}/1/pgduel-1.html\n"
    assert Path(ended.out.strip()).read_text().startswith("<!doctype html>")


def test_several_formats_go_into_a_directory(pgduel: PreloadedCommand, tmp_path: Path) -> None:
    into = tmp_path / "new" / "results"
    ended = pgduel("report", "1", "--as", "junit", "--as", "sarif", "--into", into)
    assert ended.out == f"{into}/pgduel-1.xml\n{into}/pgduel-1.sarif\n"
    assert len(json.loads((into / "pgduel-1.sarif").read_text())["runs"][0]["results"]) == 4


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["7"], "no campaign is called '7'; pgduel list campaigns names them"),
        (["--bench", "/absent.json"], "give --bench a file of pgduel bench --json"),
        (["--coverage", "/absent.json"], "give --coverage a file of pgduel coverage --series --json"),
        (["--as", "markdown", "--into", "/proc/absent"], "give --into a writable directory"),
    ],
)
def test_refusals_have_one_line(pgduel: PreloadedCommand, arguments: list[str], reason: str) -> None:
    ended = pgduel("report", *arguments)
    assert (ended.status, ended.out) == (2, "")
    (line,) = ended.err.splitlines()
    assert reason in line
