"""Source `qpg`: query plan guidance, which mutates the scene when queries bring no new plan shapes.

Source: Ba and Rigger, "Testing Database Engines via Query Plan Guidance", ICSE 2023. Generators make the queries. The
reference plans each, and queries with a new plan shape are kept. After several queries without a new shape, a bandit
selects a mutation of the scene: an index, statistics, fewer rows. It prefers mutations that led to more new shapes, and
sometimes selects a random one.

The effect of mutations on rows depends on the rows alone, so it is equal on all arms.
"""

import random
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Final

import psycopg

from fuzz.errors import CaseError
from fuzz.generators.choices import between, chance, pick, pick_name, some
from fuzz.generators.generator import Scale, all_generators
from fuzz.sources.source import Source, UserInput
from oracles.explain.nodes import plan_shape
from oracles.model.case import Case, Kind, Step

_EXPLORED: Final = 30  # percentage of random selections
_NEWEST: Final = Fraction(1, 4)  # weight of the latest reward, relative to all earlier ones


class Bandit:
    """A multi-armed bandit: options by name, each with an average reward in which recent rewards weigh more."""

    def __init__(self, names: Iterable[str]) -> None:
        self._rewards = dict.fromkeys(names, Fraction(1))  # optimistic, so that each option is tried

    def pull(self, rng: random.Random) -> str:
        """Return the option to try next."""
        best = max(self._rewards.values())
        names = list(self._rewards) if chance(rng, _EXPLORED) else [n for n, r in self._rewards.items() if r == best]
        return pick(rng, names)

    def reward(self, name: str, amount: int) -> None:
        """Record the reward of an option."""
        self._rewards[name] += (amount - self._rewards[name]) * _NEWEST


_COLUMNS: Final = """
    SELECT quote_ident(c.relname), array_agg(quote_ident(a.attname) ORDER BY a.attnum)
    FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
    WHERE c.relnamespace = 'duel'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
      AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
    GROUP BY c.relname ORDER BY c.relname COLLATE "C"
"""


@dataclass(frozen=True, slots=True)
class SceneTable:
    """A table of the scene. Its names are quoted where necessary."""

    name: str
    columns: tuple[str, ...]


def tables_of(connection: psycopg.Connection[Any]) -> tuple[SceneTable, ...]:
    """Return the tables in a case's schema. Raises psycopg.Error."""
    return tuple(SceneTable(name, tuple(columns)) for name, columns in connection.execute(_COLUMNS).fetchall())


def _index(rng: random.Random, table: SceneTable) -> str:
    columns = ", ".join(some(rng, table.columns, between(rng, 1, 2)))
    return f"CREATE INDEX ON {table.name} ({columns})"


def _partial_index(rng: random.Random, table: SceneTable) -> str:
    column, other = pick(rng, table.columns), pick(rng, table.columns)
    return f"CREATE INDEX ON {table.name} ({column}) WHERE {other} IS NOT NULL"


def _statistics(rng: random.Random, table: SceneTable) -> str:
    columns = some(rng, table.columns, between(rng, 2, 3))
    return f"CREATE STATISTICS ON {', '.join(columns)} FROM {table.name}" if len(columns) > 1 else _analyze(rng, table)


def _analyze(_rng: random.Random, table: SceneTable) -> str:
    return f"ANALYZE {table.name}"


def _vacuum(_rng: random.Random, table: SceneTable) -> str:
    return f"VACUUM (ANALYZE) {table.name}"


def _fewer(rng: random.Random, table: SceneTable) -> str:
    kept = pick(rng, (2, 5, 50))
    return f"DELETE FROM {table.name} AS t WHERE hashtextextended(t::text, 0) % {kept} <> 0"


def _more(_rng: random.Random, table: SceneTable) -> str:
    columns = ", ".join(table.columns)
    return f"INSERT INTO {table.name} ({columns}) SELECT {columns} FROM {table.name}"


