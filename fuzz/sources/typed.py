"""Typed statements: composed, by type, of all the functions, operators, casts and aggregates that the arm offers.

Over the scenes of our generators, and over one of its own with every family of types. What a statement does is
determined by the data, by construction. The arm that others are held against plays the steps one after another: most of
those that it refuses, or that would take long there, are left out.
"""

import random
from typing import Any, ClassVar, Final

import psycopg

from fuzz.errors import CaseError
from fuzz.generators.choices import Weighted, chance, pick
from fuzz.generators.generator import Scale, small_scene
from fuzz.sources.composing.changes import change
from fuzz.sources.composing.indexes import Indexes
from fuzz.sources.composing.offer import offer_of
from fuzz.sources.composing.queries import query
from fuzz.sources.composing.scene import scene
from fuzz.sources.composing.scope import Scope
from fuzz.sources.composing.tables import Table, read_tables
from fuzz.sources.legality.cost import is_quick
from fuzz.sources.source import Source
from fuzz.sources.target import Given
from oracles.case import Case, Kind, Step

_TRIES: Final = 5  # scenes until one has tables
_DRAWN: Final = 4  # statements drawn for each that a case has
_LARGEST: Final = 12_000  # characters
_MOST_ROWS: Final = 2_000
_REFUSED: Final = 3  # percent of those that fail stay
_STEPS: Final = Weighted((80, "query"), (15, "change"), (5, "index"))


class Typed(Source):
    """Statements that are typed by the arm's own catalogs."""

    name: ClassVar[str] = "typed"

    @classmethod
    def lacks(cls, given: Given) -> str:
        """Return nothing: an arm has catalogs."""
        return ""

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case. Raises CaseError, ServerError."""
        for _ in range(_TRIES):
            steps = self._scene(rng, scale)
            with self.target.played(steps) as connection:
                made = self._steps(rng, connection, scale.queries)
            if made:
                return Case(self.name, steps, made)
        raise CaseError(f"nothing could be composed, on {_TRIES} scenes")

    def _scene(self, rng: random.Random, scale: Scale) -> tuple[Step, ...]:
        offer = offer_of(self.target)
        if chance(rng, 60):
            return scene(rng, offer, max(8, scale.rows // 5))
        return small_scene(rng, scale)

    def _steps(self, rng: random.Random, connection: psycopg.Connection[Any], count: int) -> tuple[Step, ...]:
        offer = offer_of(self.target).in_scene(connection)
        relations, tables = read_tables(connection, offer.types)
        if not relations:
            return ()
        indexes = Indexes(connection)
        steps: list[Step] = []
        for _ in range(count * _DRAWN):
            scope = Scope(offer, relations, collation=pick(rng, ('"default"', *offer.collations)))
            step = _drawn(rng, scope, tables, indexes)
            if (done := _rehearsed(connection, step)) or (done is False and chance(rng, _REFUSED)):
                steps.append(step)
            if len(steps) == count:
                break
        return tuple(steps)


def _drawn(rng: random.Random, scope: Scope, tables: tuple[Table, ...], indexes: Indexes) -> Step:
    kind = _STEPS.pick(rng)
    if kind == "change" and tables:
        sql, tag = change(rng, scope, pick(rng, tables))
        return Step(sql, may_fail=True, tags=(tag,))
    if kind == "index" and (made := indexes.draw(rng, scope, pick(rng, scope.relations))):
        return Step(made, may_fail=True, tags=("index",))
    sql, ordered, tags = query(rng, scope)
    return Step(sql, Kind.QUERY, ordered=ordered, may_fail=True, tags=tags)


def _rehearsed(connection: psycopg.Connection[Any], step: Step) -> bool | None:
    """Tell whether a step succeeds, which it does for good; None if it is too large. Raises psycopg.Error."""
    if len(step.sql) > _LARGEST or not is_quick(connection, step.sql):
        return None
    try:
        done = connection.execute(step.sql.encode())
    except psycopg.Error:
        if connection.broken:
            raise
        return False
    return True if done.rowcount <= _MOST_ROWS or step.kind is not Kind.QUERY else None
