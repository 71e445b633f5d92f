"""Order of rows: the rows that an arm returns are sorted by the query's ORDER BY, whatever the ties.

Other oracles compare rows in order under a total order only, and as multisets otherwise. This one judges the rows of
the case's own execution. A second run sends them back as literals, and the arm compares each row with the one before
it (sort_keys.py): by its operators, collations and rules for NULLs, but without a sort.

Not judged: sort keys that are not in the rows, and all keys after one of these; keys of types that the server does not
read back from text; rows in binary format, or after the first 2,000 different keys. Nor are cases that create
operators, because these may not be the ones that sort.

Rows out of order are a fault even if another execution returns them in order. So only their comparison is repeated.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from oracles.explain.nodes import plan_kinds, plan_shape
from oracles.framework.canaries import canary_case, query
from oracles.framework.difference_text import outcome_text, row_text, row_values
from oracles.framework.metamorphic import verdicts_of_arms
from oracles.framework.relations import SIMPLE_PROTOCOL, ArmRuns, QueryVariant
from oracles.model.case import Case, Kind
from oracles.model.finding import UNDER_PLAN, Evidence, Finding
from oracles.model.mode import Mode, Protocol, protocol_of
from oracles.model.observation import Observation, Outcome, Run
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
    judged_arms,
)
from oracles.order.sort_keys import INEXACT, SortCheck, sort_keys

ORDERED: Final = Sample("ordered", 16)  # one run of the case
_MOST_ROWS: Final = 2000
_MOST_CHARACTERS: Final = 1_000_000  # in literals
_SYMPTOM: Final = "rows that are not sorted"
_OPERATORS: Final = re.compile(r"\bCREATE\s+OPERATOR\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of a query with different keys, numbered for its check."""

    check: SortCheck
    rows: tuple[bytes, ...]  # of the query
    numbers: dict[int, int]  # of a compared row -> its index in `rows`
    statement: str


class Order(Oracle):
    """Rows that are not sorted by their query's ORDER BY."""

    name: ClassVar[str] = "order"
    samples: ClassVar[tuple[Sample, ...]] = (ORDERED,)
    needs_another_arm: ClassVar[bool] = False
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary("swap_rows", canary_case(query("SELECT n, name FROM canary ORDER BY name DESC"), samples=(ORDERED,))),
        Canary("swap_rows", canary_case(query("SELECT n % 3, name FROM canary ORDER BY 1"), samples=(ORDERED,))),
    )

    def judge(self, case: Case, arms: Sequence[str], observations: Observations) -> tuple[Verdict, ...] | More:
        """Return verdicts on each arm by its own operators."""
        is_sampled = case in (ORDERED if len(arms) > 1 else ORDERED.alone)
        if not is_sampled or any(_OPERATORS.search(step.sql) for step in case.all_steps):
            return (NotApplicable(),) * len(judged_arms(arms))
        judges = [_Judge(ArmRuns(case, arm, observations)) for arm in arms]
        if missing := [run for judge in judges for run in judge.missing()]:
            return More(tuple(missing), frozenset({_SYMPTOM} if any(judge.doubtful() for judge in judges) else ()))
        return verdicts_of_arms(arms, ((judge.runs.arm, each) for judge in judges for each in judge.verdicts()))


