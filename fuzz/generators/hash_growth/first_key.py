"""Cases of one first key: the first rows to be hashed have one key, and nearly fill the memory.

The planner expects more rows, though narrower ones, so there are many batches. The hash value of the key is 0, so these
rows are in the first batch, and nothing divides them, but later rows need more batches.
"""

import random

from fuzz.generators.choices import Stream, Weighted, another, begin, between, pick
from fuzz.generators.generator import Scale
from fuzz.generators.sql.sqltypes import INT4, INT8, Type
from oracles.explain.nodes import EXPLAINED
from oracles.model.case import Case, Kind, Step

_MD5 = 32  # characters
_FIRST_KEY_SETTINGS = (Step("SET work_mem = '64kB'"), Step("SET hash_mem_multiplier = 1"))
# hash_bytes_uint32 (hashfn.c) gives 0 for it, and so do hashint4 and hashint8.
KEY_OF_FIRST_BATCH = 1474049294
# Bytes of the first rows in a hash table. Beside them, there is room for their buckets, but not for half of the memory,
# which a Bloom filter may take. That also holds for the limits under which `memory` repeats a query.
_FIRST_BYTES = (49_000, 53_000)
_FIRST_OVERHEAD = 40  # bytes of a row in a hash table, in addition to its text
# Widths are unknown to the planner, and it expects 32 bytes of text. So it expects 64 batches.
_FIRST_KEY_ROWS = (16_000, 20_000)
_LATER_BYTES = (16, 20)  # of all later rows, in kB per row of the scale
_FIRST_KEY_FUNCTION = (
    "CREATE FUNCTION first_key() RETURNS TABLE (k1 {type}, w1 text) LANGUAGE plpgsql STABLE PARALLEL SAFE"
    " ROWS {rows} AS $$BEGIN"
    " RETURN QUERY SELECT {first}, repeat(md5(g::text), {narrow}) FROM generate_series(1, {count}) AS g;"
    " RETURN QUERY SELECT {later}, repeat(md5(g::text), {wide}) FROM generate_series(1, {others}) AS g; END$$"
)
# The planner expects a million rows of the outer side, so it hashes the function's.
_FIRST_KEY_QUERY = (
    "SELECT count(*), sum(length(b.w1)) FROM (SELECT {outer} AS k1 FROM generate_series(1, (SELECT {probes})) AS g,"
    " generate_series(g, g) AS s1 OFFSET 0) AS a {join} first_key() AS b ON a.k1 = b.k1"
)
_FIRST_KEY_JOINS = Weighted((50, "JOIN"), (20, "LEFT JOIN"), (15, "RIGHT JOIN"), (15, "FULL JOIN"))


def first_key_case(rng: random.Random, scale: Scale, generator: str) -> Case:
    """Return a case with a function whose first rows have one key."""
    type_ = pick(rng, (INT4, INT8))
    narrow, wide = pick(rng, (3, 6)), pick(rng, (45, 30))
    create = _FIRST_KEY_FUNCTION.format(
        type=type_.name,
        rows=between(rng, *_FIRST_KEY_ROWS),
        first=type_.embed(str(KEY_OF_FIRST_BATCH)),
        narrow=narrow,
        count=between(rng, *_FIRST_BYTES) // (_FIRST_OVERHEAD + _MD5 * narrow),
        later=type_.embed("g"),
        wide=wide,
        others=scale.rows * 1000 * between(rng, *_LATER_BYTES) // (_FIRST_OVERHEAD + _MD5 * wide),
    )
    begin(rng, Stream.ACTION)
    steps = [_first_key_query(rng, type_)]
    while another(rng, len(steps), scale.actions(8)):
        steps.append(_first_key_query(rng, type_))
    return Case(generator, (Step(create), *_FIRST_KEY_SETTINGS), tuple(steps), samples=(EXPLAINED.name,))


def _first_key_query(rng: random.Random, type_: Type) -> Step:
    sql = _FIRST_KEY_QUERY.format(outer=type_.embed("g"), probes=between(rng, 1, 100), join=_FIRST_KEY_JOINS.pick(rng))
    return Step(sql, Kind.QUERY, tags=("way.first_key", "expected.more"))
