"""Fixtures of the command line's tests."""

from pathlib import Path

import pytest

from tests.cli.bug import bugged_arms
from tests.cli.command import Command
from tests.cli.known_results import CASES, Results, options_of, results_of
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


@pytest.fixture(scope="session")
def options(tmp_path_factory: pytest.TempPathFactory) -> tuple[str | Path, ...]:
    return options_of(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="session")
def expected(tmp_path_factory: pytest.TempPathFactory, options: tuple[str | Path, ...]) -> Results:
    """Return the results of a campaign without faults."""
    pgduel = Command(tmp_path_factory.mktemp("expected"))
    done = pgduel("fuzz", *options, *CASES)
    results = results_of(pgduel.campaigns / "1")
    assert (done.status, results.cases, *results.findings.values(), len(results.doubts)) == (0, 16, 3, 2), done.out
    return results
