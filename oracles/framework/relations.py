"""Claims: what must hold of a case on an arm by itself, as two ways of asking that have the same rows."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from oracles.model.case import Case, Kind
from oracles.model.mode import Mode, Protocol
from oracles.model.observation import CaseObservation, Outcome, Run
from oracles.model.oracle import Observations
from oracles.sql.case_views import hiding, used_by
from oracles.sql.distinguishable_values import is_tight, loose_types

# Looking up matches that no index or hash table finds may take long.
BRIEFLY: Final = Mode("briefly", (("statement_timeout", "1500ms"),))
# Where neither side is the case as it is, the rows of both are read to the end, whatever the case's own protocol does.
PLAINLY: Final = Mode("plainly", BRIEFLY.settings, Protocol.SIMPLE)
_NOTHING: Final = "SELECT"
_PARAMETER: Final = re.compile(r"\$\d+")
Made = TypeVar("Made")
_FLOATS: Final = frozenset({"700", "701"})  # type OIDs: a sum of them depends on the order of rows


@dataclass(frozen=True, slots=True)
class QueryVariant:
    """One side of a claim: queries by position, the modes that they run in besides the case's own, and settings.

    The latter hold for these queries alone, so that what is between them leaves the same behind.
    """

    queries: tuple[tuple[int, str], ...] = ()  # none: the case as it is
    modes: tuple[Mode, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def statements(self) -> tuple[tuple[int, str], ...]:
        """Return what runs at which position: with settings, several statements."""
        return tuple((step, self._set(sql)) for step, sql in self.queries) if self.settings else self.queries

    def _set(self, sql: str) -> str:
        before = "".join(f"SET {name} = '{value}';" for name, value in self.settings)
        return before + sql + "".join(f";RESET {name}" for name, _ in self.settings)


@dataclass(frozen=True, slots=True)
class MetamorphicRelation:
    """That rows of two ways are the same at these steps of an arm."""

    name: str
    steps: frozenset[int]
    left: QueryVariant
    right: QueryVariant
    between: tuple[QueryVariant, ...] = ()  # whose answers the right one was made of: what is wrong may be these

    @property
    def asked(self) -> tuple[QueryVariant, ...]:
        """Return all ways, in the order in which they are asked."""
        return (self.left, *self.between, self.right)


class Unanswered(Exception):  # no error
    """A claim rests on what has to be asked first."""

    def __init__(self, way: QueryVariant) -> None:
        super().__init__()
        self.way = way


@dataclass(frozen=True, slots=True)
class Played:
    """A case that was played on one arm: what claims are made of."""

    case: Case
    arm: str
    observations: Observations

    def queries(self) -> dict[int, str]:
        """Return the queries that succeed, by position, and read nothing that hides what it does."""
        hidden = hiding(self.case.all_steps)
        return {position: sql for position, sql in self._successful().items() if hidden.isdisjoint(used_by(sql))}

    def _successful(self) -> dict[int, str]:
        """Return the queries that succeed, by position: one that fails may end a transaction, so it stays."""
        steps = zip(self.case.all_steps, self.seen(QueryVariant()).steps, strict=True)
        return {
            position: step.sql
            for position, (step, seen) in enumerate(steps)
            if step.kind is Kind.QUERY and seen.outcome is Outcome.OK
        }

    def exact(self) -> dict[int, str]:
        """Return the queries that succeed, return no floating-point number, and none of several equal values."""
        steps, loose, queries = self.seen(QueryVariant()).steps, loose_types(self.case.all_steps), self.queries()
        shown = {position: {column.type for column in steps[position].columns} for position in queries}
        return {
            position: sql
            for position, sql in queries.items()
            if _FLOATS.isdisjoint(shown[position]) and is_tight(sql, shown[position], loose)
        }

    def tight(self, made: Mapping[int, Made], query: Callable[[Made], str]) -> dict[int, Made]:
        """Return what was made, by position, where its query, which counts rows or shows them as stored, is tight."""
        loose = loose_types(self.case.all_steps)
        return {position: each for position, each in made.items() if is_tight(query(each), (), loose)}

    def way(self, queries: Mapping[int, str], *modes: Mode) -> QueryVariant:
        """Return the way that runs these queries, and no other that could be left out."""
        empty = {position: _NOTHING for position in self._successful() if not self.case.all_steps[position].params}
        return QueryVariant(tuple(sorted((empty | dict(queries)).items())), modes or (BRIEFLY,))

    def claims(
        self,
        pairs: Mapping[int, tuple[str, str]],
        names: str | Mapping[int, str],
        settings: tuple[tuple[str, str], ...] = (),
    ) -> Iterator[MetamorphicRelation]:
        """Yield claims that the queries of each pair have the same rows, the second under settings of its own.

        All take the same two runs; there is one for each name that steps have.
        """
        asked = {step: pair for step, pair in pairs.items() if all(self._can_ask(step, sql) for sql in pair)}
        if settings:  # several statements take no parameters
            asked = {step: pair for step, pair in asked.items() if not self.case.all_steps[step].params}
        left, right = (self.way({step: pair[side] for step, pair in asked.items()}, PLAINLY) for side in (0, 1))
        named = {step: names if isinstance(names, str) else names[step] for step in asked}
        for name in sorted(set(named.values())):
            steps = frozenset(step for step in asked if named[step] == name)
            yield MetamorphicRelation(name, steps, left, replace(right, settings=settings))

    def claim_of(self, name: str, queries: Mapping[int, str], *modes: Mode) -> Iterator[MetamorphicRelation]:
        """Yield the claim that these have the same rows as the case's own, if there are any that can be asked."""
        asked = {step: sql for step, sql in queries.items() if self._can_ask(step, sql)}
        if asked:
            yield MetamorphicRelation(name, frozenset(asked), QueryVariant(), self.way(asked, *modes))

    def _can_ask(self, step: int, sql: str) -> bool:
        """Tell whether it uses all parameters that the step brings: the server cannot tell the types of others."""
        given = self.case.all_steps[step]
        return not given.params or set(_PARAMETER.findall(sql)) == set(_PARAMETER.findall(given.sql))

    def run(self, way: QueryVariant, repetition: int = 0) -> Run:
        """Return the run that plays the case this way."""
        return Run(self.arm, (*self.case.modes, *way.modes), instead=way.statements, repetition=repetition)

    def seen(self, way: QueryVariant, repetition: int = 0) -> CaseObservation:
        """Return what was observed of it. Claims made of what is not observed yet are asked for again."""
        run = self.run(way, repetition)
        if run not in self.observations:
            raise Unanswered(way)
        return self.observations[run]
