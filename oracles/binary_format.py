"""Binary format: rows in binary format are the rows in text format, and the same bytes on each arm.

Drivers read results in binary format, which the send functions of types write. An arm executes the case twice, and
returns rows in text and in binary format. After each query, the session sends its rows back as parameters, which the
receive functions read, and returns them in text format. Rows read back from binary format must be the rows in text.

Rows that the server does not even read back from their own text are not judged, such as anonymous records. Nor are
types without a send or receive function.

Between arms the bytes are compared, because an arm may agree with itself on another format.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from oracles.framework.canaries import canary_case, query
from oracles.framework.comparison import row_multiset, state_still_equal
from oracles.framework.difference_text import ended, message_text, row_values, rows_text
from oracles.framework.metamorphic import verdicts_of_arms
from oracles.framework.pairwise import REPETITIONS
from oracles.framework.verdicts import lost_session
from oracles.model.case import Case, Kind
from oracles.model.finding import Evidence, Finding
from oracles.model.mode import BINARY, TEXT
from oracles.model.observation import CaseObservation, Observation, Outcome, ResultColumn, Run
from oracles.model.oracle import (
    Agree,
    Canary,
    Inconclusive,
    More,
    NotApplicable,
    Observations,
    Oracle,
    Sample,
    Unstable,
    Verdict,
    duel,
    judged_arms,
)
from oracles.model.sqlstate import UNDEFINED_FUNCTION

READ_BACK: Final = Sample("read_back", 32)  # two runs, in which each query waits for its answer

# OIDs of types whose bytes may differ where the text does not.
_SEVERAL_FORMS: Final = frozenset(
    {
        # with OIDs of objects: the reg types, their arrays, records, arrays of any type
        *("24", "2202", "2203", "2204", "2205", "2206", "3734", "3769", "4089", "4096", "4191"),
        *("1008", "2207", "2208", "2209", "2210", "2211", "3735", "3770", "4090", "4097", "4192"),
        *("2249", "2277", "2287"),
        # with floating-point numbers, which have several NaNs and may be rounded in text: floats, geometric types
        *("700", "701", "600", "601", "602", "603", "604", "628", "718"),
        *("1021", "1022", "1017", "1018", "1019", "1020", "1027", "629", "719"),
    }
)
_OTHERWISE: Final = "a statement ends otherwise in binary format"


@dataclass(frozen=True, slots=True)
class _Fault:
    """A query whose binary rows are wrong."""

    step: int
    origin: str
    expected: str
    actual: str

    def is_among(self, others: Iterable["_Fault"]) -> bool:
        return (self.step, self.origin) in {(other.step, other.origin) for other in others}


@dataclass(frozen=True, slots=True)
class _Formats:
    """The runs of a case on one arm: in text format and in binary format."""

    case: Case
    text: CaseObservation
    binary: CaseObservation

    def judged(self) -> dict[int, _Fault | str]:
        """Return for each query its fault, the reason why it cannot be judged, or "" if it has none.

        Other statements that do not end alike in both formats have a reason, too.
        """
        queries = {step: _judged(step, self.text.steps[step], self.binary.steps[step]) for step in self._queries()}
        return {step: _OTHERWISE for step in self._comparable() if not self._ends_alike(step)} | queries

    def faults(self) -> list[_Fault]:
        return [judged for judged in self.judged().values() if isinstance(judged, _Fault)]

    def byte_faults(self, reference: "_Formats") -> list[_Fault]:
        """Return the queries with the reference's text and other bytes."""
        return [fault for step in self._queries() if (fault := _byte_fault(step, reference, self))]

    def _queries(self) -> Iterator[int]:
        """Yield the comparable queries that succeed in text."""
        for position in self._comparable():
            text = self.text.steps[position]
            is_query = self.case.all_steps[position].kind is Kind.QUERY
            if is_query and text.outcome is Outcome.OK and text.read_back is not None:
                yield position

    def _comparable(self) -> Iterator[int]:
        """Yield the statements up to the first one after which the data of the two runs may differ."""
        for position, step in enumerate(self.case.all_steps):
            yield position
            text, binary = self.text.steps[position], self.binary.steps[position]
            if not self._ends_alike(position) and not state_still_equal(step, text, binary):
                return

    def _ends_alike(self, step: int) -> bool:
        text, binary = self.text.steps[step], self.binary.steps[step]
        return (text.sqlstate, text.transaction) == (binary.sqlstate, binary.transaction)

    def rows_of(self, step: int) -> tuple[Counter[bytes], Counter[bytes]]:
        """Return the rows of a query in both formats."""
        return row_multiset(self.text.steps[step].rows), row_multiset(self.binary.steps[step].rows)


