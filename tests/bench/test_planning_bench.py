"""Tests of the planning benches on real servers: tables, planned queries, and errors in files."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from fuzz.bench.bench import Bench, BenchError
from fuzz.bench.join_order import HOME, JoinOrderBench
from fuzz.bench.oltp import OltpBench
from fuzz.bench.planning import QueryABench, QueryBBench
from fuzz.bench.run import Limits, Measurements, Row, Visit, run_bench
from fuzz.servers.arm import Arm
from fuzz.servers.build import Build
from fuzz.servers.cluster import Cluster

pytestmark = pytest.mark.servers


@pytest.fixture
def arms(build: Build) -> Iterator[tuple[Arm, ...]]:
    settings = dict(QueryBBench.settings) | {"shared_buffers": "64MB"}
    with Cluster(build, "one", settings=settings) as one, Cluster(build, "two", settings=settings) as two:
        yield Arm("one", build, one, ()), Arm("two", build, two, ())


def measured(bench: Bench, arms: tuple[Arm, ...], *partitions: int, taken: Measurements | None = None) -> list[Row]:
    points = bench.points({"partitions": partitions})
    return run_bench(bench, arms, points, limits=Limits(2), seconds=0, report=lambda _: None, taken=taken)


@pytest.mark.parametrize(("bench", "relations"), [(QueryABench(), 3), (QueryBBench(), 8), (QueryBBench(9), 9)])
def test_each_relation_is_scanned_in_each_partition(
    arms: tuple[Arm, ...], bench: QueryABench | QueryBBench, relations: int
) -> None:
    one, four, eight = measured(bench, arms, 1, 4, 8)
    assert (one.case, four.case) == ("1 partition", "4 partitions")
    assert [row.extras["memory"] for row in (one, four, eight)] == [1, 1, 1]
    assert eight.extras["growth"] == pytest.approx(eight.median / four.median)
    assert "growth" not in four.extras
    with psycopg.connect(**arms[0].cluster.connect_kwargs) as connection:  # type: ignore[arg-type]  # host is a str
        connection.execute("SET search_path = partitions_4")
        plan = connection.execute(f"EXPLAIN {next(iter(bench.queries().values()))}").fetchall()
    assert sum("Scan" in line for (line,) in plan) == relations * 4


def test_a_run_continues_after_all_rounds_of_a_point(arms: tuple[Arm, ...]) -> None:
    taken = Measurements([Visit((1,), {"one": 2.0, "two": 1.0}, 0.1)] * 2)
    done, other = measured(QueryBBench(2), arms, 1, 2, taken=taken)
    assert (done.ratio, "memory" in done.extras) == (0.5, False)
    assert other.extras["memory"] == 1


def test_all_queries_over_films_are_planned(arms: tuple[Arm, ...]) -> None:
    bench = JoinOrderBench()
    (row,) = measured(bench, arms, 2)
    assert len(bench.queries()) >= 20
    assert row.extras["memory"] == pytest.approx(1, rel=0.01)
    assert row.mail is None  # the arms are one build
    assert bench.mail.ratio("with", (2,)) == pytest.approx(100 / 97.7)


def test_a_users_schema_gets_partitions_before_its_rows(arms: tuple[Arm, ...], tmp_path: Path) -> None:
    schema = tmp_path / "schema.sql"
    schema.write_text(
        'CREATE TABLE "A b" (id int) PARTITION BY HASH (id); CREATE TABLE c (id int);'
        'INSERT INTO "A b" SELECT generate_series(1, 99); INSERT INTO c TABLE "A b";'
    )
    (tmp_path / "1.sql").write_text('SELECT FROM "A b" JOIN c USING (id); CREATE INDEX ON c (id); SELECT 1')
    bench = JoinOrderBench(schema, tmp_path)
    assert list(bench.queries()) == ["1.sql:1", "1.sql:3"]
    measured(bench, arms, 3)
    with psycopg.connect(**arms[0].cluster.connect_kwargs) as connection:  # type: ignore[arg-type]  # host is a str
        parts = connection.execute('SELECT DISTINCT tableoid FROM partitions_3."A b"').fetchall()
    assert len(parts) == 3


def test_the_error_about_a_query_without_its_table_names_the_query(arms: tuple[Arm, ...], tmp_path: Path) -> None:
    (tmp_path / "odd.sql").write_text("SELECT * FROM no_such_film")
    bench = JoinOrderBench(HOME / "schema.sql", tmp_path)
    with pytest.raises(BenchError, match=r"query odd.sql:1: relation \"no_such_film\" does not exist"):
        measured(bench, arms, 1)


def test_a_schema_without_partitions_is_refused(arms: tuple[Arm, ...], tmp_path: Path) -> None:
    schema = tmp_path / "schema.sql"
    schema.write_text("CREATE TABLE a (id int)")
    with pytest.raises(BenchError, match="has no table PARTITION BY HASH"):
        measured(JoinOrderBench(schema), arms, 1)


def test_pgbench_runs_both_of_its_scripts_on_partitions(arms: tuple[Arm, ...]) -> None:
    bench = OltpBench()
    points = bench.points({"partitions": [2]})
    rows = run_bench(bench, arms, points, limits=Limits(2), seconds=1, report=lambda _: None)
    assert [row.case for row in rows] == ["select-only, 2 partitions", "tpcb-like, 2 partitions"]
    assert all(row.median > 0 for row in rows)
    server = {**arms[0].cluster.connect_kwargs, "dbname": "partitions_2"}
    with psycopg.connect(**server) as connection:  # type: ignore[arg-type]  # host is a str
        parts = connection.execute("SELECT DISTINCT tableoid FROM pgbench_accounts").fetchall()
    assert len(parts) == 2
