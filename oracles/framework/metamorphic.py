"""Metamorphic oracles: on one arm, equivalent queries must return equal rows, so no other arm is needed.

A relation has two query variants that must return equal rows. Each variant is one run of the whole case, because a
query depends on the data that earlier statements left. Queries that the relation does not need are replaced by empty
ones, which changes no data.

A difference must occur again, and each run must agree with its own repetition. That excludes volatile functions behind
views.

A share of the cases is judged; all of them if there is a single arm, which few other oracles can judge.
"""

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from oracles.framework.comparison import Aspect, Comparison, Location, compare
from oracles.framework.difference_text import worded
from oracles.framework.relations import BRIEFLY, PLAINLY, MetamorphicRelation, Played, QueryVariant, Unanswered
from oracles.model.case import Case
from oracles.model.finding import Evidence, Finding, as_all_do, pairs_of
from oracles.model.mode import Mode
from oracles.model.observation import Run
from oracles.model.oracle import (
    Agree,
    Inconclusive,
    More,
    NotApplicable,
    Observations,
    Oracle,
    Unstable,
    Verdict,
    accused,
)

_ROWS: Final = (Aspect.ROWS, Aspect.ROW_COUNT)


class Metamorphic(Oracle):
    """An oracle that compares equivalent queries on the same arm."""

    needs_another_arm: ClassVar[bool] = False

    @abstractmethod
    def claims(self, played: Played) -> Iterator[MetamorphicRelation]:
        """Yield the relations that must hold for the case. May call `played.seen` for results of other queries."""

    def judge(self, case: Case, arms: Sequence[str], observations: Observations) -> tuple[Verdict, ...] | More:
        """Return a finding for each relation that an arm violates, or a request for runs."""
        if not any(case in (sample if len(arms) > 1 else sample.alone) for sample in self.samples):
            return (NotApplicable(),) * len(accused(arms))
        judges = [_Judge(self, Played(case, arm, observations)) for arm in arms]
        wanted = [judge.more() for judge in judges]
        if missing := dict.fromkeys(run for more in wanted for run in more.runs):
            return More(tuple(missing), frozenset().union(*(more.symptoms for more in wanted)))
        broken: dict[str, dict[str, Finding]] = defaultdict(dict)  # relation -> arm -> example
        others: list[Verdict] = []
        for judge in judges:
            for verdict in judge.verdicts():
                if isinstance(verdict, Finding):
                    broken[verdict.origin].setdefault(judge.played.arm, verdict)
                elif judge.played.arm in accused(arms):
                    others.append(verdict)
        return (*blamed(arms, broken), *others)


def blamed(arms: Sequence[str], broken: dict[str, dict[str, Finding]]) -> Iterator[Finding]:
    """Yield the findings for each violated relation (relation -> arm -> example), with the arms that violate it."""
    for examples in broken.values():
        for pair in pairs_of(arms, examples):
            example = examples[pair[1]]
            yield replace(example, arms=pair, summary=example.summary + (as_all_do(pair) if len(arms) > 1 else ""))


