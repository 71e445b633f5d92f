"""Tests of salted hash values: other tuples in the batches of hash joins, and the same rows."""

import pytest

from fuzz.execution.executor import Executor
from fuzz.execution.messages import values_of
from fuzz.servers.arm import Arm, build_arms, parse_arm
from fuzz.servers.base import Base
from fuzz.servers.cluster import Cluster
from fuzz.servers.flavor import COVERAGE, FLAVORS
from oracles.explain.nodes import Node, places, salted
from oracles.memory.batches import WRITTEN
from oracles.model.case import Case, Step
from oracles.model.mode import HASH_ONLY, Mode
from oracles.model.observation import CaseObservation, Run
from tests.execution.conftest import Observe, query

pytestmark = pytest.mark.servers

SALTS = range(6)
SMALL = Mode("small", (("work_mem", "64kB"), ("hash_mem_multiplier", "1")))
ALONE = Mode("alone", (("max_parallel_workers_per_gather", "0"),))
WORKERS = Mode(
    "workers",
    (
        *(("max_parallel_workers_per_gather", "2"), ("min_parallel_table_scan_size", "0")),
        *(("parallel_setup_cost", "0"), ("parallel_tuple_cost", "0")),
    ),
)
WIDE = (
    Step("CREATE TABLE wide AS SELECT g / 10 AS k, repeat('x', 1000) AS t FROM generate_series(1, 300) AS g"),
    Step("ANALYZE wide"),
)
JOIN = query("SELECT a.k, count(a.t), count(b.t) FROM wide AS a JOIN wide AS b USING (k) GROUP BY a.k ORDER BY a.k")


def written(observed: CaseObservation) -> int:
    """Return the blocks that the hash table of the only query wrote."""
    (seen,) = observed.steps
    assert seen.plan
    nodes: list[Node] = [place.node for place in places(seen.plan)]
    (table,) = (node for node in nodes if node["Node Type"] == "Hash")
    blocks: int = table[WRITTEN]
    return blocks


def test_salts_change_the_tuples_in_batches(observe: Observe) -> None:
    modes = (HASH_ONLY, SMALL, ALONE)
    blocks = [
        written(observe(JOIN, scene=WIDE, modes=(*modes, salted(salt)), explain=True)) for salt in (*SALTS, *SALTS)
    ]
    assert blocks[: len(SALTS)] == blocks[len(SALTS) :]
    assert len(set(blocks)) > 2


@pytest.mark.parametrize("processes", [ALONE, WORKERS], ids=lambda mode: mode.name)
def test_salts_do_not_change_rows(observe: Observe, processes: Mode) -> None:
    modes = (HASH_ONLY, SMALL, processes)
    plain, *others = (observe(JOIN, scene=WIDE, modes=(*modes, salted(salt))).steps for salt in SALTS)
    assert len(plain[0].rows) == 31
    assert all(other == plain for other in others)


def test_only_hash_functions_without_a_seed_are_salted(observe: Observe) -> None:
    scene = (
        Step("CREATE FUNCTION own(int4) RETURNS int4 LANGUAGE internal IMMUTABLE STRICT AS 'hashint4'"),
        Step("CREATE TABLE p (k int) PARTITION BY HASH (k)"),
        *(Step(f"CREATE TABLE p{n} PARTITION OF p FOR VALUES WITH (modulus 3, remainder {n})") for n in range(3)),
        Step("INSERT INTO p SELECT generate_series(1, 20)"),
    )
    rows = query(
        "SELECT hashint4(7), own(7), hashint4extended(7, 0), (SELECT string_agg(k::text, ' ' ORDER BY k) FROM p1)"
    )
    plain, one, other = (
        values_of(observe(rows, scene=scene, modes=(salted(salt),)).steps[0].rows[0]) for salt in (0, 1, 2)
    )
    assert len({plain[0], one[0], other[0]}) == 3
    for values in (plain, one, other):
        assert values[0] == values[1]
        assert values[2:] == plain[2:]


def test_salts_change_values_if_clang_compiled_the_server(base: Base) -> None:
    ((build, _),) = build_arms([parse_arm("it=patched", base, FLAVORS[COVERAGE], print)], print)
    case = Case("test", (), (query("SELECT hashint4(7)"),))
    runs = [Run("it", (salted(salt),)) for salt in (0, 1, 2)]
    with Cluster(build, "it") as cluster, Executor([Arm("it", build, cluster, ())]) as executor:
        seen = executor.observe(case, runs)
    assert len({seen[run].steps[0].rows for run in runs}) == 3
