"""Tests of the comparison of fuzzers: the server counts statements and plans of any fuzzer."""

import random
import shutil
import signal
import subprocess
import time
from contextlib import closing, suppress
from pathlib import Path

import psycopg
import pytest

from fuzz.bench.fuzzers import Figures, Fuzzer, measure, smith, smith_on_scene
from fuzz.execution.source_database import SourceDatabase
from fuzz.servers.arm import Arm, ArmSpec
from fuzz.servers.base import Base
from fuzz.servers.coverage import PROFILES, Covered, covered
from fuzz.servers.flavor import FLAVORS, PROFILE_FILE
from fuzz.servers.series import Series
from fuzz.sources.source import UserInput
from tests.cli.command import Command, ended, json_of

TIMEOUT = 600  # seconds
pytestmark = [pytest.mark.servers, pytest.mark.timeout(TIMEOUT)]

SCENE = (
    "CREATE TABLE p (k int) PARTITION BY LIST (k)",
    "CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)",
    "CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2)",
)


def measured(base: Base, fuzzer: Fuzzer) -> Figures:
    return measure("it", fuzzer, ArmSpec("only", base, Series("base"), FLAVORS["assert"]), 1, print)


def executing(*statements: str) -> Fuzzer:
    def fuzz(arm: Arm) -> int:
        with psycopg.connect(**arm.cluster.connect_kwargs, autocommit=True) as connection:  # type: ignore[arg-type]  # host is a str
            for sql in statements:
                with suppress(psycopg.Error):
                    connection.execute(sql.encode())
        return len(statements)

    return fuzz


@pytest.mark.usefixtures("build")
def test_plans_of_one_shape_count_once_for_any_number_of_partitions(base: Base) -> None:
    found = measured(
        base,
        executing(
            *SCENE,
            "SELECT FROM p",
            "CREATE TABLE p3 PARTITION OF p FOR VALUES IN (3)",
            "SELECT k FROM p WHERE k > 0",
            "SELECT FROM p AS a JOIN p AS b ON a.k = b.k",
            "SELECT FROM p AS a LEFT JOIN p AS b ON a.k = b.k",
        ),
    )
    assert (found.succeeded, found.failed, found.shapes) == (8, 0, 3)
    assert found.judged == 8
    assert not found.reached


@pytest.mark.usefixtures("build")
def test_errors_are_counted_and_statements_without_tables_are_not(base: Base) -> None:
    found = measured(
        base,
        executing(
            *SCENE,
            "INSERT INTO p VALUES (1)",
            "BEGIN; SELECT FROM pg_class; ROLLBACK",
            "SET work_mem = '64kB'",
            "SELECT 1 / (k - 1) FROM p",
            "SELEC",
            "DO 'BEGIN PERFORM FROM p1; PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN END'",
        ),
    )
    assert (found.succeeded, found.failed, found.shapes) == (5, 2, 2)
    assert found.valid_share == pytest.approx(5 / 7)


@pytest.mark.usefixtures("build")
def test_a_fuzzer_without_statements_has_zero_counts(base: Base) -> None:
    found = measured(base, executing())
    assert (found.succeeded, found.failed, found.shapes, found.judged) == (0, 0, 0, 0)


def drawing(queries: int) -> Fuzzer:
    def fuzz(arm: Arm) -> int:
        with closing(SourceDatabase(arm, "smith", UserInput())) as target:
            smith_on_scene(arm, target, random.Random(1), queries, TIMEOUT)
        return 0

    return fuzz


@pytest.mark.usefixtures("build")
def test_sqlsmith_is_counted(base: Base) -> None:
    # SQLsmith reads all catalogs before it draws anything, for 10 s, or for minutes on a busy machine.
    found = measured(base, drawing(100))
    assert found.failed
    assert found.succeeded
    assert found.shapes > 2


@pytest.mark.usefixtures("build")
def test_sqlsmith_ends_in_time(base: Base) -> None:
    assert measured(base, smith(seed=1, seconds=2, workers=2)).judged == 0


@pytest.mark.usefixtures("build")
def test_an_interrupted_run_keeps_finished_measurements(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    once = ("bench", "fuzzers", "pgduel", "--minutes", "0.1", "--rounds", "90", "--seed", "5")
    process = Command(tmp_path).start(*once, "--arm", "upstream", "--flavor", "assert", "--json", file)
    while process.poll() is None and not file.exists():
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    stopped = ended(process)
    first, *others = json_of(stopped, file, 2)
    assert (first["fuzzer"], first["seed"]) == ("pgduel", 5)
    assert first["seconds"] >= 6  # measured, so that the last case counts in full
    assert len(others) < 89
    assert "interrupted: the table has the finished measurements only" in stopped.err


def test_lines_and_branches_are_counted_by_directory(open_directory: Path) -> None:
    flavor = FLAVORS["coverage"]
    if not shutil.which(flavor.compiler):
        pytest.skip(f"{flavor.compiler} is not installed")
    bodies = {"reached": "return n > 1 ? 5 : 6;", "idle": "return n;"}
    for name, body in bodies.items():
        (open_directory / name).mkdir()
        (open_directory / name / f"{name}.c").write_text(f"int {name}(int n)\n{{\n\t{body}\n}}\n")
    (open_directory / "main.c").write_text(
        "int reached(int n);\nint main(int n, char **v)\n{\n\treturn reached(n);\n}\n"
    )
    sources = ["main.c", "reached/reached.c", "idle/idle.c"]
    command = [flavor.compiler, *flavor.compiler_flags.split(), "-o", "program", *sources]
    subprocess.run(command, cwd=open_directory, check=True)
    counting = {PROFILE_FILE: str(open_directory / "profiles" / PROFILES)}
    for arguments in ([], ["more"]):
        subprocess.run([open_directory / "program", *arguments], env=counting, check=False)
    found = covered(open_directory / "program", open_directory / "profiles", ["reached", "idle"])
    assert found == {"reached": Covered(3, 3, 2, 2), "idle": Covered(3, 0, 0, 0)}
