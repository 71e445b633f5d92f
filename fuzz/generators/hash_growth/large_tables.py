"""Cases of large hash tables: loops over all of their rows take tens of milliseconds.

The oracle `cancellation` judges whether such loops check for interrupts. The planner expects a thousand rows in one
batch. The rows exceed the memory, so a batch is added while most of them are there. Rows are as narrow as possible.

Such a case takes as long as several others, so only oracles that need it execute it again.
"""

import random

from fuzz.generators.choices import Stream, Weighted, another, begin, between, pick
from fuzz.generators.generator import Scale
from fuzz.generators.sql.sqltypes import INT4, INT8, Type
from oracles.explain.nodes import EXPLAINED
from oracles.model.case import Case, Kind, Step

_BYTES = 40  # of a row in the hash table
_MEMORY = Weighted((70, 100), (30, 200))  # kB per row of the scale
_FILL = (105, 140)  # rows, in percent of those that fill the memory; so there are two batches
_PROBES = (10, 2000)
_SETTINGS = ("SET enable_mergejoin = off", "SET hash_mem_multiplier = 1")
# The planner expects a million rows of the outer side, so it hashes the other one.
_QUERY = (
    "SELECT count(*), sum(b.k1) FROM (SELECT {outer} AS k1 FROM generate_series(1, (SELECT {probes})) AS g,"
    " generate_series(g, g) AS s1 OFFSET 0) AS a"
    " {join} (SELECT {inner} AS k1 FROM (SELECT generate_series(1, (SELECT {rows})) AS g) AS s2) AS b ON a.k1 = b.k1"
)
_JOINS = Weighted((60, "JOIN"), (25, "LEFT JOIN"), (10, "RIGHT JOIN"), (5, "FULL JOIN"))


def large_table_case(rng: random.Random, scale: Scale, generator: str) -> Case:
    """Return a case whose hash tables fill `scale.rows` times 100 or 200 kB."""
    type_, memory = pick(rng, (INT4, INT8)), scale.rows * _MEMORY.pick(rng)
    rows = memory * 1024 // _BYTES
    begin(rng, Stream.ACTION)
    steps = [_query(rng, type_, rows)]
    while another(rng, len(steps), max(1, scale.queries // 15)):
        steps.append(_query(rng, type_, rows))
    scene = (*_SETTINGS, f"SET work_mem = '{memory}kB'")
    samples = (EXPLAINED.name,)
    return Case(generator, tuple(map(Step, scene)), tuple(steps), samples=samples, sampled_by_content=False)


def _query(rng: random.Random, type_: Type, rows: int) -> Step:
    sql = _QUERY.format(
        outer=type_.embed("g"),
        inner=type_.embed("g"),
        probes=between(rng, *_PROBES),
        join=_JOINS.pick(rng),
        rows=rows * between(rng, *_FILL) // 100,
    )
    return Step(sql, Kind.QUERY, tags=("way.large", "expected.fewer"))
