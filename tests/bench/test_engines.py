"""Tests of the comparison of engines without servers: its table, its directories, and the limit of CPU time."""

import os
from pathlib import Path

import pytest

from fuzz import workdir
from fuzz.bench.engines import PARTS, EngineFigures, without_corpus
from fuzz.campaign.counters import Counters
from fuzz.campaign.edges import Reached
from fuzz.campaign.stop import Limits
from fuzz.engines.engine import EngineName
from fuzz.report.comparison_tables import print_engines
from fuzz.report.console import Console


def figures(engine: EngineName, edges: int) -> EngineFigures:
    some = Reached(5, 50)
    parts = dict.fromkeys(PARTS, some)
    return EngineFigures(engine, 1, 60.0, 7, 70, 30, (), Reached(edges, 9000), some, parts, ())


def test_several_rounds_are_shown_as_means_with_intervals(capsys: pytest.CaptureFixture[str]) -> None:
    seeded = [figures(EngineName.SEEDED, edges) for edges in (3000, 3100, 3200)]
    print_engines(Console(), [*seeded, figures(EngineName.LIBFUZZER, 4000)])
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "│ edges  " in line)
    assert line.split("│")[2:4] == [" 3100 ± 248 ", "      4000 "]  # 4.303 * 100 / sqrt(3)


def test_each_campaign_has_a_directory_without_a_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDUEL_CAMPAIGNS", str(tmp_path))
    (workdir.inputs() / "few_rows").mkdir()
    for _ in range(2):
        with without_corpus(EngineName.LIBFUZZER, 1) as directory:
            assert workdir.inputs() == directory / "inputs"
            assert os.listdir(workdir.inputs()) == []
            (workdir.inputs() / "few_rows").mkdir()
    assert workdir.campaigns() == tmp_path


def test_a_campaign_ends_when_pgduel_and_the_servers_have_spent_its_cpu_time() -> None:
    limits = Limits(cpu_seconds=10)
    spent = Counters()
    spent.client_cpu, spent.server_cpu, spent.seconds = 4.0, 5.9, 1000.0
    assert limits.reached(spent, 0) is None
    spent.server_cpu = 6.0
    assert limits.reached(spent, 0) == "CPU time is up"
