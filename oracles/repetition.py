"""Repetition: in one session, arms must return the same rows each time that the case is executed.

State that outlives the objects of a case may be wrong in a later repetition only: a cache that a DROP does not
invalidate, or memory that a statement uses again. Repetitions may legally differ from each other, for example in
sequences that the case does not create. So each repetition is compared with that of the reference.

A difference counts if the first repetition has none at this place, because `result` judges those. It must occur again.
The reference must agree with itself in this repetition, also under other plans.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, Final

from oracles.framework.canaries import canary_case, query
from oracles.framework.comparison import Aspect, Comparison, Location, compare
from oracles.framework.difference_text import DifferenceText, difference_text, outcome_text
from oracles.framework.pairwise import Pair, SampledPairwise
from oracles.framework.shared_runs import OTHER_PLANS, REPEATED, REPEATS, repeated_runs
from oracles.framework.verdicts import obstacle_doubt
from oracles.model.case import Case
from oracles.model.finding import Finding
from oracles.model.observation import CaseObservation, Run
from oracles.model.oracle import Agree, Canary, Inconclusive, More, Sample, Unstable, Verdict

_AGAIN: Final = 1


class _RepetitionPair(Pair):
    def judge(self) -> tuple[Verdict, ...] | More:
        compared = self._comparisons(self._run(self.suspect))
        places = _later_places(compared)
        if places and (missing := self.missing((*self._runs_like_the_first(), self._run(self.suspect, _AGAIN)))):
            return More(missing, frozenset(self._origin(number, place) for place, number in places.items()))
        verdicts = [self._verdict(number, place) for place, number in places.items()]
        for verdict in verdicts:
            if isinstance(verdict, Finding):  # other differences may be consequences of it
                return (verdict,)
        return tuple(verdicts) or (self._without_difference(compared),)

    def _without_difference(self, compared: Sequence[Comparison]) -> Agree | Inconclusive:
        for number, found in enumerate(compared, start=1):
            if found.obstacle:
                return obstacle_doubt(found, *self._sides(number))
        return Agree(len(compared[-1].compared))

    def _verdict(self, number: int, place: Location) -> Finding | Unstable:
        if any(self._differs(run, number, place) is not False for run in self._runs_like_the_first()):
            reason = f"{self.reference} differs from itself"
        elif not self._differs(self._run(self.suspect, _AGAIN), number, place):
            reason = "differed once"
        else:
            return self._finding(number, place)
        text = self._text(number, place)
        return Unstable(f"{place.aspect} of a repetition: {reason}", place.step, (text.expected, text.actual))

    def _differs(self, run: Run, number: int, place: Location) -> bool | None:
        """Return whether a run differs from the reference in a repetition; None if it was not compared."""
        compared = self._comparisons(run)
        return compared[number - 1].differs_at(place) if number <= len(compared) else None

    def _comparisons(self, run: Run) -> list[Comparison]:
        """Return the comparison of each repetition of a run with the reference's."""
        ours, theirs = (repetitions(self.observations[each]) for each in (self._run(self.reference), run))
        return [compare(self.case, self.case.modes, *both) for both in zip(ours, theirs, strict=False)]

    def _run(self, arm: str, repetition: int = 0) -> Run:
        return Run(arm, self.case.modes, REPEATS, repetition=repetition)

    def _runs_like_the_first(self) -> Iterator[Run]:
        """Yield the runs of the reference that must agree with its first one."""
        yield self._run(self.reference, _AGAIN)
        yield from (Run(self.reference, (*self.case.modes, mode), REPEATS) for mode in OTHER_PLANS)

    def _sides(self, number: int) -> tuple[CaseObservation, CaseObservation]:
        ours, theirs = (repetitions(self.observations[self._run(arm)]) for arm in (self.reference, self.suspect))
        return ours[number - 1], theirs[number - 1]

    def _text(self, number: int, place: Location) -> DifferenceText:
        return difference_text(self.case, place, *self._sides(number))

    def _origin(self, number: int, place: Location) -> str:
        if place.step is None:
            return f"{place.aspect}, repeated"
        if place.aspect is Aspect.OUTCOME:
            ours, theirs = (outcome_text(seen.steps[place.step]) for seen in self._sides(number))
            return f"{place.aspect}, repeated: {ours} / {theirs}"
        command = self.case.all_steps[place.step].sql.split(maxsplit=1)[0].upper()
        return f"{place.aspect}, repeated: {command}"

    def _finding(self, number: int, place: Location) -> Finding:
        text = self._text(number, place)
        return Finding(
            oracle=Repetition.name,
            arms=(self.reference, self.suspect),
            origin=self._origin(number, place),
            step=place.step,
            summary=f"in repetition {number} of the case: {text.summary}",
            expected=text.expected,
            actual=text.actual,
        )


def _later_places(compared: Sequence[Comparison]) -> dict[Location, int]:
    """Return the places where a repetition differs and the first one does not, with the first such repetition."""
    places: dict[Location, int] = {}
    for number, found in enumerate(compared, start=1):
        for place in found.places:
            if compared[0].differs_at(place) is False:
                places.setdefault(place, number)
    return places


def repetitions(seen: CaseObservation) -> list[CaseObservation]:
    """Return the observation of each repetition.

    Only the last one has errors at the end. It has digests if the run is complete: an error of DROP SCHEMA ends it.
    """
    steps_only = replace(seen, earlier=(), digests=(), digested=True)
    earlier = [replace(steps_only, steps=steps, closing=()) for steps in seen.earlier]
    return [*earlier, steps_only if len(earlier) < REPEATS - 1 else replace(seen, earlier=())]


class Repetition(SampledPairwise):
    """Rows, outcomes, messages or data that differ between arms only when a session repeats the case."""

    name: ClassVar[str] = "repetition"
    samples: ClassVar[tuple[Sample, ...]] = (REPEATED,)
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary("drop_row_again", canary_case(query("SELECT n, name FROM canary"), samples=(REPEATED,))),
    )
    reference_is_steady: ClassVar[bool] = True
    pair = _RepetitionPair

    def own_runs(self, case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
        """Return repeated runs if the case is in the sample."""
        return repeated_runs(case, arms)