def _judged(step: int, text: Observation, binary: Observation) -> _Fault | str:
    assert text.read_back is not None
    if text.read_back.outcome is not Outcome.OK or text.read_back.rows != text.rows:
        return "text is not read back"
    for seen, what in ((binary, "output"), (binary.read_back, "input")):
        if seen is None or not seen.has_ended:
            return "binary run cut short"
        if seen.sqlstate == UNDEFINED_FUNCTION:
            return f"a type has no binary {what}"
        if seen.outcome is Outcome.ERROR:
            return _Fault(
                step, f"binary {what}: {_raised(seen)}", "no error", "\n".join(map(message_text, seen.messages))
            )
    assert binary.read_back is not None
    expected, actual = row_multiset(text.rows), row_multiset(binary.read_back.rows)
    if expected == actual:
        return ""
    differing = next(_differing_columns(text.columns, text.rows, binary.read_back.rows), None)
    return _Fault(
        step,
        f"binary form of type {differing.type}" if differing else "binary form of rows",
        rows_text("rows in text format", expected - actual),
        rows_text("rows that the server read back from binary format", actual - expected),
    )


def _raised(seen: Observation) -> str:
    """Return SQLSTATE and C function of an error."""
    routines = (each.routine for each in seen.messages if each.severity == "ERROR" and each.routine)
    return " in ".join((seen.sqlstate, *routines))


def _byte_fault(step: int, reference: _Formats, suspect: _Formats) -> _Fault | None:
    """Return the fault of a query with other bytes than on the reference, if text and columns are the same."""
    pair = [each.binary.steps[step] for each in (reference, suspect)]
    ours, theirs = reference.rows_of(step), suspect.rows_of(step)
    same_text = ours[0] == theirs[0] and all(seen.outcome is Outcome.OK for seen in pair)
    if not same_text or pair[0].columns != pair[1].columns:
        return None
    columns = _differing_columns(pair[0].columns, pair[0].rows, pair[1].rows)
    differing = next(filter(_has_one_form, columns), None)
    if differing is None:
        return None
    expected, actual = (rows_text("rows in binary format", rows) for rows in (ours[1] - theirs[1], theirs[1] - ours[1]))
    return _Fault(step, f"bytes of type {differing.type}", expected, actual)


def _differing_columns(
    columns: Sequence[ResultColumn], ours: Sequence[bytes], theirs: Sequence[bytes]
) -> Iterator[ResultColumn]:
    """Yield the columns whose values differ."""
    for number, column in enumerate(columns):
        if _values(number, ours) != _values(number, theirs):
            yield column


def _has_one_form(column: ResultColumn) -> bool:
    """Return whether a text has only one binary form. Bytes of users' types may contain their OIDs."""
    return column.type.isdigit() and column.type not in _SEVERAL_FORMS


def _values(number: int, rows: Sequence[bytes]) -> Counter[bytes | None]:
    return Counter(values[number] for row in rows if (values := row_values(row)) and number < len(values))


