"""Tests of the sizes by which reducers are compared."""

from dataclasses import asdict

from fuzz.bench.reduction.reducer import size_of
from oracles.model.case import Case, Kind, Step
from oracles.model.mode import Mode

QUERY = Step("SELECT a FROM t WHERE a = 1", Kind.QUERY)
CASE = Case("g", (Step("CREATE TABLE t (a int)"),), (QUERY,))


def test_statements_settings_data_and_parameters_count() -> None:
    small = size_of(CASE, 1)
    assert (small.statements, small.alone) == (2, len(QUERY.sql))
    data = Step("COPY t FROM STDIN", Kind.COPY_IN, b"1\n")
    with_more = Case("g", CASE.scene, (data, QUERY), (Mode("m", (("work_mem", "64kB"),)),))
    large = size_of(with_more, None)
    assert (large.statements, large.alone) == (4, 0)
    assert large.characters == small.characters + len("COPY t FROM STDIN") + 2 + len("SET work_mem = '64kB'")


def test_a_smaller_tree_has_fewer_nodes_and_invalid_sql_has_one() -> None:
    nodes = [size_of(Case("g", (), (Step(sql),)), None).nodes for sql in (QUERY.sql, "SELECT a FROM t", "SELEC")]
    assert nodes == sorted(nodes, reverse=True)
    assert nodes[-1] == 1
    assert set(asdict(size_of(CASE, None))) == {"statements", "characters", "nodes", "alone"}
