"""Relations that are partitioned by the key that they are joined on: the workloads of queries A and B.

The key has an index, so that path keys and clauses of each partition's are looked for in the key's equivalence class,
and statistics are there, as they would be: without an index, master's time for query B grows a tenth as much. The
index isn't unique. Were it, 17 would consider Memoize for look-ups that find one row at most, of which 18 considers
fewer; that is a sixth of planning with one partition, and has nothing to do with equivalence classes.
"""

from itertools import pairwise

from fuzz.bench.bench import Connection

_KEYS = 1024  # rows of each relation, whatever its partitions, as long as there are not more of these


def create_relations(connection: Connection, number: int, partitions: int) -> None:
    """Make r1, r2, ... in the current schema, each with a row for each key, and so many ranges of keys."""
    keys = max(_KEYS, partitions)
    bounds = [keys * place // partitions for place in range(partitions + 1)]
    for relation in (f"r{place}" for place in range(1, number + 1)):
        connection.execute(
            f"CREATE TABLE {relation} (k int NOT NULL, a int NOT NULL, b int NOT NULL) PARTITION BY RANGE (k)"
        )
        for place, (low, high) in enumerate(pairwise(bounds)):
            connection.execute(
                f"CREATE TABLE {relation}_{place} PARTITION OF {relation} FOR VALUES FROM ({low}) TO ({high})"
            )
        connection.execute(f"CREATE INDEX ON {relation} (k)")
        connection.execute(f"INSERT INTO {relation} SELECT k, k % 7, k % 100 FROM generate_series(0, {keys - 1}) AS k")
        connection.execute(f"ANALYZE {relation}")
