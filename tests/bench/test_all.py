"""Tests of runs of several benches on real servers: data made once, a limit of time, and interrupted runs."""

import inspect
import json
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

from fuzz import workdir
from fuzz.bench.bench import Point, all_benches
from fuzz.bench.bloom import BloomBench
from fuzz.bench.fdw import FdwAnalyzeBench
from fuzz.bench.kept_data import have_equal_catalogs, kept_data
from fuzz.cli.measuring import Chosen, Selection, measuring
from fuzz.report.bench_result import read_bench
from fuzz.servers.build import Build
from fuzz.servers.cluster import Cluster
from fuzz.servers.series import series_from_directory
from tests.cli.command import Command, ended, json_of

OPTIMIZATIONS = workdir.PROJECT / "patches" / "pg17" / "optimizations"
TINY = BloomBench(scale=0.0005)
POINTS: Sequence[Point] = [(64, 8)]


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a directory for the benches' data, beside that of servers."""
    directory = Path(tempfile.mkdtemp(prefix="bench-data-", dir=workdir.root()))
    directory.chmod(0o755)
    monkeypatch.setattr(workdir, "bench_data", lambda: directory)
    yield directory
    shutil.rmtree(directory)


def measured(selection: Selection, **given: Any) -> None:
    """Run the command of a selection with these options."""

    def choose() -> Selection:
        return selection

    command = measuring(choose)
    defaults = {name: each.default for name, each in inspect.signature(command).parameters.items()}
    command(**defaults | given)


def test_each_mail_has_headlines() -> None:
    found = [bench for bench in all_benches().values() if bench.headlines]
    assert len({bench.mail.message_id for bench in found}) == 5
    for bench in found:
        assert all(bench.mail.ratio("with", point) or bench.mail.claim for point in bench.headlines)
        assert len({type(bench).for_headlines().label(point) for point in bench.headlines}) == len(bench.headlines)


@pytest.mark.servers
@pytest.mark.timeout(900)
def test_data_are_made_once_and_continued_by_other_servers(build: Build, data: Path) -> None:
    lines: list[str] = []
    for _ in range(2):
        with (
            kept_data(TINY, POINTS, build, lines.append) as found,
            Cluster(build, "copy", settings=dict(TINY.settings), data=found) as cluster,
        ):
            assert rows_of(cluster) == 50_000  # unlogged tables survive a clean stop only
    assert lines == ["making the data of bloom"]
    with kept_data(BloomBench(scale=0.001), POINTS, build, lines.append):
        assert lines == ["making the data of bloom"] * 2
    assert [path.name for path in data.iterdir() if path.is_dir()] == ["bloom"]


def rows_of(cluster: Cluster) -> int:
    with psycopg.connect(**cluster.connect_kwargs) as connection:  # type: ignore[arg-type]  # host is a str
        ((count,),) = connection.execute("SELECT count(*) FROM fact").fetchall()
    return int(count)


@pytest.mark.servers
@pytest.mark.timeout(900)
def test_a_killed_process_leaves_no_half_of_the_data(build: Build, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(workdir, "write", killed)
        with pytest.raises(KeyboardInterrupt), kept_data(TINY, POINTS, build, print):
            pass
    lines: list[str] = []
    with kept_data(TINY, POINTS, build, lines.append):
        assert lines == ["making the data of bloom"]


@pytest.mark.servers
def test_equal_builds_have_equal_catalogs(build: Build) -> None:
    assert have_equal_catalogs(build, build)


@pytest.mark.servers
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("data")
@pytest.mark.long
def test_a_limited_run_measures_a_patch_with_and_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PGDUEL_CAMPAIGNS", str(tmp_path))
    arms = ("without=master", "again=master", "with=patched")  # builds that other tests have, too
    monkeypatch.setattr("fuzz.cli.measuring.default_arms", lambda *_: arms)
    bench, file = FdwAnalyzeBench(), tmp_path / "bench.json"
    chosen: list[Chosen] = [(bench, [(20_000, 10, 2), (20_000, 10, 4)]), (TINY, list(POINTS))]
    own = {"flavor": "assert", "seconds": 1, "json_file": file, "setting": ["shared_buffers=64MB"]}
    measured(Selection(chosen[:1], minutes=0.01), **own)
    fdw, *others = read_bench(file)
    assert (others, fdw.bench, fdw.rounds) == ([], "fdw_analyze", 3)
    assert list(fdw.pairs) == [("without", "again"), ("without", "with")]
    facts = json.loads(file.read_text())["arms"]
    assert facts["without"]["build"] == facts["again"]["build"] != facts["with"]["build"]
    assert facts["with"]["series"][-1] == series_from_directory(OPTIMIZATIONS).patches[-1].name
    assert "2 rows, at most 0.01 minutes" in capsys.readouterr().out
    measured(Selection(chosen, minutes=0.01), **own, arm=["a=upstream", "b=upstream"])
    assert [each.bench for each in read_bench(file)] == ["fdw_analyze", "bloom"]
    out = capsys.readouterr().out
    assert "| bench | row | b | mail |" in out
    assert "| bloom | inner, 64 MB, 50% match | " in out


@pytest.mark.servers
@pytest.mark.timeout(900)
@pytest.mark.long
def test_an_interrupted_run_prints_its_rows_and_continues(tmp_path: Path) -> None:
    command, file = Command(tmp_path), tmp_path / "bench.json"
    arms = ("--arm", "a=upstream", "--arm", "b=upstream", "--flavor", "assert", "--json", file)
    run = ("bench", "copy", "keeping", "--rows", "10", "--clients", "1,2", *arms)
    process = command.start(*run, "--rounds", "90")
    while process.poll() is None and visits(tmp_path) < 5:
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    stopped = ended(process)
    first = json_of(stopped, file, 2)
    assert "the same command with --resume continues" in stopped.out
    assert [len(row["samples"]["a"]) >= 2 for row in first["rows"]] == [True, True]
    again = json_of(command(*run, "--rounds", "4", "--resume"), file, 0)
    for row, before in zip(again["rows"], first["rows"], strict=True):
        shared = min(len(before["samples"]["a"]), 4)
        assert row["samples"]["a"][:shared] == before["samples"]["a"][:shared]
        assert len(row["samples"]["a"]) >= 4


def visits(directory: Path) -> int:
    return sum(len(file.read_text().splitlines()) for file in directory.glob("benches/*.jsonl"))
