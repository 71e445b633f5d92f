"""Relations that are partitioned by the key that they are joined on: the workloads of queries A and B.

The key is primary, so that each partition has an index whose path keys and clauses are looked for in the key's
equivalence class; statistics are there, as they would be. Both matter: with them, master's time for query B is at 64
and 256 partitions 6.4 and 94 times that for one partition (the mail's: 6.6 and 107 times); without statistics 5.8
and 68 times; without an index 2.3 and 8.7 times.
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
            f"CREATE TABLE {relation} (k int PRIMARY KEY, a int NOT NULL, b int NOT NULL) PARTITION BY RANGE (k)"
        )
        for place, (low, high) in enumerate(pairwise(bounds)):
            connection.execute(
                f"CREATE TABLE {relation}_{place} PARTITION OF {relation} FOR VALUES FROM ({low}) TO ({high})"
            )
        connection.execute(f"INSERT INTO {relation} SELECT k, k % 7, k % 100 FROM generate_series(0, {keys - 1}) AS k")
        connection.execute(f"ANALYZE {relation}")
