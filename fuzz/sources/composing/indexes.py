"""Indexes of all kinds, by the operator classes that the arm has for the types of columns."""

import random
from typing import Any, Final

import psycopg

from fuzz.generators.choices import chance, pick
from fuzz.sources.composing.conditions import condition
from fuzz.sources.composing.scope import Relation, Scope
from fuzz.sources.legality.cost import is_quick

# Access methods by what they take by default: types, also under another name, and polymorphic ones by their kind.
_CLASSES: Final = """
    SELECT DISTINCT t.typname::text, a.amname::text FROM pg_opclass AS c JOIN pg_am AS a ON a.oid = c.opcmethod
    JOIN pg_type AS t ON t.oid = c.opcintype OR EXISTS (
        SELECT FROM pg_cast
        WHERE castsource = t.oid AND casttarget = c.opcintype AND castmethod = 'b' AND castcontext = 'i')
    WHERE c.opcdefault
    ORDER BY 1, 2
"""
_POLYMORPHIC: Final = {"a": "anyarray", "e": "anyenum", "r": "anyrange", "m": "anymultirange", "c": "record"}


class Indexes:
    """What indexes an arm can make."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        """Read operator classes. Raises psycopg.Error."""
        self._connection = connection
        self._methods: dict[str, list[str]] = {}
        for key, method in connection.execute(_CLASSES):
            self._methods.setdefault(key, []).append(method)

    def draw(self, rng: random.Random, scope: Scope, relation: Relation) -> str | None:
        """Return a CREATE INDEX on the relation; None where the column drawn cannot be indexed.

        A hash index gets as many buckets as the statistics have it, and those of a scene may be wrong on purpose.
        """
        column = pick(rng, relation.columns)
        type_ = scope.offer.types[column.type.parts[0]] if column.type.kind == "d" else column.type
        methods = self._methods.get(type_.key, []) + self._methods.get(_POLYMORPHIC.get(type_.kind, ""), [])
        method = pick(rng, methods) if methods else ""
        if not method or (method == "hash" and not is_quick(self._connection, f"TABLE {relation.name}")):
            return None
        over = scope.only(relation.columns)
        partial = f" WHERE {condition(rng, over.without_relations())}" if chance(rng, 15) else ""
        return f"CREATE INDEX ON {relation.name} USING {method} ({column.name}){partial}"
