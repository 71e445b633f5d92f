"""Fixtures of the command line's tests."""

from pathlib import Path

import pytest

from tests.cli.command import Command


@pytest.fixture
def pgduel(tmp_path: Path) -> Command:
    return Command(tmp_path / "campaigns")
