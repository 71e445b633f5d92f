"""Cases of planned Bloom filters: the planner expects several batches, and the estimate of the rows is far too high.

A shared filter belongs to a Parallel Hash. The first rows have one key, of the first batch. They nearly fill the
memory, so the filter must become smaller. With many batches, it is a reason for more of them instead. Later rows may be
wide, so that batches are added while the filter is nearly empty. Without workers, the hash table has skew buckets.

A late filter is so large that it is allocated after 4,096 hash values only. Rows without a match may be so few that the
hash join stops to use it.
"""

import random

from fuzz.generators.choices import Stream, Weighted, another, begin, between, pick
from fuzz.generators.generator import Scale
from fuzz.generators.hash_growth.first_key import KEY_OF_FIRST_BATCH
from fuzz.generators.sql.sqltypes import INT4, INT8, Type
from oracles.explain.nodes import EXPLAINED
from oracles.model.case import Case, Kind, Step

_EXPECTED_BYTES = 72  # of a row in the hash table: the planner expects 32 bytes of text
_OVERHEAD = 40  # bytes of a row in the hash table, in addition to its text
_MD5 = 32  # characters
_BATCHES = 4.2  # batches that the planner expects, so there are eight, and space for a filter is left
_JOINS = Weighted((40, "JOIN"), (25, "LEFT JOIN"), (25, "RIGHT JOIN"), (10, "FULL JOIN"))
_SETTINGS = ("SET enable_mergejoin = off", "SET hash_mem_multiplier = 1")

# Two frequent keys. Those of type int8 have one hash value.
_FREQUENT = {INT4: (1, 2), INT8: (1, 1 << 32)}
_CHUNK = 32  # kB in which the processes of a Parallel Hash allocate memory
_CHUNKS = (8, 6, 4)
_BESIDE_CHUNKS = (10, 22)  # kB of memory beside chunks: enough for buckets, but not for a filter, too
_FACTORS = Weighted((55, 1), (25, 4), (20, 8))  # expected batches, as a multiple of _BATCHES
_LATER = (150, 250)  # rows
_LATER_TIMES = Weighted((40, 1), (60, 50))
_WORKERS = Weighted((50, 1), (25, 2), (25, 0))
_FILL = (85, 100)  # percentage of the chunks but one that the first rows fill
_TABLES = (
    "CREATE TABLE s1 (k1 {type}, i1 int4, w1 text)",
    "CREATE TABLE s2 (k1 {type}, i1 int4)",
    "INSERT INTO s1 SELECT CASE WHEN g <= {first} THEN {key} WHEN g = {rows} THEN {once} ELSE g % {distinct} END, g,"
    " repeat(md5(g::text), CASE WHEN g <= {first} THEN {times} ELSE {later} END) FROM generate_series(1, {rows}) AS g",
    "INSERT INTO s2 SELECT CASE g % 3 WHEN 0 THEN g + {first} / 2 WHEN 1 THEN {once} ELSE {twice} END, g"
    " FROM generate_series(1, {rows}) AS g",
    "ALTER TABLE s1 SET (parallel_workers = {workers})",
    "ALTER TABLE s2 SET (parallel_workers = {workers})",
    # Statistics of the keys of s1 would make the planner hash s2.
    "ANALYZE s1 (i1)",
    "ANALYZE s2",
    "UPDATE pg_class SET reltuples = reltuples * {claimed} WHERE oid = 's1'::regclass",
    "UPDATE pg_class SET reltuples = reltuples * 1000 WHERE oid = 's2'::regclass",
)
_SHARED = (
    "SELECT count(*), sum(length(b.w1)) FROM s2 AS a"
    " {join} (SELECT k1, {text} AS w1 FROM s1 WHERE {condition}) AS b ON a.k1 = b.k1"
)
# Under an outer join, the expression is computed below the hash table, whose rows are then wider than 8 kB.
_OVERSIZED = "coalesce(repeat(md5(i1::text), 300), '')"
_OVERSIZED_ROWS = (20, 80)


