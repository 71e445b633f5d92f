"""Fixtures of the command line's tests."""

from pathlib import Path

import pytest

from tests.cli.bug import bugged_arms
from tests.cli.command import Command
from tests.cli.preloaded import PreloadedCommand


@pytest.fixture
def pgduel(tmp_path: Path) -> Command:
    return Command(tmp_path / "campaigns")


@pytest.fixture
def preloaded(tmp_path: Path) -> PreloadedCommand:
    return PreloadedCommand(tmp_path / "campaigns")


@pytest.fixture(scope="session")
def bugged(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    return bugged_arms(tmp_path_factory.mktemp("bug"))
