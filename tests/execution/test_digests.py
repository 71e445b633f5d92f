"""Tests of digests: the contents of tables, views and sequences after a case."""

import pytest

from fuzz.execution.executor import Executor
from oracles.model.case import Case, Step
from oracles.model.observation import Run
from tests.execution.conftest import Observe

pytestmark = pytest.mark.servers


def test_digests_cover_rows_partitions_and_sequences(observe: Observe) -> None:
    scene = (
        Step("CREATE TABLE p (k int, v text) PARTITION BY LIST (k)"),
        Step("CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)"),
        Step("CREATE TABLE p2 PARTITION OF p DEFAULT"),
        Step("CREATE VIEW v AS SELECT v FROM p"),
        Step("CREATE VIEW broken AS SELECT 1/k FROM p"),
        Step("CREATE MATERIALIZED VIEW m AS SELECT v FROM p WITH NO DATA"),
        Step("CREATE TEMP TABLE t (k int)"),
        Step("CREATE SEQUENCE s"),
    )
    first = dict(observe(Step("INSERT INTO p VALUES (0, 'a'), (1, 'b')"), scene=scene).digests)
    again = dict(observe(Step("INSERT INTO p VALUES (1, 'b'), (0, 'a')"), scene=scene).digests)
    other = dict(observe(Step("INSERT INTO p VALUES (0, 'b'), (1, 'a')"), scene=scene).digests)
    assert list(first) == ["broken", "m", "p", "s", "t", "v"]
    assert first["broken"] == "error 22012"
    assert first["m"] == "error 55000"
    assert first["s"] == "1 unused"
    assert first == again
    assert (first["v"], first["t"]) == (other["v"], other["t"])
    assert first["p"] != other["p"]


def test_digests_that_take_too_long_are_absent(twins: tuple[object, ...]) -> None:
    case = Case("test", (), (Step("CREATE TABLE t (n int)"), Step("CREATE VIEW slow AS SELECT pg_sleep(5)::text")))
    with Executor(twins, "hasty", statement_timeout_ms=200) as executor:  # type: ignore[arg-type]
        (observed,) = executor.observe(case, [Run("a", ())]).values()
    assert (observed.digested, observed.digests) == (False, ())
    assert observed.residue is not None


def test_digests_differ_for_a_row_in_the_wrong_partition(observe: Observe) -> None:
    rows = Step("INSERT INTO p VALUES (1, 2)")
    digests = [
        dict(
            observe(
                rows,
                scene=(
                    Step("CREATE TABLE p (k int, l int) PARTITION BY LIST (k)"),
                    Step(f"CREATE TABLE {name} PARTITION OF p DEFAULT"),
                ),
            ).digests
        )
        for name in ("p1", "p2")
    ]
    assert digests[0].keys() == digests[1].keys()
    assert digests[0] != digests[1]
