"""Metamorphic relations: two variants of a case's queries that must return equal rows on one arm."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from oracles.model.case import Case, Kind, Step
from oracles.model.mode import Mode, Protocol, protocol_of
from oracles.model.observation import CaseObservation, Observation, Outcome, Run
from oracles.model.oracle import Observations
from oracles.sql.building import is_parsed
from oracles.sql.case_views import opaque_names, used_names
from oracles.sql.determinism import is_read_only
from oracles.sql.distinguishable_values import inexact_types, inexact_views, is_exact
from oracles.sql.exact_expressions import exact_columns
from oracles.sql.infallible import impossible_error

# Search for matches without an index or hash table may take long.
SHORT_TIMEOUT: Final = Mode("short timeout", (("statement_timeout", "1500ms"),))
# For relations between two replaced queries: the simple protocol reads all rows of both, also if the case's does not.
SIMPLE_PROTOCOL: Final = Mode("simple protocol", SHORT_TIMEOUT.settings, Protocol.SIMPLE)
_NOTHING: Final = "SELECT"
T = TypeVar("T")
_FLOATS: Final = frozenset({"700", "701"})  # type OIDs of float4 and float8, whose sums depend on the order of rows


@dataclass(frozen=True, slots=True)
class QueryVariant:
    """One side of a relation: replacement queries by position, modes besides the case's own, and settings.

    The settings apply to the replaced queries only, so that other statements leave the same data.
    """

    queries: tuple[tuple[int, str], ...] = ()  # empty: the case unchanged
    modes: tuple[Mode, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def statements(self) -> tuple[tuple[int, str], ...]:
        """Return the replacement statements by position; with settings, each is SET, query and RESET."""
        return tuple((step, self._set(sql)) for step, sql in self.queries) if self.settings else self.queries

    @property
    def needs(self) -> tuple[str, ...]:
        """Return the settings that SET accepts only if the server has them: any name without a dot."""
        return tuple(name for name, _ in self.settings if "." not in name)

    def _set(self, sql: str) -> str:
        before = "".join(f"SET {name} = '{value}';" for name, value in self.settings)
        return before + sql + "".join(f";RESET {name}" for name, _ in self.settings)


@dataclass(frozen=True, slots=True)
class MetamorphicRelation:
    """A relation: at these steps of an arm, both variants return equal rows."""

    name: str
    steps: frozenset[int]
    left: QueryVariant
    right: QueryVariant
    # variants that supplied results for the right one, so the fault may be in these
    between: tuple[QueryVariant, ...] = ()

    @property
    def variants(self) -> tuple[QueryVariant, ...]:
        """Return all variants in order of execution."""
        return (self.left, *self.between, self.right)

    @property
    def is_helper(self) -> bool:
        """Return whether this is no comparison: it has one variant, and only errors of its queries are judged."""
        return self.left == self.right


class MissingRun(Exception):  # a signal, no error
    """Signal that a relation depends on a variant that was not executed yet."""

    def __init__(self, variant: QueryVariant) -> None:
        super().__init__()
        self.variant = variant


@dataclass(frozen=True, slots=True)
class ArmRuns:
    """The runs of a case on one arm, from which relations are built."""

    case: Case
    arm: str
    observations: Observations
    used: dict[Run, CaseObservation] = field(default_factory=dict, compare=False)  # those that `observation` returned

    def queries(self) -> dict[int, str]:
        """Return the queries by position that should succeed, without those that use views or functions of the case.

        Views of known behaviour may be used. The text of a query can be parsed, and so can those of all statements with
        effects before it: any other one may have made a view or a type of unknown behaviour.
        """
        opaque, end = opaque_names(self.case.all_steps), self._first_unknown_effect()
        return {
            position: sql
            for position, sql in self._successful().items()
            if position < end and is_parsed(sql) and opaque.isdisjoint(used_names(sql))
        }

    def _first_unknown_effect(self) -> int:
        """Return the position of the first statement that succeeded, may change something, and cannot be parsed.

        It is the number of steps if there is none.
        """
        seen = zip(self.case.all_steps, self.observation(QueryVariant()).steps, strict=True)
        unknown = (
            position
            for position, (step, each) in enumerate(seen)
            if step.kind is not Kind.QUERY and each.outcome is Outcome.OK and not is_parsed(step.sql)
        )
        return next(unknown, len(self.case.all_steps))

    def _successful(self) -> dict[int, str]:
        """Return the queries by position that succeeded, or failed in parts that cannot fail.

        Any other failing one stays in the case, as does one that ends a transaction.
        """
        steps = zip(self.case.all_steps, self.observation(QueryVariant()).steps, strict=True)
        return {
            position: step.sql
            for position, (step, seen) in enumerate(steps)
            if step.kind is Kind.QUERY and (seen.outcome is Outcome.OK or self._should_succeed(step, seen))
        }

    def _should_succeed(self, step: Step, seen: Observation) -> bool:
        """Return whether a failing query is known to be legal: it has columns, so it passed parse analysis.

        Parameters are converted later, and may be illegal.
        """
        legal = seen.transaction == "I" and bool(seen.columns) and not step.params
        return legal and impossible_error(self.case.all_steps, step.sql, seen) is not None

    def exact_queries(self) -> dict[int, str]:
        """Return the successful queries by position whose rows are determined byte by byte.

        These return no floating-point numbers, and none of several equal but distinguishable values, such as 1.0 and
        1.00.
        """
        queries, is_determined = self.queries(), self.determination()
        shown = self.shown_types(queries)
        return {
            position: sql
            for position, sql in queries.items()
            if _FLOATS.isdisjoint(shown[position]) and is_determined(sql, shown[position])
        }

    def determination(self) -> Callable[[str, Iterable[str]], bool]:
        """Return a function of a query and the types that it shows.

        It returns whether the result does not depend on the choice among equal but distinguishable values of the case.
        """
        steps = self.case.all_steps
        inexact = inexact_types(steps)
        columns = exact_columns(steps, inexact)
        views = inexact_views(steps, inexact, columns)
        return lambda sql, shown: views.isdisjoint(used_names(sql)) and is_exact(sql, shown, inexact, columns)

    def shown_types(self, positions: Iterable[int]) -> dict[int, tuple[str, ...]]:
        """Return the types of the columns that the case's own queries return, as in `ResultColumn.type`."""
        steps = self.observation(QueryVariant()).steps
        return {position: tuple(column.type for column in steps[position].columns) for position in positions}

    def with_exact_results(self, items: Mapping[int, T], query: Callable[[T], str]) -> dict[int, T]:
        """Return the entries of `items` whose query result does not depend on the choice among distinguishable values.

        The query counts rows or returns rows as stored.
        """
        is_determined = self.determination()
        return {position: each for position, each in items.items() if is_determined(query(each), ())}

    def variant(self, queries: Mapping[int, str], *modes: Mode) -> QueryVariant:
        """Return the variant with these queries. Others are empty, unless they fail or may change data."""
        empty = dict.fromkeys((at for at, sql in self.queries().items() if is_read_only(sql)), _NOTHING)
        return QueryVariant(tuple(sorted((empty | dict(queries)).items())), modes or (SHORT_TIMEOUT,))

    def relations(
        self,
        pairs: Mapping[int, tuple[str, str]],
        names: str | Mapping[int, str],
        settings: tuple[tuple[str, str], ...] = (),
    ) -> Iterator[MetamorphicRelation]:
        """Yield relations between the two queries of each pair; the second one runs under `settings`.

        All of them share two runs. There is one relation for each name of a step.
        """
        usable = {
            step: pair
            for step, pair in pairs.items()
            # with settings a step is several statements, which cannot have parameters
            if all(self._can_bind(step, sql, parameters=not settings) for sql in pair)
        }
        left, right = (
            self.variant({step: pair[side] for step, pair in usable.items()}, SIMPLE_PROTOCOL) for side in (0, 1)
        )
        named = {step: names if isinstance(names, str) else names[step] for step in usable}
        for name in sorted(set(named.values())):
            steps = frozenset(step for step in usable if named[step] == name)
            yield MetamorphicRelation(name, steps, left, replace(right, settings=settings))

    def failed(self, name: str, variant: QueryVariant, steps: Iterable[int]) -> Iterator[MetamorphicRelation]:
        """Yield a helper's relation if its queries fail at some of these steps, so that no relation follows from it."""
        seen = self.observation(variant).steps
        if failing := frozenset(step for step in steps if seen[step].outcome is not Outcome.OK):
            yield MetamorphicRelation(name, failing, variant, variant)

    def relation_to_case(self, name: str, queries: Mapping[int, str], *modes: Mode) -> Iterator[MetamorphicRelation]:
        """Yield the relation between these queries and the case's own, if any can be executed.

        Both sides read all rows. So if the protocol of the case cuts them, its own queries are executed anew.
        """
        usable = {step: sql for step, sql in queries.items() if self._can_bind(step, sql)}
        if not usable:
            return
        own = QueryVariant()
        all_rows: tuple[Mode, ...] = ()
        if protocol_of(self.case.modes) is Protocol.CLOSED_EARLY:
            all_rows = (SIMPLE_PROTOCOL,)
            own = self.variant({step: self.case.all_steps[step].sql for step in usable}, *all_rows)
        yield MetamorphicRelation(name, frozenset(usable), own, self.variant(usable, *modes, *all_rows))

    def _can_bind(self, step: int, sql: str, *, parameters: bool = True) -> bool:
        """Return whether a query uses no parameters of its step, or, if it may have them, all of them.

        With fewer places where they are used, the server could infer other types.
        """
        given = self.case.all_steps[step]
        used = given.used_parameters(sql)
        return not used or (parameters and used == given.used_parameters(given.sql))

    def run(self, variant: QueryVariant, repetition: int = 0) -> Run:
        """Return the run of a variant."""
        modes = (*self.case.modes, *variant.modes)
        return Run(self.arm, modes, instead=variant.statements, needs=variant.needs, repetition=repetition)

    def observation(self, variant: QueryVariant, repetition: int = 0) -> CaseObservation:
        """Return the observation of a variant.

        Raises MissingRun if it was not executed yet. Its run is then requested, and the relations are built again.
        """
        run = self.run(variant, repetition)
        if run not in self.observations:
            raise MissingRun(variant)
        self.used[run] = self.observations[run]
        return self.used[run]
