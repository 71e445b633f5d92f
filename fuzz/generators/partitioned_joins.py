"""Generator `partitioned_joins`: random joins of random partitioned tables, under modes that force different plans."""

import random
from typing import ClassVar

from fuzz.generators.choices import Stream, Weighted, another, begin, between, chance, some
from fuzz.generators.generator import Generator, Scale
from fuzz.generators.sql import tables
from fuzz.generators.sql.columns import ColumnTemplate, column_templates
from fuzz.generators.sql.partitions import Scheme, draw_scheme, vary
from fuzz.generators.sql.queries import query
from fuzz.generators.sql.tables import Table, steps_of
from oracles.model.case import Case

_TABLES = Weighted((35, 2), (30, 3), (25, 4), (10, 5))
_SCHEMES = Weighted((16, "none"), (60, "shared"), (15, "varied"), (9, "own"))
_LARGE = 10  # upper bound of the factor by which one table of a case may exceed scale.rows


class PartitionedJoins(Generator):
    """Joins of a few tables whose partition schemes are equal or nearly equal."""

    name: ClassVar[str] = "partitioned_joins"
    cpu_seconds: ClassVar[float] = 1.7
    modes: ClassVar[tuple[str, ...]] = (
        "plain",
        "partitionwise",
        "hash_spilling",
        "hash_spilling+partitionwise",
        "hash_spilling+parallel",
        "hash_only+small_memory+partitionwise",
        "hash_only+parallel+partitionwise",  # without nested loops, which might restart the workers for each row
        "hash_spilling+indexes",
        "hash_only+small_memory",
        "hash_spilling+no_pruning",
        "merge_only+partitionwise",
        "loop_only+indexes",
        "extended",
        "prepared_generic",
        "prepared_custom",
        "cursor",
        "closed_early",
    )
    scene_weight: ClassVar[int] = 1
    query_weight: ClassVar[int] = 10  # the most plan shapes, and scenes that are created fast

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case: a scene of two to five tables, then queries over them."""
        drawn = _tables(rng, scale)
        scene = tuple(step for table in drawn for step in steps_of(rng, table))
        sources = tuple(table.source for table in drawn)
        begin(rng, Stream.ACTION)
        steps = [query(rng, sources, scale.relations)]
        while another(rng, len(steps), scale.queries):
            steps.append(query(rng, sources, scale.relations))
        return Case(self.name, scene, tuple(steps))


def _tables(rng: random.Random, scale: Scale) -> tuple[Table, ...]:
    templates = column_templates(rng, scale.rows)
    shared = _scheme(rng, templates, scale)
    count = min(_TABLES.pick(rng), scale.relations)
    large = rng.randrange(count) if chance(rng, 50) else None
    drawn = []
    for n in range(count):
        scheme: dict[str, Scheme | None] = {"shared": shared, "none": None}
        choice = _SCHEMES.pick(rng)
        if choice == "varied":
            scheme[choice] = vary(rng, shared)
        if choice == "own":
            scheme[choice] = _scheme(rng, templates, scale)
        rows = scale.rows * between(rng, 3, _LARGE) if n == large else _rows(rng, scale.rows)
        drawn.append(tables.draw_table(rng, f"r{n + 1}", templates, rows, scheme[choice]))
    return tuple(drawn)


def _rows(rng: random.Random, most: int) -> int:
    if chance(rng, 8):
        return rng.randrange(3)
    return between(rng, most // 4, most)


def _scheme(rng: random.Random, templates: tuple[ColumnTemplate, ...], scale: Scale) -> Scheme:
    chosen = some(rng, [template for template in templates if template.name != "w1"], 2)
    return draw_scheme(rng, tuple(template.key for template in chosen), max(2, scale.partitions))
