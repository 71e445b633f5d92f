"""Catalog: what an arm itself says of its functions, operators and relations, as far as fitness depends on it."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import psycopg

_FUNCTIONS: Final = Path(__file__).with_name("functions.sql").read_text()
_OPERATORS: Final = "SELECT oid::int, oprcode::oid::int FROM pg_operator"


@dataclass(frozen=True, slots=True)
class Function:
    """A function or aggregate. `fit`: what it returns depends on arguments, data and settings alone."""

    oid: int
    name: str
    arguments: int
    kind: str  # pg_proc.prokind: f, a, w or p
    fit: bool
    returns: str  # a type as SQL has it


@dataclass(frozen=True)
class Catalog:
    """Functions by OID, and operators' functions by the operators' OIDs, of one database."""

    functions: Mapping[int, Function]
    operators: Mapping[int, int]

    @classmethod
    def of(cls, connection: psycopg.Connection[Any]) -> "Catalog":
        """Read it (some 10 ms). Raises psycopg.Error."""
        found = (Function(*row) for row in connection.execute(_FUNCTIONS))
        return cls({each.oid: each for each in found}, dict(connection.execute(_OPERATORS).fetchall()))

    def fit(self, oid: int) -> bool:
        """Tell whether the function may be called in what is compared; unknown ones may not."""
        return oid in self.functions and self.functions[oid].fit

    @cached_property
    def _by_name(self) -> Mapping[tuple[str, int], list[Function]]:
        found = defaultdict(list)
        for function in self.functions.values():
            found[function.name, function.arguments].append(function)
        return found

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of all functions."""
        return frozenset(name for name, _ in self._by_name)

    def unfit(self, name: str, arguments: int) -> list[Function]:
        """Return the functions that a call may mean, if none of them is fit; else nothing."""
        named = self._by_name.get((name, arguments), [])
        return [] if any(function.fit for function in named) else named
