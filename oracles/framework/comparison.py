"""Comparison: where two observations of one case differ, and which steps could be compared.

No list of ignored differences exists; the choice of compared properties excludes legal ones. Rows are multisets unless
the step has a total order. A cursor that is closed early is compared by its number of rows only. Once the two sides may
hold different data, later statements are compared only if they cannot depend on it (dependence.py).

Aspects are ordered from coarse to fine, because coarse ones depend on less. Which rows an INSERT ... SELECT numbers may
depend on the plan; the number of rows that it stores does not.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from oracles.framework.dependence import DifferentData
from oracles.model.case import Case, Kind, Step
from oracles.model.mode import Mode, Protocol, protocol_of
from oracles.model.observation import UNKNOWN_TYPE, CaseObservation, Observation, Outcome
from oracles.model.oracle import CONNECTION_LOST
from oracles.model.sqlstate import DISK_FULL, QUERY_CANCELED, SYNTAX_ERROR
from oracles.sql.building import is_parsed


class Aspect(StrEnum):
    """Compared properties: of a step, of a table or sequence after the case (STORED), or of the case's end."""

    OUTCOME = "outcome"
    COLUMNS = "columns"
    ROW_COUNT = "row count"
    ROWS = "rows"
    TAGS = "command tags"
    MESSAGES = "messages"  # severity and SQLSTATE
    TEXTS = "message texts"
    FIELDS = "message fields"  # objects and positions
    PROTOCOL = "protocol messages"  # formats of COPY, notifications, reported settings
    TRANSACTION = "transaction status"
    STORED_COUNT = "number of rows stored"
    STORED = "contents stored"
    CLOSING = "errors at the end"  # SQLSTATEs of CaseObservation.closing


class Reading(StrEnum):
    """Ways to compare the rows of a step."""

    SEQUENCE = "sequence"
    MULTISET = "multiset"
    COUNT = "count"


@dataclass(frozen=True, slots=True)
class Location:
    """The place of a difference: a step, or (step None) the table or sequence `reported`, or the case's end ("")."""

    step: int | None
    aspect: Aspect
    reported: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences between two observations, in order, and the extent of the comparison."""

    places: tuple[Location, ...]
    compared: frozenset[int]
    digested: bool = False  # tables and sequences were compared, too
    closed: bool = False  # errors at the end were compared, too
    obstacle: str = ""  # reason why some steps could not be compared
    # the first of these steps at which the sides differ, or else the first; None: after the last step
    obstacle_at: int | None = None

    def differs_at(self, place: Location) -> bool | None:
        """Return whether these observations differ at a place; None if it was not compared."""
        hidden_by = COARSER.get(place.aspect, ())
        for found in self.places:
            same_thing = (found.step, found.reported) == (place.step, place.reported)
            if same_thing and (found.aspect in (place.aspect, Aspect.OUTCOME) or found.aspect in hidden_by):
                return True
        return False if self._covers(place) else None

    def _covers(self, place: Location) -> bool:
        if place.step is not None:
            return place.step in self.compared
        return self.closed if place.aspect is Aspect.CLOSING else self.digested


# Coarser aspects of an aspect. A difference in one of them implies one in the finer aspect, which is not reported.
COARSER: Final[Mapping[Aspect, tuple[Aspect, ...]]] = {
    Aspect.ROWS: (Aspect.ROW_COUNT,),
    Aspect.TEXTS: (Aspect.MESSAGES,),
    Aspect.FIELDS: (Aspect.MESSAGES, Aspect.TEXTS),
    Aspect.STORED: (Aspect.STORED_COUNT,),
}

_COMPARED_ALWAYS: Final[Mapping[Aspect, Callable[[Observation], object]]] = {
    Aspect.COLUMNS: lambda seen: (seen.earlier_columns, seen.columns),
    Aspect.ROW_COUNT: lambda seen: len(seen.rows),
    Aspect.TAGS: lambda seen: seen.tags,
    Aspect.MESSAGES: lambda seen: Counter((message.severity, message.sqlstate) for message in seen.messages),
    Aspect.TEXTS: lambda seen: Counter((each.severity, each.sqlstate, each.text) for each in seen.messages),
    Aspect.FIELDS: lambda seen: Counter(seen.messages),
    Aspect.PROTOCOL: lambda seen: Counter(seen.protocol),
    Aspect.TRANSACTION: lambda seen: seen.transaction,
}
# SQLSTATEs of errors that depend on the server's load: deadlocks, resources, lock timeouts, interventions.
OF_LOAD: Final = ("40", "53", "55P03", "57")
_STATELESS: Final = frozenset({Aspect.MESSAGES, Aspect.TEXTS, Aspect.FIELDS})
_READS: Final = frozenset({Kind.QUERY, Kind.COPY_OUT})
_BINARY_COPY_HEADER: Final = re.compile(rb"PGCOPY\n\xff\r\n\0.{8}", re.DOTALL)
_ROWS_AND_HASH: Final = re.compile(r"(\d+) (?!unused$)\S+")


def reading(step: Step, modes: Sequence[Mode]) -> Reading:
    """Return how to compare the rows of a step under these modes.

    A command that cannot be parsed may keep any rows of several, for example by LIMIT.
    """
    if step.ordered:
        return Reading.SEQUENCE
    cut_short = protocol_of(modes) is Protocol.CLOSED_EARLY or any(mode.changes_results for mode in modes)
    if step.kind is Kind.QUERY:
        return Reading.COUNT if cut_short else Reading.MULTISET
    return Reading.MULTISET if is_parsed(step.sql) else Reading.COUNT


def row_multiset(rows: Sequence[bytes]) -> Counter[bytes]:
    """Return the number of occurrences of each row.

    The header of a binary COPY is counted separately, because the server sends it along with the first row.
    """
    counted = Counter(rows)
    if rows and (header := _BINARY_COPY_HEADER.match(rows[0])):
        counted.subtract([rows[0]])
        counted.update([header[0], rows[0][header.end() :]])
    return +counted


def stored_count(digest: str) -> str | None:
    """Return the row count in a table's digest; None for the digest of a sequence."""
    found = _ROWS_AND_HASH.fullmatch(digest)
    return found[1] if found else None