def shared_filter_case(rng: random.Random, scale: Scale, generator: str) -> Case:
    """Return a case whose hash table has many rows of the first batch, and mostly a filter of several processes."""
    type_, chunks, times = pick(rng, (INT8, INT4)), pick(rng, _CHUNKS), pick(rng, (6, 4))
    memory = chunks * _CHUNK + between(rng, *_BESIDE_CHUNKS)
    first = (chunks - 1) * _CHUNK * 1024 * between(rng, *_FILL) // 100 // (_OVERHEAD + _MD5 * times)
    rows = first + between(rng, *_LATER)
    claimed = round(_BATCHES * _FACTORS.pick(rng) * memory * 1024 / (_EXPECTED_BYTES * rows))
    once, twice = _FREQUENT[type_]
    places = {
        "type": type_.name,
        "first": first,
        "rows": rows,
        "times": times,
        "later": _LATER_TIMES.pick(rng),
        "distinct": pick(rng, (3, 9973)),
        "key": type_.embed(str(KEY_OF_FIRST_BATCH)),
        "once": once,
        "twice": twice,
        "workers": _WORKERS.pick(rng),
        "claimed": max(2, claimed),
    }
    scene = (*(sql.format(**places) for sql in _TABLES), *_SETTINGS, f"SET work_mem = '{memory}kB'")
    begin(rng, Stream.ACTION)
    steps = [_shared_query(rng, first, rows)]
    while another(rng, len(steps), scale.actions(8)):
        steps.append(_shared_query(rng, first, rows))
    return Case(generator, tuple(map(Step, scene)), tuple(steps), samples=(EXPLAINED.name,))


def _shared_query(rng: random.Random, first: int, rows: int) -> Step:
    few = between(rng, *_OVERSIZED_ROWS)
    condition, text = Weighted(
        (45, (_before(first - between(rng, 0, first // 4) + 1), "w1")),
        (30, (_before(rows + 1), "w1")),
        (15, (_before(few + 1), _OVERSIZED)),
        (10, (_behind(rows - few), _OVERSIZED)),
    ).pick(rng)
    sql = _SHARED.format(join=_JOINS.pick(rng), text=text, condition=condition)
    return Step(sql, Kind.QUERY, tags=("way.shared_filter", "expected.more"))


def _before(number: int) -> str:
    """Return a condition for the rows before one. The planner expects nearly all rows."""
    return f"least(i1, {number}) <> {number}"


def _behind(number: int) -> str:
    return f"greatest(i1, {number}) <> {number}"


_LATE_MEMORY = (512, 1024)  # kB. A filter is allocated late if it has more than 16 kB.
_LATE_ROWS = (4200, 6000)
_LATE_FUNCTION = (
    "CREATE FUNCTION claimed() RETURNS TABLE (k1 {type}, w1 text) LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS {claimed}"
    " AS $$BEGIN RETURN QUERY SELECT {key}, g::text FROM generate_series(1, {rows}) AS g; END$$"
)
# The planner expects a million rows of the outer side, so it hashes the function's.
_LATE = (
    "SELECT count(*), sum(length(b.w1)) FROM (SELECT {outer} AS k1 FROM generate_series(1, (SELECT {probes})) AS g,"
    " generate_series(g, g) AS s1 OFFSET 0) AS a {join} claimed() AS b ON a.k1 = b.k1"
)
# Keys of the outer side: mostly all have a match
_OUTER = Weighted((60, "g % 4000 + 1"), (20, "g"), (20, "g % 4000 * 7"))
_PROBES = Weighted((40, 4000), (30, 20_000), (30, 200))


def late_filter_case(rng: random.Random, scale: Scale, generator: str) -> Case:
    """Return a case of a function whose rows need no batches, though the planner expects them."""
    type_, memory = pick(rng, (INT4, INT8)), pick(rng, _LATE_MEMORY)
    claimed = round(_BATCHES * memory * 1024 / _EXPECTED_BYTES)
    key, rows = type_.embed("g"), between(rng, *_LATE_ROWS)
    create = _LATE_FUNCTION.format(type=type_.name, claimed=claimed, key=key, rows=rows)
    scene = (create, *_SETTINGS, f"SET work_mem = '{memory}kB'")
    begin(rng, Stream.ACTION)
    steps = [_late_query(rng, type_)]
    while another(rng, len(steps), scale.actions(10)):
        steps.append(_late_query(rng, type_))
    return Case(generator, tuple(map(Step, scene)), tuple(steps), samples=(EXPLAINED.name,))


def _late_query(rng: random.Random, type_: Type) -> Step:
    sql = _LATE.format(outer=type_.embed(_OUTER.pick(rng)), probes=_PROBES.pick(rng), join=_JOINS.pick(rng))
    return Step(sql, Kind.QUERY, tags=("way.late_filter", "expected.more"))