class _Judge:
    """The oracle's judgement of one arm."""

    def __init__(self, runs: ArmRuns) -> None:
        self.runs = runs
        self._seen = runs.observation(QueryVariant())
        self._sorted = dict(_compared(runs.case, self._seen.steps))
        self._check = runs.variant({step: rows.statement for step, rows in self._sorted.items()}, SIMPLE_PROTOCOL)

    def missing(self) -> list[Run]:
        """Return the runs that a verdict needs and that were not executed yet."""
        wanted = [self.runs.run(self._check)] if self._sorted else []
        if self.doubtful():
            wanted += [self.runs.run(self._check, repetition=1), self._explained()]
        return [run for run in wanted if run not in self.runs.observations]

    def doubtful(self) -> list[int]:
        """Return the queries whose rows are not sorted, according to the first comparison."""
        known = self._sorted and self.runs.run(self._check) in self.runs.observations
        return [step for step in self._sorted if self._misplaced(step) is not None] if known else []

    def verdicts(self) -> Iterator[Verdict]:
        """Yield the verdicts on all queries with sort keys, and the number of those in order."""
        agreed = 0
        for step in self._sorted:
            if reason := self._obstacle(step):
                seen = self._result(step)
                error = next((each.text for each in seen.messages if each.severity == "ERROR"), "")
                sides = "the rows' sort keys, compared in the arm", f"{outcome_text(seen)} {error}".rstrip()
                yield Inconclusive(reason, step, sides)
            elif (number := self._misplaced(step)) is not None:
                yield self._verdict(step, number)
            else:
                agreed += 1
        yield Agree(agreed)

    def _result(self, step: int, repetition: int = 0) -> Observation:
        return self.runs.observation(self._check, repetition).steps[step]

    def _obstacle(self, step: int) -> str:
        """Return the reason why a query cannot be judged, or ""."""
        seen = self._result(step)
        if seen.outcome is Outcome.ERROR:
            return "sort keys are not compared"
        if seen.outcome is not Outcome.OK:
            return "comparison of sort keys cut short"
        return "sort keys are rounded in text" if INEXACT in _numbers(seen) else ""

    def _misplaced(self, step: int, repetition: int = 0) -> int | None:
        """Return the first number of a row that must precede the one before, or None."""
        seen = self._result(step, repetition)
        numbers = _numbers(seen) & self._sorted[step].numbers.keys() if seen.outcome is Outcome.OK else set()
        return None if self._obstacle(step) else min(numbers, default=None)

    def _verdict(self, step: int, number: int) -> Finding | Unstable:
        rows = self._sorted[step]
        index = rows.numbers[number]
        order = ", ".join(f"{key.sql}{' DESC' if key.descending else ''}" for key in rows.check.keys)
        actual = "\n".join(f"  {each}: {row_text(rows.rows[each])}" for each in (index - 1, index))
        expected = f"rows in the order of {order}, where row {index} precedes row {index - 1}"
        if self._misplaced(step, repetition=1) != number:
            return Unstable(f"{_SYMPTOM}: not in each comparison", step, (expected, actual))
        plan = self.runs.observations[self._explained()].steps[step].plan
        return Finding(
            oracle=Order.name,
            arms=(self.runs.arm, self.runs.arm),
            origin=f"{_SYMPTOM}{UNDER_PLAN}{plan_kinds(plan)}",
            step=step,
            summary=f"step {step}: row {index} of {len(rows.rows)} must precede the row before it",
            expected=expected,
            actual=f"{actual}\nplan: {plan_shape(plan)}",
            evidence=(Evidence(rows.check.of_query()),),
        )

    def _explained(self) -> Run:
        return Run(self.runs.arm, self.runs.case.modes, explain=True)


def _numbers(seen: Observation) -> set[int]:
    """Return the numbers in the first column."""
    values = (row_values(row) for row in seen.rows)
    return {int(value[0]) for value in values if value and value[0] is not None and value[0].isdigit()}


def _compared(case: Case, steps: Sequence[Observation]) -> Iterator[tuple[int, _Rows]]:
    """Yield the queries by position whose rows have different sort keys."""
    for position, (step, seen) in enumerate(zip(case.all_steps, steps, strict=True)):
        in_text = seen.outcome is Outcome.OK and not any(column.binary for column in seen.columns)
        keys = sort_keys(step.sql, seen.columns) if step.kind is Kind.QUERY and in_text else ()
        if keys and len(seen.rows) > 1:
            rows = _rows(SortCheck(step.sql, keys, seen.columns), seen, case.modes)
            if rows is not None:
                yield position, rows


def _rows(check: SortCheck, seen: Observation, modes: Sequence[Mode]) -> _Rows | None:
    """Return the rows to compare; None if there are none. Of neighbours with equal keys, the first one is compared."""
    numbered: dict[int, tuple[str | None, ...]] = {}
    numbers: dict[int, int] = {}
    second, number, room = _second_execution(seen, modes), 0, _MOST_CHARACTERS
    for index, row in enumerate(seen.rows):
        key = _key(row, check.positions)
        if key is None or number >= _MOST_ROWS or room < 0:
            break
        if index == second:
            number += 1  # a gap, so that the row is not compared with the one before
        if numbered.get(number) != key:
            number += 1
            numbered[number], numbers[number] = key, index
            room -= sum(len(value or "") for value in key)
    if len(numbered) < 2:
        return None
    return _Rows(check, seen.rows, numbers, check.of_rows(numbered.items()))


def _key(row: bytes, positions: Sequence[int]) -> tuple[str | None, ...] | None:
    """Return the values at these positions as text; None if they are not all there, or no text."""
    values = row_values(row)
    if values is None or len(values) <= max(positions):
        return None
    try:
        return tuple(None if (value := values[position]) is None else value.decode() for position in positions)
    except UnicodeDecodeError:
        return None


def _second_execution(seen: Observation, modes: Sequence[Mode]) -> int | None:
    """Return the index of the first row of a prepared statement's second execution."""
    if protocol_of(modes) is not Protocol.PREPARED or not seen.tags:
        return None
    rows = seen.tags[0].rpartition(" ")[2]
    return int(rows) if rows.isdigit() else None