def compare(case: Case, modes: Sequence[Mode], left: CaseObservation, right: CaseObservation) -> Comparison:
    """Compare two observations of the case. `modes` are the case's own, which determine how rows are compared."""
    places: list[Location] = []
    compared: set[int] = set()
    obstacle = ""
    obstacle_at: int | None = None
    # whether both sides of the obstacle end alike; a later obstacle whose sides differ replaces it
    alike = False
    different = DifferentData(case.all_steps)
    for position, step in enumerate(case.all_steps):
        ours, theirs = left.steps[position], right.steps[position]
        reason = _obstacle(ours, theirs) or _lacking(step, ours, theirs)
        depends = bool(different.names) and different.reach(step)
        if reason or depends:
            if reason and (obstacle_at is None or (alike and not _end_alike(ours, theirs))):
                obstacle, obstacle_at, alike = reason, position, _end_alike(ours, theirs)
            may_diverge = depends or not state_still_equal(step, ours, theirs)
        else:
            compared.add(position)
            differing = tuple(_differing(step, modes, ours, theirs))
            places += [Location(position, aspect) for aspect in differing]
            may_diverge = _may_diverge(step, differing, ours, theirs)
        if may_diverge and not different.add(step, ours, theirs):
            return Comparison(tuple(places), frozenset(compared), obstacle=obstacle, obstacle_at=obstacle_at)
    if different.names:
        return Comparison(tuple(places), frozenset(compared), obstacle=obstacle, obstacle_at=obstacle_at)
    if left.residue is None or right.residue is None:  # lost after the last step: there are no digests
        return Comparison(
            tuple(places),
            frozenset(compared),
            obstacle=obstacle or CONNECTION_LOST,
            obstacle_at=obstacle_at,
        )
    digested = left.digested and right.digested
    if digested:
        places += _stored_places(dict(left.digests), dict(right.digests))
    cut = _cut_at_end(left, right)
    if not cut and _closing_errors(left) != _closing_errors(right):
        places.append(Location(None, Aspect.CLOSING))
    obstacle = obstacle or cut or ("" if digested else "tables cannot be read")
    return Comparison(
        tuple(places),
        frozenset(compared),
        digested=digested,
        closed=not cut,
        obstacle=obstacle,
        obstacle_at=obstacle_at,
    )


def _closing_errors(seen: CaseObservation) -> Counter[str]:
    """Return the SQLSTATEs of errors at the end. Texts are not compared, because they may have OIDs."""
    return Counter(message.sqlstate for message in seen.closing)


def _cut_at_end(left: CaseObservation, right: CaseObservation) -> str:
    """Return the reason why the errors at the end cannot be compared, or ""."""
    errors = _closing_errors(left) | _closing_errors(right)
    if QUERY_CANCELED in errors:
        return "timeout"
    return "out of resources" if any(sqlstate.startswith(OF_LOAD) for sqlstate in errors) else ""


