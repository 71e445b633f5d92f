"""Result equality: arms must return the same rows, outcomes and messages, and leave the same data.

The statements with which pgduel ends a case, such as DROP SCHEMA, must raise the same errors, too.

A difference must be confirmed. The case is executed again on both arms, and on the reference under other plans. If the
reference differs from itself in the same way, the difference is no evidence against the suspect: the verdict is
unstable, with both results of the reference. If the suspect does not repeat the difference, up to 119 more runs of each
arm decide, because a race in the suspect is a bug, and few runs may show it. A legal difference that is as rare on both
arms would be reported in one of a hundred cases at most. A less certain difference is unstable.

Two differences are the same if the property is the same, and for errors and messages also the kind. A reference that
raises an error under another plan explains other errors that depend on values, but neither other rows nor an internal
error. A reference with more or fewer notices does not explain a warning.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from math import comb
from typing import Any, ClassVar, Final

from oracles.explain.nodes import plan_kinds, plan_shape
from oracles.framework.canaries import canary_case, query
from oracles.framework.comparison import OF_LOAD, Aspect, Comparison, Location, compare, stored_count
from oracles.framework.difference_text import difference_text, outcome_text
from oracles.framework.pairwise import Pair, Pairwise
from oracles.framework.shared_runs import OTHER_PLANS
from oracles.framework.verdicts import obstacle_doubt
from oracles.model.case import Kind, Step
from oracles.model.finding import UNDER_PLAN, Finding
from oracles.model.observation import CaseObservation, Observation, Outcome, Run
from oracles.model.oracle import Agree, Canary, Inconclusive, More, Unstable, Verdict

_FIRST: Final = 1
# Numbers of further repetitions if the first does not differ; after two stages without a difference there is no third.
_STAGES: Final = (range(2, 7), range(7, 31), range(31, 121))
_MAX_CHANCE: Final = 0.01


class _ResultPair(Pair):
    def judge(self) -> tuple[Verdict, ...] | More:
        difference = self._against_reference(self._run(self.suspect))
        if difference.places and (missing := self.missing(self._confirming_runs(difference))):
            return More(missing, frozenset(map(self._symptom, difference.places)))
        verdicts: list[Verdict] = []
        for place in difference.places:
            verdict = self._verdict(place)
            if isinstance(verdict, More):
                return verdict
            verdicts.append(verdict if isinstance(verdict, Finding) else self._with_sides(verdict, place))
            if isinstance(verdict, Finding):  # later differences may be consequences of it
                return tuple(verdicts)
        return (*verdicts, *self._remaining(difference))

    def _remaining(self, difference: Comparison) -> Iterator[Verdict]:
        """Yield the verdicts on the steps without a difference."""
        equal = difference.compared - {place.step for place in difference.places}
        if difference.obstacle:
            yield obstacle_doubt(difference, self._seen(self.reference), self._seen(self.suspect))
        if equal or not (difference.places or difference.obstacle):
            yield Agree(len(equal))

    def _verdict(self, place: Location) -> Finding | Unstable | Inconclusive | More:
        if unstable := self._reference_differs(place, self._runs_like_the_first()):
            return unstable
        if self._against_reference(self._run(self.reference, _FIRST)).differs_at(place) is None:
            return Inconclusive("repetition cut short")
        if self._repetitions(place, (_FIRST,)):
            return self._finding(place)
        return self._rare_difference(place)

    def _rare_difference(self, place: Location) -> Finding | Unstable | More:
        """Return the verdict on a difference that the suspect's first repetition did not show."""
        repeated = 0
        for stage in _STAGES:
            runs = [self._run(arm, each) for each in stage for arm in (self.reference, self.suspect)]
            if missing := self.missing(runs):
                return More(missing, frozenset({self._symptom(place)}))
            if unstable := self._reference_differs(place, (self._run(self.reference, each) for each in stage)):
                return unstable
            repeated += self._repetitions(place, stage)
            how_often = f"in {repeated + 1} of {stage.stop} runs"
            if repeated and self._depends_on_load(place):
                return Unstable(f"{place.aspect}: differs {how_often}, with the load")
            if _chance(repeated, stage.stop - 1) < _MAX_CHANCE:
                return self._finding(place, f" ({how_often})")
            if not repeated and stage is _STAGES[1]:
                return Unstable(f"{place.aspect}: differed once and never again")
        return Unstable(f"{place.aspect}: differs {how_often}, which may be chance")

    def _depends_on_load(self, place: Location) -> bool:
        """Return whether a step ends in an error that depends on the server's load, such as a lock timeout."""
        if place.step is None or place.aspect is not Aspect.OUTCOME:
            return False
        both = (self._seen(arm).steps[place.step] for arm in (self.reference, self.suspect))
        return any(seen.sqlstate.startswith(OF_LOAD) for seen in both)

    def _with_sides(self, verdict: Unstable | Inconclusive, place: Location) -> Unstable | Inconclusive:
        """Return a doubt with its step, and with both sides: by default what the arms returned in their first runs."""
        sides = verdict.sides if any(verdict.sides) else self._sides(place, self._run(self.suspect))
        return replace(verdict, step=place.step, sides=sides)

    def _sides(self, place: Location, run: Run) -> tuple[str, str]:
        text = difference_text(self.case, place, self._seen(self.reference), self.observations[run])
        return text.expected, text.actual

    def _reference_differs(self, place: Location, runs: Iterable[Run]) -> Unstable | None:
        """Return the verdict unstable if the reference differs from itself at this place as the suspect does."""
        given = list(runs)
        varying = [run for run in given if self._varies(place, run)]
        plans = [self._against_reference(run).differs_at(place) for run in given if not run.repetition]
        if not varying and not any(each is False for each in plans):  # no other plan confirms the rows
            varying = [run for run in given if not run.repetition]
        shown = set().union(*(self._kinds(place, run) for run in varying))
        if not varying or not self._kinds(place, self._run(self.suspect)) <= shown:
            return None
        how = "repeated" if varying[0].repetition else varying[0].modes[-1].name
        reason = f"{place.aspect}: {self.reference} differs from itself, {how}"
        return Unstable(reason, place.step, self._sides(place, varying[0]))

    def _varies(self, place: Location, run: Run) -> bool:
        """Return whether the reference differs from its first run at this place.

        An error under another plan is not another result.
        """
        found = self._against_reference(run)
        fails = replace(place, aspect=Aspect.OUTCOME) in found.places
        return bool(found.differs_at(place)) and (run.repetition > 0 or not fails or place.aspect is Aspect.OUTCOME)

    def _kinds(self, place: Location, run: Run) -> frozenset[str]:
        """Return the kinds of outcome or message at this place that a run has beside the reference's first run."""
        if place.step is None or place.aspect not in _KINDS:
            return frozenset()
        first, other = (seen.steps[place.step] for seen in (self._seen(self.reference), self.observations[run]))
        return _KINDS[place.aspect](first, other)

    def _repetitions(self, place: Location, numbers: Iterable[int]) -> int:
        """Return the number of repetitions in which the suspect differed from the reference again."""
        runs = (self._run(self.suspect, number) for number in numbers)
        return sum(self._against_reference(run).differs_at(place) is True for run in runs)

    def _against_reference(self, run: Run) -> Comparison:
        return compare(self.case, self.case.modes, self._seen(self.reference), self.observations[run])

    def _seen(self, arm: str) -> CaseObservation:
        return self.observations[self._run(arm)]

    def _confirming_runs(self, difference: Comparison) -> Iterator[Run]:
        yield from self._runs_like_the_first()
        yield self._run(self.suspect, _FIRST)
        if any(self._has_plan(place) for place in difference.places):
            yield from map(self._explained, (self.reference, self.suspect))

    def _runs_like_the_first(self) -> Iterator[Run]:
        """Yield the runs of the reference that must agree with its first one."""
        yield self._run(self.reference, _FIRST)
        yield from (Run(self.reference, (*self.case.modes, mode)) for mode in OTHER_PLANS)

    def _run(self, arm: str, repetition: int = 0) -> Run:
        return Run(arm, self.case.modes, repetition=repetition)

    def _explained(self, arm: str) -> Run:
        return Run(arm, self.case.modes, explain=True)

    def _has_plan(self, place: Location) -> bool:
        rows = place.aspect in (Aspect.ROWS, Aspect.ROW_COUNT)
        return rows and place.step is not None and self.case.all_steps[place.step].kind is Kind.QUERY

    def _finding(self, place: Location, how_often: str = "") -> Finding:
        arms = (self.reference, self.suspect)
        ours, theirs = map(self._seen, arms)
        text = difference_text(self.case, place, ours, theirs)
        shapes = [f"\nplan: {plan_shape(plan)}" for plan in self._plans(place)] or ["", ""]
        return Finding(
            oracle=Result.name,
            arms=arms,
            origin=self._symptom(place) + self._under_plan(place),
            step=place.step,
            summary=text.summary + how_often,
            expected=text.expected + shapes[0],
            actual=text.actual + shapes[1],
        )

    def _plans(self, place: Location) -> list[Mapping[str, Any] | None]:
        """Return the plans of reference and suspect if rows of a query differ, else an empty list."""
        if place.step is None or not self._has_plan(place):
            return []
        return [
            self.observations[self._explained(arm)].steps[place.step].plan for arm in (self.reference, self.suspect)
        ]

    def _symptom(self, place: Location) -> str:
        """Return the kind of difference; without plans, followed by a detail that distinguishes causes."""
        ours, theirs = self._seen(self.reference), self._seen(self.suspect)
        if place.aspect is Aspect.CLOSING:
            return f"errors at the end: {_either(*map(_closing_states, (ours, theirs)))}"
        if place.step is None:
            is_table = any(stored_count(dict(seen.digests).get(place.reported, "")) for seen in (ours, theirs))
            return "stored: table" if is_table else "stored: sequence"
        kind, detail = _ORIGINS[place.aspect]
        if self._has_plan(place):
            return kind
        return f"{kind}: {_either(detail(ours.steps[place.step]), detail(theirs.steps[place.step]))}"

    def _under_plan(self, place: Location) -> str:
        plans = self._plans(place)
        return f"{UNDER_PLAN}{_either(*map(plan_kinds, plans))}" if plans else ""