def _common_value(rng: random.Random, table: SceneTable) -> str:
    """Return an UPDATE that makes one value, or NULL, the most common one."""
    column = pick(rng, table.columns)
    value = "NULL" if chance(rng, 30) else f"(SELECT max({column}) FROM {table.name})"
    return f"UPDATE {table.name} AS t SET {column} = {value} WHERE hashtextextended(t::text, 1) % 4 <> 0"


def _filled(rng: random.Random, table: SceneTable) -> str:
    return f"ALTER TABLE {table.name} ALTER {pick(rng, table.columns)} SET NOT NULL"


MUTATIONS: Final[Mapping[str, Callable[[random.Random, SceneTable], str]]] = {
    "index": _index,
    "partial index": _partial_index,
    "analyze": _analyze,
    "vacuum": _vacuum,
    "fewer rows": _fewer,
    "more rows": _more,
    "equal values": _common_value,
    "statistics": _statistics,
    "not null": _filled,
}


_SMALLER: Final = 3  # divisor of the scale's rows: each query runs often, so more queries are better than more rows
_DRAWN: Final = 3  # queries generated per query of a case
_BARREN_QUERIES: Final = 5  # queries in a row without a new shape, before a mutation
_MUTATED: Final = 12  # upper bound of mutations
_TRIES: Final = 5  # scenes to try until one has queries


class Qpg(Source):
    """Queries of generators whose plans have new shapes, over scenes that are mutated to get more of them."""

    name: ClassVar[str] = "qpg"
    cpu_seconds: ClassVar[float] = 3.1
    modes: ClassVar[tuple[str, ...]] = (
        "plain",
        "partitionwise",
        "parallel",
        "small_memory",
        "hash_spilling+features_forced",
        "extended",
        "prepared_generic",
        "cursor",
    )

    @classmethod
    def lacks(cls, given: UserInput) -> str:
        """Return "", because generators are always available."""
        return ""

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case. Raises CaseError, ServerError."""
        drawn = replace(scale, rows=scale.rows // _SMALLER, queries=scale.queries * _DRAWN)
        generators = all_generators()
        weights = {name: generator.query_weight for name, generator in generators.items()}
        for _ in range(_TRIES):
            case = generators[pick_name(rng, weights)].generate(rng, drawn)
            queries = [step for step in case.steps if step.kind is Kind.QUERY and not step.params]
            if not queries:
                continue
            with self.target.session(case.scene) as connection:
                steps = Guide(connection, rng).steps(queries, scale.queries)
            if steps:
                return Case(self.name, case.scene, steps)
        raise CaseError(f"no query of a generator could be planned, on {_TRIES} scenes")


@dataclass(slots=True)
class Guide:
    """The search for new plan shapes in one session."""

    connection: psycopg.Connection[Any]
    rng: random.Random
    shapes: set[str] = field(default_factory=set)

    def steps(self, queries: Sequence[Step], most: int) -> tuple[Step, ...]:
        """Return up to `most` queries with new plan shapes, and the mutations between them."""
        bandit, waiting = Bandit(MUTATIONS), deque(queries)
        found: list[Step] = []
        barren = mutated = gained = 0
        last = ""
        while len(found) < most and mutated <= _MUTATED:
            query = waiting.popleft()
            waiting.append(query)  # a mutation may change its plan
            if self._is_new(query.sql):
                found.append(query)
                barren, gained = 0, gained + 1
            else:
                barren += 1
            if barren >= min(_BARREN_QUERIES, len(waiting)):
                if last:
                    bandit.reward(last, gained)
                last = bandit.pull(self.rng)
                found += self._mutated(last)
                barren, gained, mutated = 0, 0, mutated + 1
        return tuple(found)

    def _is_new(self, sql: str) -> bool:
        """Return whether the query has a plan of a new shape."""
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
        """Mutate the scene, and return the step; return no step if the server refuses the mutation."""
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
