"""Reproducers of the corpus, replayed on the arms that pgduel ships: what was fixed remains so."""

from pathlib import Path

import pytest

from fuzz import workdir
from tests.cli.command import Command

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]

REPRODUCERS = workdir.CHECKOUT / "corpus" / "reproducers"
FIXED = sorted(REPRODUCERS.glob("fixed/*.sql"))
OPEN = sorted(REPRODUCERS.glob("open/*.sql"))


@pytest.mark.parametrize("file", FIXED, ids=lambda file: file.stem)
def test_what_was_fixed_does_not_differ(pgduel: Command, file: Path) -> None:
    ended = pgduel("replay", file)
    assert ended.status == 0, ended.out + ended.err


@pytest.mark.parametrize("file", OPEN, ids=lambda file: file.stem)
def test_what_is_open_is_the_base_s_own(pgduel: Command, file: Path) -> None:
    """Once it is no longer found here, it belongs to what was fixed."""
    ended = pgduel("replay", file, "--arm", "a=master", "--arm", "b=master")
    assert ended.status == 1, ended.out + ended.err
