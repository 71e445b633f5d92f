"""Cases of joins on rows that another hash join stored.

CREATE TABLE AS stores the rows of a hash join batch by batch. So the first rows of the stored table have one batch
number of that join. Another statement hashes the stored table on the same key. It must add batches, as the planner
expects few rows or narrow ones. If the first rows have one batch number in this join, too, it stops adding batches.

The whole result of the first join is stored, in rows of equal size. So the stored tables of all arms have the same rows
in as many pages, though in another order.

PostgreSQL takes the batch number from the bits above those of the bucket number. The first join may use so much memory
that it has at least eight times the buckets of the second one. Then the batches of the two have no bit in common. So
the second join fits into its memory on any arm. The first one has several batches only because the planner expects far
more rows.
"""

import random

from fuzz.generators.choices import Stream, Weighted, another, begin, between, chance, pick
from fuzz.generators.generator import Scale
from fuzz.generators.sql.sqltypes import INT4, INT8, UUID
from oracles.explain.nodes import EXPLAINED
from oracles.model.case import Case, Kind, Step

_FIRST_MEMORY = 8192  # kB
_FIRST_BYTES = {INT4: 72, INT8: 80, UUID: 88}  # of a row in the first hash table: the planner expects 32 bytes of text
# Batches of the first join, and its expected rows in percent of its memory. Neither buckets nor somewhat more memory
# change the number of batches.
_FIRST_BATCHES = Weighted((80, (2, (140, 165))), (20, (4, (280, 310))))
_COPIES = Weighted((70, 1), (20, 2), (10, 5))  # rows of a key
_MEMORY = Weighted((70, 64), (15, 100), (15, 128))  # kB, of the second join
# Bytes of the stored rows of one batch, in percent of the second join's memory. With more memory and other batches,
# they exceed it, too.
_FILL = (220, 310)
_ROWS = (3000, 5900)
_OVERHEAD = 48  # bytes of a row in the second hash table, in addition to its text
_MD5 = 32  # characters
_PROBES = (20, 100)
_TABLES = (
    "CREATE TABLE s1 (k1 {type}, i1 int4, w1 text)",
    "CREATE TABLE s2 (k1 {type}, i1 int4)",
    "CREATE TABLE s3 (k1 {type}, i1 int4)",
    "INSERT INTO s1 SELECT {key}, g, repeat(md5(g::text), {times}) FROM generate_series(1, {rows}) AS g",
    "INSERT INTO s2 SELECT {other_key}, g FROM generate_series(1, {keys}) AS g",
    "INSERT INTO s3 SELECT {probe}, g FROM generate_series(1, {probes}) AS g",
    # The order of stored rows depends on the timing of parallel workers.
    "ALTER TABLE s1 SET (parallel_workers = 0)",
    "ALTER TABLE s2 SET (parallel_workers = 0)",
    # Statistics of the text would have its width.
    "ANALYZE s1 (k1, i1)",
    "ANALYZE s2",
    "ANALYZE s3",
    "UPDATE pg_class SET reltuples = {claimed} WHERE oid = 's1'::regclass",
    # The planner hashes the smaller side.
    "UPDATE pg_class SET reltuples = 10000000 WHERE oid IN ('s2'::regclass, 's3'::regclass)",
    "SET enable_mergejoin = off",
    "SET enable_nestloop = off",
    "SET hash_mem_multiplier = 1",
)
# Each row of s1 has one partner, so all of these have equal rows.
_STORED = "CREATE TABLE stored AS SELECT b.k1, b.i1, b.w1, a.i1 AS i2 FROM s2 AS a {join} s1 AS b ON a.k1 = b.k1{limit}"
_STORED_JOINS = Weighted((50, "JOIN"), (20, "LEFT JOIN"), (15, "RIGHT JOIN"), (15, "FULL JOIN"))
# A node above the hash join, so that it has the number of those below an aggregate. All rows are kept.
_LIMIT = " LIMIT 1000000"
_SERIAL = "SET max_parallel_workers_per_gather = 0"  # nor is there a Gather above
_FUNCTION = (
    "CREATE FUNCTION few_stored() RETURNS SETOF stored LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 20"
    " AS $$BEGIN RETURN QUERY SELECT * FROM stored; END$$"
)
# All of them return all rows. The planner expects a few, or all rows if it has statistics.
_HASHED = Weighted(
    (50, ("fewer", "(SELECT * FROM stored WHERE (i1 - 1) / {rows} = 0)")),
    (20, ("fewer", "few_stored()")),
    (15, ("fewer", "(SELECT * FROM stored WHERE (i1 - 1) / {rows} = 0 AND (i2 - 1) / {rows} = 0)")),
    (15, ("right", "(SELECT * FROM stored WHERE i1 <= {rows})")),
)
_COUNTED = "SELECT count(*), sum(length(b.w1)) FROM s3 AS a {join} {hashed} AS b ON a.k1 = b.k1"
_RETURNED = "SELECT a.i1, b.i1, left(b.w1, 4) FROM s3 AS a {join} {hashed} AS b ON a.k1 = b.k1"
_JOINS = Weighted((55, "JOIN"), (25, "LEFT JOIN"), (10, "RIGHT JOIN"), (10, "FULL JOIN"))
_JOINS_OF_FEW = Weighted((70, "JOIN"), (30, "LEFT JOIN"))  # return few rows


