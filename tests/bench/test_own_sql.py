"""Tests of the bench of the user's own SQL: equal work on all arms, errors in one line, and a result without a mail."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from fuzz.bench.bench import BenchError
from fuzz.bench.own_sql import SqlBench
from fuzz.bench.run import Limits, run_bench
from fuzz.report.bench_result import read_bench
from fuzz.servers.arm import Arm
from fuzz.servers.build import Build
from fuzz.servers.cluster import Cluster
from tests.cli.command import Command, json_of

SETUP = "CREATE TABLE t (a int);\nCOPY t FROM STDIN;\n1\n2\n\\.\n"
FILL = "\\set n random(1, 1000000)\nINSERT INTO t VALUES (:n);\n"
COUNT = "SELECT count(*) FROM t;\nSELECT pg_sleep(0.001);"


def files(directory: Path, **texts: str) -> list[Path]:
    made = [directory / f"{name}.sql" for name in texts]
    for path, text in zip(made, texts.values(), strict=True):
        path.write_text(text)
    return made


@pytest.fixture
def arms(build: Build) -> Iterator[tuple[Arm, ...]]:
    with Cluster(build, "one") as one, Cluster(build, "two") as two:
        yield Arm("one", build, one, ()), Arm("two", build, two, ())


@pytest.mark.servers
def test_all_arms_do_the_same_work(arms: tuple[Arm, ...], tmp_path: Path) -> None:
    setup, *measured = files(tmp_path, setup=SETUP, fill=FILL, count=COUNT)
    bench = SqlBench(measured, setup)
    rows = run_bench(bench, arms, bench.points({}), limits=Limits(2), seconds=1, report=lambda line: None)
    assert [(row.case, row.arm, row.against, row.mail) for row in rows] == [
        (str(each), "two", "one", None) for each in measured
    ]
    assert all(row.low <= row.ratio <= row.high for row in rows)
    assert min(rows[1].samples) > 1  # the file sleeps for a millisecond
    digests = [digest(arm) for arm in arms]
    assert digests[0] == digests[1]
    assert digests[0][0] > 4


def digest(arm: Arm) -> tuple[int, int]:
    with psycopg.connect(**arm.cluster.connect_kwargs) as connection:  # type: ignore[arg-type]  # host is a str
        ((count, total),) = connection.execute("SELECT count(*), sum(a) FROM t").fetchall()
    return count, total


@pytest.mark.servers
def test_errors_name_the_file_and_have_the_servers_words(arms: tuple[Arm, ...], tmp_path: Path) -> None:
    wrong, unknown = files(tmp_path, wrong="SELECT 1;\nSELECT x FROM y;", unknown="\\gexec")
    for made, message in (
        (SqlBench([], wrong), f'{wrong} fails on arm one: line 2: ERROR:  relation "y" does not exist'),
        (SqlBench([wrong]), f"{wrong}: pgbench failed on arm one: client 0 script 0 aborted in command 1 query 0: ERR"),
        (SqlBench([unknown]), 'invalid command in command "gexec"'),
    ):
        with pytest.raises(BenchError) as refused:
            run_bench(made, arms, made.points({}), limits=Limits(2), seconds=1, report=lambda line: None)
        assert message in str(refused.value)
        assert "\n" not in str(refused.value)


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(
        BenchError, match=r"^cannot read .*absent.sql \(No such file or directory\); give a file of SQL"
    ):
        SqlBench([tmp_path / "absent.sql"])
    (binary := tmp_path / "binary.sql").write_bytes(b"SELECT '\xff';")
    with pytest.raises(BenchError, match=r"^cannot read .*; give a file of SQL in UTF-8$"):
        SqlBench([binary])


@pytest.mark.servers
@pytest.mark.timeout(900)
def test_the_command_measures_arms_with_different_settings(tmp_path: Path) -> None:
    (count,) = files(tmp_path, count="SELECT pg_sleep(current_setting('my.sleep')::float8 / 1000);")
    file = tmp_path / "bench.json"
    arms = ("--arm", "fast=upstream", "--arm", "slow=upstream", "--set", "my.sleep=1", "--set", "slow:my.sleep=50")
    ended = Command(tmp_path / "campaigns")(
        "bench", "sql", count, *arms, "--flavor", "assert", "--rounds", "2", "--json", file
    )
    data = json_of(ended, file, 0)
    assert data["arms"]["slow"]["settings"] == ["my.sleep=50"]
    assert data["rows"][0]["ratio"] > 1
    assert "settings of slow: my.sleep=50" in ended.out
    assert "mail" not in ended.out
    (result,) = read_bench(file)
    assert result.mail is None
