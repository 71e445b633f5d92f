"""Generator `few_rows`: many queries over tables of a few rows.

A query over ten rows needs a fraction of the time of one over hundreds. Most faults of logic, such as a wrong result
for NULL, need few rows, but the right query.
"""

import random
from dataclasses import replace
from typing import ClassVar

from fuzz.generators.choices import Stream, Weighted, another, begin, between
from fuzz.generators.generator import Generator, Scale
from fuzz.generators.sql import tables
from fuzz.generators.sql.columns import ColumnTemplate, column_templates
from fuzz.generators.sql.queries import query
from fuzz.generators.sql.tables import Table, steps_of
from oracles.model.case import Case

_TABLES = Weighted((20, 1), (45, 2), (35, 3))
_ROWS = Weighted((8, 0), (12, 1), (40, 5), (40, 10))  # upper bounds of the rows of a table
_DOMAINS = Weighted((30, 2), (40, 4), (30, 8))  # different values of a column, so that rows match
_RELATIONS = 3  # upper bound of the relations in a FROM list
_QUERIES = 2  # times those of other generators, because the time to create the tables does not depend on their rows


class FewRows(Generator):
    """Joins, groups, subqueries and set operations over one to three tables of at most ten rows and some edge rows."""

    name: ClassVar[str] = "few_rows"
    cpu_seconds: ClassVar[float] = 0.5
    modes: ClassVar[tuple[str, ...]] = (
        "plain",
        "indexes",
        "partitionwise",
        "hash_only",
        "merge_only+indexes",
        "loop_only+indexes",
        "extended",
        "prepared_generic",
        "prepared_custom",
    )

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case: a scene of one to three tables, then queries over them."""
        drawn = _tables(rng, scale)
        scene = tuple(step for table in drawn for step in steps_of(rng, table))
        sources = tuple(table.source for table in drawn)
        relations = min(_RELATIONS, scale.relations)
        begin(rng, Stream.ACTION)
        steps = [query(rng, sources, relations)]
        while another(rng, len(steps), _QUERIES * scale.queries, ending=200):
            steps.append(query(rng, sources, relations))
        return Case(self.name, scene, tuple(steps))


def _tables(rng: random.Random, scale: Scale) -> list[Table]:
    rows = [min(_ROWS.pick(rng), scale.rows) for _ in range(min(_TABLES.pick(rng), scale.relations))]
    templates = _templates(rng, max(rows))
    return [tables.draw_table(rng, f"r{n}", templates, between(rng, 0, most), None) for n, most in enumerate(rows, 1)]


def _templates(rng: random.Random, rows: int) -> tuple[ColumnTemplate, ...]:
    """Return column templates of small domains, without long text."""
    templates = (each for each in column_templates(rng, rows) if each.name != "w1")
    return tuple(each if each.serial else replace(each, domain=_DOMAINS.pick(rng)) for each in templates)