class Result(Pairwise):
    """Rows, outcomes, messages or data that differ between arms."""

    name: ClassVar[str] = "result"
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary("drop_row", canary_case(query("SELECT n, name FROM canary"))),
        Canary("double_row", canary_case(query("SELECT n, name FROM canary"))),
        # 1, 1, 2 becomes 2, 1, 2: the same number and the same set of rows
        Canary("change_value", canary_case(query("SELECT greatest(n, 2) - 1 FROM canary WHERE n < 4"))),
        Canary("change_sqlstate", canary_case(query("SELECT 1 / (n - 1) FROM canary", may_fail=True))),
        Canary("warn", canary_case(query("SELECT count(*) FROM canary"))),
        # visible only in the table's contents
        Canary("change_value", canary_case(Step("INSERT INTO nest SELECT n, name FROM canary"))),
    )
    reference_is_steady: ClassVar[bool] = True
    pair = _ResultPair


def _chance(times: int, runs: int) -> float:
    """Return Fisher's p-value: the chance that all differences are the suspect's, if both arms differ equally often.

    Each arm has `runs` runs. Of all these runs, `times` differ.
    """
    return comb(runs, times) / comb(2 * runs, times)


def _either(ours: str, theirs: str) -> str:
    return ours if ours == theirs else f"{ours} / {theirs}"


