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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from oracles.framework.comparison import Aspect, Comparison, Location, compare
from oracles.framework.difference_text import difference_text
from oracles.framework.relations import (
    SHORT_TIMEOUT,
    SIMPLE_PROTOCOL,
    ArmRuns,
    MetamorphicRelation,
    MissingRun,
    QueryVariant,
)
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
    judged_arms,
)

_ROWS: Final = (Aspect.ROWS, Aspect.ROW_COUNT)


class Metamorphic(Oracle):
    """An oracle that compares equivalent queries on the same arm."""

    needs_another_arm: ClassVar[bool] = False

    @abstractmethod
    def relations(self, arm_runs: ArmRuns) -> Iterator[MetamorphicRelation]:
        """Yield the relations that must hold for the case. `arm_runs.observation` returns results of other queries."""

    def judge(self, case: Case, arms: Sequence[str], observations: Observations) -> tuple[Verdict, ...] | More:
        """Return a finding for each relation that an arm violates, or a request for runs."""
        if not any(case in (sample if len(arms) > 1 else sample.alone) for sample in self.samples):
            return (NotApplicable(),) * len(judged_arms(arms))
        judges = [_Judge(self, ArmRuns(case, arm, observations)) for arm in arms]
        wanted = [judge.more() for judge in judges]
        if missing := dict.fromkeys(run for more in wanted for run in more.runs):
            return More(tuple(missing), frozenset().union(*(more.symptoms for more in wanted)))
        return verdicts_of_arms(arms, ((judge.runs.arm, each) for judge in judges for each in judge.verdicts()))


def verdicts_of_arms(arms: Sequence[str], verdicts: Iterable[tuple[str, Verdict]]) -> tuple[Verdict, ...]:
    """Return the verdicts on arms that were judged one by one.

    There is one finding for each violated relation and suspect. Other verdicts count for the judged arms only.
    """
    broken: dict[str, dict[str, Finding]] = defaultdict(dict)  # relation -> arm -> example
    others: list[Verdict] = []
    for arm, verdict in verdicts:
        if isinstance(verdict, Finding):
            broken[verdict.origin].setdefault(arm, verdict)
        elif arm in judged_arms(arms):
            others.append(verdict)
    return (*_violation_findings(arms, broken), *others)


def _violation_findings(arms: Sequence[str], broken: dict[str, dict[str, Finding]]) -> Iterator[Finding]:
    """Yield the findings for each violated relation (relation -> arm -> example), with the arms that violate it."""
    for examples in broken.values():
        for pair in pairs_of(arms, examples):
            example = examples[pair[1]]
            yield replace(example, arms=pair, summary=example.summary + (as_all_do(pair) if len(arms) > 1 else ""))