class BinaryFormat(Oracle):
    """Rows whose binary form is not their text, or not that of the reference."""

    name: ClassVar[str] = "binary_format"
    samples: ClassVar[tuple[Sample, ...]] = (READ_BACK,)
    needs_another_arm: ClassVar[bool] = False
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary("change_binary", canary_case(query("SELECT n, name FROM canary"), samples=(READ_BACK,))),
    )

    def runs(self, case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
        """Return the plain runs, and those in both formats if the case is in the sample."""
        own = (run for arm in arms for run in _runs(case, arm)) if self._is_sampled(case, arms) else ()
        return (*duel(case, arms), *own)

    def judge(self, case: Case, arms: Sequence[str], observations: Observations) -> tuple[Verdict, ...] | More:
        """Return verdicts on each arm by its own text, and on each other arm by the bytes of the reference."""
        if not self._is_sampled(case, arms):
            return (NotApplicable(),) * len(judged_arms(arms))
        return _Judge(case, arms, observations).judge()

    def _is_sampled(self, case: Case, arms: Sequence[str]) -> bool:
        return case in (READ_BACK if len(arms) > 1 else READ_BACK.alone)


def _runs(case: Case, arm: str, repetition: int = 0) -> tuple[Run, ...]:
    """Return the runs of an arm in text and in binary format."""
    return tuple(Run(arm, (*case.modes, mode), repetition=repetition) for mode in (TEXT, BINARY))


@dataclass(frozen=True, slots=True)
class _Judge:
    """The oracle's judgement of a case.

    A fault must occur in each repetition, while text and the reference's bytes stay. They are several, because a plan
    may choose one of several equal values by chance, such as 1.0 or 1.00.
    """

    case: Case
    arms: Sequence[str]
    observations: Observations

    def judge(self) -> tuple[Verdict, ...] | More:
        reference = self._formats(self.arms[0])
        own = {arm: self._formats(arm).faults() for arm in self.arms}
        pairs = {arm: self._formats(arm).byte_faults(reference) for arm in self.arms[1:] if not own[arm]}
        doubtful = [arm for arm in self.arms if own[arm] or pairs.get(arm)]
        if any(pairs.values()):
            doubtful.insert(0, self.arms[0])
        again = (run for arm in doubtful for number in REPETITIONS for run in _runs(self.case, arm, number))
        if missing := [run for run in again if run not in self.observations]:
            faults = (fault for each in (own, pairs) for found in each.values() for fault in found)
            return More(tuple(dict.fromkeys(missing)), frozenset(fault.origin for fault in faults))
        of_arms = ((arm, verdict) for arm in self.arms for verdict in self._verdicts(arm, own[arm]))
        of_pairs = (self._byte_verdict(arm, fault) for arm, found in pairs.items() for fault in found)
        return (*verdicts_of_arms(self.arms, of_arms), *of_pairs)

    def _formats(self, arm: str, repetition: int = 0) -> _Formats:
        text, binary = (self.observations[run] for run in _runs(self.case, arm, repetition))
        return _Formats(self.case, text, binary)

    def _verdicts(self, arm: str, faults: Sequence[_Fault]) -> Iterator[Verdict]:
        judged = self._formats(arm).judged()
        for fault in faults:
            again = all(fault.is_among(self._formats(arm, number).faults()) for number in REPETITIONS)
            yield self._verdict((arm, arm), fault, again=again)
        reasons = {reason: step for step, reason in reversed(judged.items()) if isinstance(reason, str) and reason}
        yield from (self._doubt(arm, step, reason) for reason, step in reversed(reasons.items()))
        formats = self._formats(arm)
        if formats.text.residue is None or formats.binary.residue is None:
            yield lost_session(formats.text, formats.binary)
        yield Agree(sum(not reason for reason in judged.values()))

    def _doubt(self, arm: str, step: int, reason: str) -> Inconclusive:
        """Return the doubt about a statement, with the way in which its text and its binary form were read back."""
        formats = self._formats(arm)
        seen = (formats.text.steps[step], formats.binary.steps[step])
        text, binary = (ended(each.read_back or each) for each in seen)
        return Inconclusive(reason, step, (f"text read back: {text}", f"binary form read back: {binary}"))

    def _byte_verdict(self, arm: str, fault: _Fault) -> Verdict:
        reference = self._formats(self.arms[0])
        if any(fault.is_among(self._formats(self.arms[0], number).byte_faults(reference)) for number in REPETITIONS):
            reason = f"{fault.origin}: {self.arms[0]} differs from itself"
            return Unstable(reason, fault.step, (fault.expected, fault.actual))
        again = all(fault.is_among(self._formats(arm, number).byte_faults(reference)) for number in REPETITIONS)
        return self._verdict((self.arms[0], arm), fault, again=again)

    def _verdict(self, arms: tuple[str, str], fault: _Fault, *, again: bool) -> Finding | Unstable:
        sides = fault.expected, fault.actual
        rows = [self._formats(arms[0], number).rows_of(fault.step)[0] for number in (0, *REPETITIONS)]
        steady = all(each == rows[0] for each in rows)
        if not (again and steady):
            return Unstable(f"{fault.origin}: not in each run", fault.step, sides)
        sql = f"SELECT record_send(q) FROM (\n{self.case.all_steps[fault.step].sql}\n) AS q"
        summary = f"step {fault.step}: {fault.origin}"
        beside = (Evidence(sql, simple_protocol=True),)
        return Finding(BinaryFormat.name, arms, fault.origin, fault.step, summary, *sides, evidence=beside)