@dataclass(frozen=True, slots=True)
class _Judge:
    """An oracle's relations on one arm."""

    oracle: Metamorphic
    played: Played

    def more(self) -> More:
        """Return the missing runs: those of the relations, and repetitions for relations that do not hold."""
        try:
            claims = self._claims()
        except Unanswered as asked:
            return More((self.played.run(asked.way),))
        if missing := self._unseen(claims):
            return More(missing)
        doubtful = [claim for claim in claims if self._is_doubtful(claim)]
        return More(self._unseen(doubtful, repetition=1), frozenset(claim.name for claim in doubtful))

    def _unseen(self, claims: Sequence[MetamorphicRelation], repetition: int = 0) -> tuple[Run, ...]:
        runs = (self.played.run(way, repetition) for claim in claims for way in claim.asked)
        return tuple(run for run in runs if run not in self.played.observations)

    def verdicts(self) -> Iterator[Verdict]:
        """Yield the verdicts on all relations, and the number of judged statements. Needs all runs."""
        compared: set[int] = set()
        answers: set[tuple[QueryVariant, int]] = set()
        for claim in self._claims():
            if self._is_idle(claim):
                continue
            comparison = self._compared(claim)
            agreed = comparison.compared & claim.steps
            compared |= agreed
            answers |= {(way, step) for way in (claim.left, claim.right) if way != QueryVariant() for step in agreed}
            unclear = claim.steps - comparison.compared
            failed = [place for place in comparison.places if place.step in claim.steps and place.aspect not in _ROWS]
            if unclear or any(place.aspect is Aspect.OUTCOME for place in failed):
                yield Inconclusive(f"{claim.name}: a variant was not executed to its end")
            yield from (self._settled(claim, place) for place in self._broken_at(claim))
        yield Agree(len(compared), len(answers))

    def _claims(self) -> list[MetamorphicRelation]:
        return list(self.oracle.claims(self.played))

    def _compared(self, claim: MetamorphicRelation, repetition: int = 0) -> Comparison:
        left, right = (self.played.seen(way, repetition) for way in (claim.left, claim.right))
        return compare(_unordered(self.played.case), self._modes(claim.left), left, right)

    def _modes(self, way: QueryVariant) -> tuple[Mode, ...]:
        """Return the modes that determine how rows of this variant are compared."""
        return () if PLAINLY in way.modes else self.played.case.modes

    def _broken_at(self, claim: MetamorphicRelation, repetition: int = 0) -> list[Location]:
        places = self._compared(claim, repetition).places
        return [place for place in places if place.step in claim.steps and place.aspect in _ROWS]

    def _is_doubtful(self, claim: MetamorphicRelation) -> bool:
        """Return whether a relation does not hold."""
        return not self._is_idle(claim) and bool(self._broken_at(claim))

    def _is_idle(self, claim: MetamorphicRelation) -> bool:
        """Return whether the arm lacks settings of the right variant, so that both variants may be the same run.

        Settings that the left variant lacks as well are modes of the case.
        """
        left, right = (set(self.played.seen(way).lacking) for way in (claim.left, claim.right))
        return bool(right - left)

    def _settled(self, claim: MetamorphicRelation, place: Location) -> Finding | Unstable:
        assert place.step is not None
        said = worded(_unordered(self.played.case), place, *map(self.played.seen, (claim.left, claim.right)))
        if place not in self._broken_at(claim, repetition=1) or any(self._unsteady(way, place) for way in claim.asked):
            return Unstable(f"{claim.name}: not in each run", place.step, (said.expected, said.actual))
        beside = tuple(self._beside(way, place.step) for way in claim.asked if way != QueryVariant())
        return Finding(
            oracle=self.oracle.name,
            arms=(self.played.arm, self.played.arm),
            origin=claim.name,
            step=place.step,
            summary=f"{said.summary}: {claim.name}",
            expected="\n".join([said.expected, *(f"query: {each.sql}" for each in beside[:-1])]),
            actual=f"{said.actual}\nquery: {beside[-1].sql}",
            beside=beside,
        )

    def _unsteady(self, way: QueryVariant, place: Location) -> bool:
        """Return whether a variant's rows differ from those of its repetition, or could not be compared with them."""
        once, again = self.played.seen(way), self.played.seen(way, repetition=1)
        compared = compare(_unordered(self.played.case), self._modes(way), once, again)
        return compared.differs_at(replace(place, aspect=Aspect.ROWS)) is not False

    def _beside(self, way: QueryVariant, step: int) -> Evidence:
        shown = (mode for mode in way.modes if mode not in (BRIEFLY, PLAINLY))
        settings = tuple(setting for mode in shown for setting in mode.settings)
        return Evidence(dict(way.queries)[step], settings + way.settings, plainly=PLAINLY in way.modes)


def _unordered(case: Case) -> Case:
    """Return the case without total orders, because rewritten queries have no ORDER BY."""
    scene, steps = (tuple(replace(step, ordered=False) for step in part) for part in (case.scene, case.steps))
    return replace(case, scene=scene, steps=steps)