@dataclass(frozen=True, slots=True)
class _Judge:
    """An oracle's relations on one arm."""

    oracle: Metamorphic
    runs: ArmRuns

    def more(self) -> More:
        """Return the missing runs: those of the relations, and repetitions for relations that do not hold."""
        try:
            relations = self._relations()
        except MissingRun as error:
            return More((self.runs.run(error.variant),))
        if missing := self._missing(relations):
            return More(missing)
        doubtful = [relation for relation in relations if self._is_doubtful(relation)]
        return More(self._missing(doubtful, repetition=1), frozenset(relation.name for relation in doubtful))

    def _missing(self, relations: Sequence[MetamorphicRelation], repetition: int = 0) -> tuple[Run, ...]:
        runs = (self.runs.run(variant, repetition) for relation in relations for variant in relation.variants)
        return tuple(run for run in runs if run not in self.runs.observations)

    def verdicts(self) -> Iterator[Verdict]:
        """Yield the verdicts on all relations, and the number of judged statements. Needs all runs."""
        compared: set[int] = set()
        answers: set[tuple[QueryVariant, int]] = set()
        for relation in self._relations():
            if self._lacks_settings(relation):
                continue
            comparison = self._comparison(relation)
            agreed = comparison.compared & relation.steps
            compared |= agreed
            answers |= {
                (variant, step)
                for variant in (relation.left, relation.right)
                if variant != QueryVariant()
                for step in agreed
            }
            unclear = relation.steps - comparison.compared
            failed = [
                place for place in comparison.places if place.step in relation.steps and place.aspect not in _ROWS
            ]
            if unclear or any(place.aspect is Aspect.OUTCOME for place in failed):
                yield Inconclusive(f"{relation.name}: a variant was not executed to its end")
            yield from (self._verdict(relation, place) for place in self._broken_at(relation))
        yield Agree(len(compared), len(answers))

    def _relations(self) -> list[MetamorphicRelation]:
        return list(self.oracle.relations(self.runs))

    def _comparison(self, relation: MetamorphicRelation, repetition: int = 0) -> Comparison:
        left, right = (self.runs.observation(variant, repetition) for variant in (relation.left, relation.right))
        return compare(_unordered(self.runs.case), self._modes(relation.left), left, right)

    def _modes(self, variant: QueryVariant) -> tuple[Mode, ...]:
        """Return the modes that determine how rows of this variant are compared."""
        return () if SIMPLE_PROTOCOL in variant.modes else self.runs.case.modes

    def _broken_at(self, relation: MetamorphicRelation, repetition: int = 0) -> list[Location]:
        places = self._comparison(relation, repetition).places
        return [place for place in places if place.step in relation.steps and place.aspect in _ROWS]

    def _is_doubtful(self, relation: MetamorphicRelation) -> bool:
        """Return whether a relation does not hold."""
        return not self._lacks_settings(relation) and bool(self._broken_at(relation))

    def _lacks_settings(self, relation: MetamorphicRelation) -> bool:
        """Return whether the arm lacks settings of the right variant, so that both variants may be the same run.

        Settings that the left variant lacks as well are modes of the case.
        """
        left, right = (set(self.runs.observation(variant).lacking) for variant in (relation.left, relation.right))
        return bool(right - left)

    def _verdict(self, relation: MetamorphicRelation, place: Location) -> Finding | Unstable:
        assert place.step is not None
        left, right = map(self.runs.observation, (relation.left, relation.right))
        text = difference_text(_unordered(self.runs.case), place, left, right)
        unsteady = any(self._unsteady(variant, place) for variant in relation.variants)
        if unsteady or place not in self._broken_at(relation, repetition=1):
            return Unstable(f"{relation.name}: not in each run", place.step, (text.expected, text.actual))
        evidence = tuple(
            self._evidence(variant, place.step) for variant in relation.variants if variant != QueryVariant()
        )
        return Finding(
            oracle=self.oracle.name,
            arms=(self.runs.arm, self.runs.arm),
            origin=relation.name,
            step=place.step,
            summary=f"{text.summary}: {relation.name}",
            expected="\n".join([text.expected, *(f"query: {each.sql}" for each in evidence[:-1])]),
            actual=f"{text.actual}\nquery: {evidence[-1].sql}",
            beside=evidence,
        )

    def _unsteady(self, variant: QueryVariant, place: Location) -> bool:
        """Return whether a variant's rows differ from those of its repetition, or could not be compared with them."""
        once, again = self.runs.observation(variant), self.runs.observation(variant, repetition=1)
        compared = compare(_unordered(self.runs.case), self._modes(variant), once, again)
        return compared.differs_at(replace(place, aspect=Aspect.ROWS)) is not False

    def _evidence(self, variant: QueryVariant, step: int) -> Evidence:
        shown = (mode for mode in variant.modes if mode not in (SHORT_TIMEOUT, SIMPLE_PROTOCOL))
        settings = tuple(setting for mode in shown for setting in mode.settings)
        return Evidence(
            dict(variant.queries)[step], settings + variant.settings, plainly=SIMPLE_PROTOCOL in variant.modes
        )


def _unordered(case: Case) -> Case:
    """Return the case without total orders, because rewritten queries have no ORDER BY."""
    scene, steps = (tuple(replace(step, ordered=False) for step in part) for part in (case.scene, case.steps))
    return replace(case, scene=scene, steps=steps)
