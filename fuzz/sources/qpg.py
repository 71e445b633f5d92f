"""QPG, query plan guidance: the scene is mutated where queries bring no new shape of plan any more.

Ba and Rigger, "Testing Database Engines via Query Plan Guidance", ICSE 2023. Queries are those of our generators. The
arm that others are held against plans each; those whose plan has a new shape are kept. Where several in a row have
none, a mutation (an index, statistics, fewer rows) is drawn by how many shapes followed on those before.
"""

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

import psycopg

from fuzz.errors import CaseError
from fuzz.generators.choices import Weighted, pick
from fuzz.generators.generator import Scale, all_generators
from fuzz.sources.guiding.bandit import Bandit
from fuzz.sources.guiding.mutations import MUTATIONS, tables_of
from fuzz.sources.source import Source
from fuzz.sources.target import Given
from oracles.case import Case, Kind, Step
from oracles.plan_shape import plan_shape

# Whose scenes are made quickly; most of the time for the one whose queries have the most shapes.
_GENERATORS: Final = Weighted((50, "partitioned_joins"), (20, "outer_joins"), (15, "hash_growth"), (15, "copy_batches"))
_SMALLER: Final = 3  # a query runs often, so that time is better spent on more of them
_DRAWN: Final = 3  # queries drawn for each that a case has
_PATIENCE: Final = 5  # queries in a row without a new shape, until the scene is mutated
_MUTATED: Final = 12  # times at most
_TRIES: Final = 5  # scenes until one has queries


class Qpg(Source):
    """Queries of our generators whose plans have new shapes, over scenes that are mutated for more of them."""

    name: ClassVar[str] = "qpg"
    modes: ClassVar[tuple[str, ...]] = (
        "plain",
        "partitionwise",
        "parallel",
        "small_memory",
        "hash_spilling+filter_forced",
        "extended",
        "prepared_generic",
        "cursor",
    )

    @classmethod
    def lacks(cls, given: Given) -> str:
        """Return nothing: generators are there."""
        return ""

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case. Raises CaseError, ServerError."""
        drawn = replace(scale, rows=scale.rows // _SMALLER, queries=scale.queries * _DRAWN)
        for _ in range(_TRIES):
            case = all_generators()[_GENERATORS.pick(rng)].generate(rng, drawn)
            queries = [step for step in case.steps if step.kind is Kind.QUERY and not step.params]
            if not queries:
                continue
            with self.target.played(case.scene) as connection:
                steps = Guide(connection, rng).steps(queries, scale.queries)
            if steps:
                return Case(self.name, case.scene, steps)
        raise CaseError(f"no query of {', '.join(_GENERATORS.options)} could be planned, on {_TRIES} scenes")


@dataclass(slots=True)
class Guide:
    """The search for new shapes in one session."""

    connection: psycopg.Connection[Any]
    rng: random.Random
    shapes: set[str] = field(default_factory=set)

    def steps(self, queries: Sequence[Step], most: int) -> tuple[Step, ...]:
        """Return queries with a plan of a new shape, and what was done to the scene between them."""
        bandit, waiting = Bandit(MUTATIONS), deque(queries)
        found: list[Step] = []
        barren = mutated = gained = 0
        last = ""
        while len(found) < most and mutated <= _MUTATED:
            query = waiting.popleft()
            waiting.append(query)  # its plan may become another one
            if self._is_new(query.sql):
                found.append(query)
                barren, gained = 0, gained + 1
            else:
                barren += 1
            if barren >= min(_PATIENCE, len(waiting)):
                if last:
                    bandit.reward(last, gained)
                last = bandit.pull(self.rng)
                found += self._mutated(last)
                barren, gained, mutated = 0, 0, mutated + 1
        return tuple(found)

    def _is_new(self, sql: str) -> bool:
        """Tell whether a query has a plan, and of a shape that none had before."""
        try:
            row = self.connection.execute(f"EXPLAIN (FORMAT JSON) {sql}".encode()).fetchone()
        except psycopg.Error:
            if self.connection.broken:
                raise
            return False
        shape = plan_shape(row[0][0]) if row else ""
        known = shape in self.shapes
        self.shapes.add(shape)
        return not known

    def _mutated(self, name: str) -> list[Step]:
        """Change the scene; what the server refuses is no step."""
        tables = tables_of(self.connection)
        if not tables:
            return []
        sql = MUTATIONS[name](self.rng, pick(self.rng, tables))
        try:
            self.connection.execute(sql.encode())
        except psycopg.Error:
            if self.connection.broken:
                raise
            return []
        return [Step(sql, may_fail=True, tags=(name,))]
