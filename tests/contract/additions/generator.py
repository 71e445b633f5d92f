"""Joins on the keys of a range-partitioned table."""

import random
from typing import ClassVar

from fuzz.generators.choices import between
from fuzz.generators.generator import Generator, Scale
from oracles.model.case import Case, Kind, Step

_PARTITION = "CREATE TABLE p{0} PARTITION OF p FOR VALUES FROM ({0}0) TO ({0}9)"


class AddedGenerator(Generator):
    """Joins on the keys of a range-partitioned table, with an index."""

    name: ClassVar[str] = "added_generator"
    modes: ClassVar[tuple[str, ...]] = ("added_mode",)

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case with up to 9 partitions of up to 9 rows."""
        partitions = between(rng, 1, min(9, scale.partitions))
        scene = (
            Step("CREATE TABLE p (k int PRIMARY KEY) PARTITION BY RANGE (k)"),
            *(Step(_PARTITION.format(n)) for n in range(partitions)),
            Step(f"INSERT INTO p SELECT n FROM generate_series(0, {partitions * 10 - 1}) AS n WHERE n % 10 < 9"),
        )
        return Case(self.name, scene, tuple(_join(rng, partitions) for _ in range(scale.actions(4))))


def _join(rng: random.Random, partitions: int) -> Step:
    keys = ", ".join(f"({between(rng, 0, partitions * 10)})" for _ in range(between(rng, 2, 9)))
    return Step(f"SELECT o.k FROM (VALUES {keys}) AS o (k) JOIN p ON p.k = o.k", Kind.QUERY)