def stored_join_case(rng: random.Random, scale: Scale, generator: str) -> Case:
    """Return a case of joins on the stored result of a hash join with several batches."""
    type_, copies, memory = pick(rng, tuple(_FIRST_BYTES)), _COPIES.pick(rng), _MEMORY.pick(rng)
    counted = chance(rng, 50)
    batches, expected = _FIRST_BATCHES.pick(rng)
    size = memory * 1024 * batches * between(rng, *_FILL) // 100
    times = max(1, (size // between(rng, *_ROWS) - _OVERHEAD) // _MD5 + 1)
    rows = size // (_OVERHEAD + _MD5 * times)
    keys = -(-rows // copies)
    places = {
        "type": type_.name,
        "times": times,
        "rows": rows,
        "keys": keys,
        "key": type_.embed(f"(g - 1) / {copies} + 1"),
        "other_key": type_.embed("g"),
        "probe": type_.embed(f"g * {between(rng, 1, keys // _PROBES[1])}"),
        "probes": between(rng, *_PROBES),
        "claimed": _FIRST_MEMORY * 1024 // 100 * between(rng, *expected) // _FIRST_BYTES[type_],
        "join": _STORED_JOINS.pick(rng),
        "limit": _LIMIT if counted else "",
    }
    analyze = ("ANALYZE stored",) if chance(rng, 50) else ()
    serial = (_SERIAL,) if chance(rng, 60) else ()
    first = (*_TABLES, *serial, f"SET work_mem = '{_FIRST_MEMORY}kB'", _STORED, *analyze, _FUNCTION)
    scene = (*(sql.format(**places) for sql in first), f"SET work_mem = '{memory}kB'")
    begin(rng, Stream.ACTION)
    steps = [_query(rng, rows, counted=counted)]
    while another(rng, len(steps), scale.actions(8)):
        steps.append(_query(rng, rows, counted=counted))
    return Case(generator, tuple(map(Step, scene)), tuple(steps), samples=(EXPLAINED.name,))


def _query(rng: random.Random, rows: int, *, counted: bool) -> Step:
    """Return a query of the stored table, mostly with as many plan nodes above its hash join as that one had."""
    query = _COUNTED if counted == chance(rng, 80) else _RETURNED
    join = (_JOINS if query is _COUNTED else _JOINS_OF_FEW).pick(rng)
    expected, hashed = _HASHED.pick(rng)
    sql = query.format(join=join, hashed=hashed.format(rows=rows))
    return Step(sql, Kind.QUERY, tags=("way.stored_join", f"expected.{expected}"))
