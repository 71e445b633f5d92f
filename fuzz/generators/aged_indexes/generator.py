"""Generator `aged_indexes`: scans of indexes of every method whose table has changed since they were built.

Changes leave dead rows, heap-only chains, split and empty pages, pending lists and unsummarized ranges, also those that
are rolled back. Maintenance removes them, partly or entirely, and marks pages as all-visible before the next change.
"""

import random
from typing import ClassVar

from fuzz.generators.aged_indexes.ageing import make_ageing
from fuzz.generators.aged_indexes.queries import make_query
from fuzz.generators.aged_indexes.table import create, make_table
from fuzz.generators.choices import between, chance
from fuzz.generators.generator import Generator, Scale
from oracles.model.case import Case, Step

_SETTINGS = ("SET enable_seqscan = off", "SET enable_bitmapscan = off", "SET enable_indexonlyscan = off")


class AgedIndexes(Generator):
    """Scans of one table's indexes between changes, rolled back or not, and maintenance."""

    name: ClassVar[str] = "aged_indexes"
    cpu_seconds: ClassVar[float] = 0.6
    modes: ClassVar[tuple[str, ...]] = (
        "plain",
        "indexes",
        "indexes+loop_only",
        "indexes+small_memory",
        "parallel",
        "parallel+indexes",
        "indexes+extended",
        "indexes+cursor",
        "indexes+closed_early",
    )

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case: a table with indexes, then queries between changes and maintenance."""
        table = make_table(rng, scale)
        scene = [
            *create(rng, table, scale),
            *(Step(sql) for sql in _SETTINGS if chance(rng, 20)),
            *(make_ageing(rng, table) if chance(rng, 60) else ()),
        ]
        steps, queries = [make_query(rng, table)], 1
        while queries < scale.queries and rng.randrange(100):  # a shrinking rng ends the loop
            steps += make_ageing(rng, table) if chance(rng, 60) else ()
            more = min(between(rng, 1, 3), scale.queries - queries)
            steps += [make_query(rng, table) for _ in range(more)]
            queries += more
        # No sample: what VACUUM can remove, and so the costs of a plan, depend on other sessions of the server.
        return Case(self.name, tuple(scene), tuple(steps), sampled_by_content=False)