def _obstacle(ours: Observation, theirs: Observation) -> str:
    outcomes = {ours.outcome, theirs.outcome}
    if outcomes & {Outcome.LOST, Outcome.SKIPPED}:
        return CONNECTION_LOST
    if DISK_FULL in (ours.sqlstate, theirs.sqlstate):
        return "disk full"
    if Outcome.TOO_LARGE in outcomes:
        return "the result is too large"
    return "timeout" if Outcome.TIMEOUT in outcomes else ""


def _end_alike(ours: Observation, theirs: Observation) -> bool:
    return (ours.outcome, ours.sqlstate) == (theirs.outcome, theirs.sqlstate)


def _lacking(step: Step, ours: Observation, theirs: Observation) -> str:
    """Return the reason why the reference cannot execute a step that the other side may execute, or "".

    Both pglast and the reference refuse the syntax, so it may be new in a patch. If the other side alone refuses a
    statement, that is a difference.
    """
    refused = ours.sqlstate == SYNTAX_ERROR and theirs.sqlstate != SYNTAX_ERROR
    return "syntax that the reference lacks" if refused and not is_parsed(step.sql) else ""


def state_still_equal(step: Step, ours: Observation, theirs: Observation) -> bool:
    """Return whether the data are still equal after a step that one side did not complete.

    They are if the step only reads and both transactions have the same status. Any other cancelled command may have
    consumed sequence values, even if it timed out on both sides.
    """
    return step.kind in _READS and bool(ours.transaction) and ours.transaction == theirs.transaction


def first_cut(case: Case, ours: CaseObservation, theirs: CaseObservation, outcome: Outcome) -> tuple[int | None, int]:
    """Return the first step that ended on our side, and on theirs with this outcome; None if there is none.

    The second value is the number of steps until then that ended on both sides. The search stops where the data may
    differ.
    """
    ended = 0
    for position, (step, one, other) in enumerate(zip(case.all_steps, ours.steps, theirs.steps, strict=True)):
        if one.has_ended and other.outcome is outcome:
            return position, ended
        if one.has_ended and other.has_ended:
            ended += 1
        elif not state_still_equal(step, one, other):
            break
    return None, ended


def _may_diverge(step: Step, differing: Sequence[Aspect], ours: Observation, theirs: Observation) -> bool:
    if Aspect.OUTCOME in differing or Aspect.TRANSACTION in differing:
        return not state_still_equal(step, ours, theirs)
    return step.kind not in _READS and not _STATELESS.issuperset(differing)


def _differing(step: Step, modes: Sequence[Mode], ours: Observation, theirs: Observation) -> Iterator[Aspect]:
    if ours == theirs:
        return
    if not _end_alike(ours, theirs):
        yield Aspect.OUTCOME
        return
    found = [aspect for aspect, value in _COMPARED_ALWAYS.items() if value(ours) != value(theirs)]
    if Aspect.COLUMNS in found and _same_known_columns(ours, theirs):
        found.remove(Aspect.COLUMNS)
    if Aspect.ROW_COUNT not in found and not _same_rows(reading(step, modes), ours.rows, theirs.rows):
        found.append(Aspect.ROWS)
    for aspect in Aspect:
        if aspect in found and not any(coarse in found for coarse in COARSER.get(aspect, ())):
            yield aspect


def _same_known_columns(ours: Observation, theirs: Observation) -> bool:
    """Return whether columns differ only in names of user-defined types that one side does not know."""
    both = [
        [column for columns in (*seen.earlier_columns, seen.columns) for column in columns] for seen in (ours, theirs)
    ]
    if not any(column.type == UNKNOWN_TYPE for columns in both for column in columns):
        return False
    own, other = (
        [column if column.type.isdigit() else replace(column, type=UNKNOWN_TYPE) for column in columns]
        for columns in both
    )
    return own == other and list(map(len, ours.earlier_columns)) == list(map(len, theirs.earlier_columns))


def _same_rows(how: Reading, ours: Sequence[bytes], theirs: Sequence[bytes]) -> bool:
    if ours == theirs or how is Reading.COUNT:
        return True
    return how is Reading.MULTISET and row_multiset(ours) == row_multiset(theirs)


def _stored_places(left: Mapping[str, str], right: Mapping[str, str]) -> Iterator[Location]:
    for name in sorted(left.keys() | right.keys()):
        ours, theirs = left.get(name, ""), right.get(name, "")
        if ours != theirs:
            counts_differ = stored_count(ours) != stored_count(theirs)
            yield Location(None, Aspect.STORED_COUNT if counts_differ else Aspect.STORED, name)