def _closing_states(seen: CaseObservation) -> str:
    return ", ".join(sorted({message.sqlstate for message in seen.closing})) or "none"


def _command(seen: Observation) -> str:
    """Return the last command tag without its numbers."""
    return " ".join(word for word in seen.tags[-1].split() if not word.isdigit()) if seen.tags else "no command tag"


def _kinds_of_message(seen: Observation) -> str:
    return ", ".join(sorted({f"{each.severity} {each.sqlstate}" for each in seen.messages})) or "none"


def _types_of_protocol(seen: Observation) -> str:
    return ", ".join(sorted({text.partition(":")[0] for text in seen.protocol})) or "none"


def _kinds_of_outcome(first: Observation, other: Observation) -> frozenset[str]:
    """Return the kinds of both outcomes; where errors depend on values, success is one more."""
    kinds = {_kind_of_outcome(seen) for seen in (first, other)}
    return frozenset(kinds | ({Outcome.OK.value} if _OF_VALUES in kinds else set()))


def _kind_of_outcome(seen: Observation) -> str:
    return _OF_VALUES if seen.sqlstate[:2] in _VALUES else outcome_text(seen)


def _changed_messages(first: Observation, other: Observation) -> frozenset[str]:
    """Return the kinds of messages that two observations do not have in common."""
    ours, theirs = Counter(first.messages), Counter(other.messages)
    return frozenset(f"{each.severity} {each.sqlstate}" for each in (ours - theirs) | (theirs - ours))


_OF_VALUES: Final = "an error that depends on values"
_VALUES: Final = frozenset({"21", "22", "23", "P0"})  # SQLSTATE classes: cardinality, data, integrity, PL/pgSQL
_KINDS: Final[Mapping[Aspect, Callable[[Observation, Observation], frozenset[str]]]] = {
    Aspect.OUTCOME: _kinds_of_outcome,
    **dict.fromkeys((Aspect.MESSAGES, Aspect.TEXTS, Aspect.FIELDS), _changed_messages),
}

# The name of a kind of difference, and a detail of either side that distinguishes causes.
_ORIGINS: Final[Mapping[Aspect, tuple[str, Callable[[Observation], str]]]] = {
    Aspect.OUTCOME: ("outcome", outcome_text),
    Aspect.COLUMNS: ("columns", _command),
    Aspect.ROW_COUNT: ("rows", _command),
    Aspect.ROWS: ("rows", _command),
    Aspect.TAGS: ("command tags", _command),
    Aspect.MESSAGES: ("messages", _kinds_of_message),
    Aspect.TEXTS: ("message texts", _kinds_of_message),
    Aspect.FIELDS: ("message fields", _kinds_of_message),
    Aspect.PROTOCOL: ("protocol messages", _types_of_protocol),
    Aspect.TRANSACTION: ("transaction status", lambda seen: seen.transaction),
}
