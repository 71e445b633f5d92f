"""Metamorphic oracles: on one arm, equivalent queries must return equal rows, so no other arm is needed.

A relation has two query variants that must return equal rows. Each variant is one run of the whole case, because a
query depends on the data that earlier statements left. Queries that the relation does not need are replaced by empty
ones, which changes no data.

A difference must occur again, and each run must agree with its own repetition. That excludes volatile functions behind
views. An error that no part of a query can raise is a finding, too, and must occur again. Any other error of one
variant is inconclusive. So is an error of a helper query, from whose result a variant is built.

A share of the cases is judged; all of them if there is a single arm, which few other oracles can judge.
"""

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Final
from weakref import WeakKeyDictionary

from oracles.framework.comparison import Aspect, Comparison, Location, compare
from oracles.framework.difference_text import DifferenceText, difference_text, ended
from oracles.framework.relations import (
    SHORT_TIMEOUT,
    SIMPLE_PROTOCOL,
    ArmRuns,
    MetamorphicRelation,
    MissingRun,
    QueryVariant,
)
from oracles.model.case import Case
from oracles.model.finding import Evidence, Finding, as_all_do, first_of_each, pairs_of
from oracles.model.mode import Mode
from oracles.model.observation import CaseObservation, Message, Observation, Outcome, Run
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
from oracles.sql.infallible import impossible_error, origin_of

_ROWS: Final = (Aspect.ROWS, Aspect.ROW_COUNT)


class Metamorphic(Oracle):
    """An oracle that compares equivalent queries on the same arm."""

    needs_another_arm: ClassVar[bool] = False
    judges_own_runs: ClassVar[bool] = True

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

    There is one finding for each violated relation and pair of arms. Arms that violate it at one step share the fault.
    Other verdicts count for the judged arms only, besides doubts that only the reference has.
    """
    broken: dict[tuple[str, int | None], dict[str, Finding]] = defaultdict(dict)  # (relation, step) -> arm -> example
    others: list[Verdict] = []
    of_reference: list[Inconclusive | Unstable] = []
    for arm, verdict in verdicts:
        if isinstance(verdict, Finding):
            broken[verdict.origin, verdict.step].setdefault(arm, verdict)
        elif arm in judged_arms(arms):
            others.append(verdict)
        elif isinstance(verdict, Inconclusive | Unstable):
            of_reference.append(verdict)
    found = (finding for examples in broken.values() for finding in _violation_findings(arms, examples))
    shared = {_doubted(verdict) for verdict in others if isinstance(verdict, Inconclusive | Unstable)}
    return (*first_of_each(found), *(doubt for doubt in of_reference if _doubted(doubt) not in shared), *others)


def _doubted(doubt: Inconclusive | Unstable) -> tuple[type, str, int | None]:
    """Return the key by which doubts of several arms about one thing are equal."""
    return type(doubt), doubt.reason, doubt.step


def _violation_findings(arms: Sequence[str], examples: Mapping[str, Finding]) -> Iterator[Finding]:
    """Yield the findings for a violation at one step (arm -> example), with the arms that show it."""
    for pair in pairs_of(arms, examples):
        example = examples[pair[1]]
        yield replace(example, arms=pair, summary=example.summary + (as_all_do(pair) if len(arms) > 1 else ""))


@dataclass(frozen=True, slots=True)
class _Built:
    """The relations of a case on an arm, and the observations that they depend on."""

    case: Case
    used: Mapping[Run, CaseObservation]
    relations: tuple[MetamorphicRelation, ...]

    def are_those_of(self, runs: ArmRuns) -> bool:
        """Return whether the same relations would be built from these runs."""
        return self.case is runs.case and all(runs.observations.get(run) is seen for run, seen in self.used.items())


# The last relations of each oracle, by arm. An oracle judges a case several times, and printing queries takes most of
# its time.
_BUILT: Final[WeakKeyDictionary[Metamorphic, dict[str, _Built]]] = WeakKeyDictionary()


@dataclass(frozen=True)
class _Judge:
    """An oracle's relations on one arm."""

    oracle: Metamorphic
    runs: ArmRuns

    def more(self) -> More:
        """Return the missing runs: those of the relations, and repetitions for relations that do not hold."""
        try:
            relations = self._relations
        except MissingRun as error:
            return More((self.runs.run(error.variant),))
        if missing := self._missing(relations):
            return More(missing)
        symptoms = {relation: self._symptoms(relation) for relation in relations}
        doubtful = [relation for relation in relations if symptoms[relation]]
        return More(self._missing(doubtful, repetition=1), frozenset().union(*symptoms.values()))

    def _missing(self, relations: Sequence[MetamorphicRelation], repetition: int = 0) -> tuple[Run, ...]:
        runs = (self.runs.run(variant, repetition) for relation in relations for variant in relation.variants)
        return tuple(run for run in runs if run not in self.runs.observations)

    def verdicts(self) -> Iterator[Verdict]:
        """Yield the verdicts on all relations, and the number of judged statements. Needs all runs."""
        compared: set[int] = set()
        answers: set[tuple[QueryVariant, int]] = set()
        for relation in self._relations:
            if self._lacks_settings(relation):
                continue
            comparison = self._comparison(relation)
            errors = list(self._errors(relation, comparison))
            failed = {step for step, *_ in errors}
            doubts = list(self._doubts(relation, comparison, failed))
            agreed = (comparison.compared & relation.steps) - failed - {each.step for each in doubts}
            compared |= agreed
            answers |= {
                (variant, step)
                for variant in (relation.left, relation.right)
                if variant != QueryVariant()
                for step in agreed
            }
            yield from doubts
            yield from (self._error_verdict(relation, *error) for error in errors)
            yield from (self._verdict(relation, place) for place in _broken_at(relation, comparison))
        yield Agree(len(compared), len(answers))

    @cached_property
    def _relations(self) -> tuple[MetamorphicRelation, ...]:
        of_arms = _BUILT.setdefault(self.oracle, {})
        built = of_arms.get(self.runs.arm)
        if built is None or not built.are_those_of(self.runs):
            relations = tuple(self.oracle.relations(self.runs))
            built = of_arms[self.runs.arm] = _Built(self.runs.case, dict(self.runs.used), relations)
        return built.relations

    def _comparison(self, relation: MetamorphicRelation, repetition: int = 0) -> Comparison:
        left, right = (self.runs.observation(variant, repetition) for variant in (relation.left, relation.right))
        return compare(_unordered(self.runs.case), self._modes(relation.left), left, right)

    def _modes(self, variant: QueryVariant) -> tuple[Mode, ...]:
        """Return the modes that determine how rows of this variant are compared."""
        return () if SIMPLE_PROTOCOL in variant.modes else self.runs.case.modes

    def _errors(
        self, relation: MetamorphicRelation, comparison: Comparison
    ) -> Iterator[tuple[int, QueryVariant, Message]]:
        """Yield the steps at which a variant ends in an error that its query cannot legally raise."""
        seen = [(variant, self.runs.observation(variant).steps) for variant in (relation.left, relation.right)]
        for step in sorted(comparison.compared & relation.steps):
            for variant, steps in seen:
                if error := self._impossible_error(variant, step, steps[step]):
                    yield step, variant, error

    def _impossible_error(self, variant: QueryVariant, step: int, seen: Observation) -> Message | None:
        if seen.outcome is not Outcome.ERROR:  # the usual case; what follows reads all queries of the case
            return None
        return impossible_error(self.runs.case.all_steps, self._sql(variant, step), seen)

    def _sql(self, variant: QueryVariant, step: int) -> str:
        return dict(variant.queries).get(step, self.runs.case.all_steps[step].sql)

    def _doubts(
        self, relation: MetamorphicRelation, comparison: Comparison, decided: Set[int]
    ) -> Iterator[Inconclusive]:
        """Yield the steps at which one variant may legally fail, and the first one that was not compared."""
        for place in comparison.places:
            if place.step in relation.steps - decided and place.aspect is Aspect.OUTCOME:
                yield self._doubt(f"{relation.name}: one variant ends in an error", relation, place)
        if relation.is_helper:
            seen = self.runs.observation(relation.left).steps
            for step in sorted((relation.steps & comparison.compared) - decided):
                yield Inconclusive(
                    relation.name, step, ("no error", f"{ended(seen[step])}\nquery: {self._sql(relation.left, step)}")
                )
        if unclear := relation.steps - comparison.compared:
            place = Location(min(unclear), Aspect.OUTCOME)
            yield self._doubt(f"{relation.name}: a variant was not executed to its end", relation, place)

    def _doubt(self, reason: str, relation: MetamorphicRelation, place: Location) -> Inconclusive:
        text = self._text(relation, place)
        return Inconclusive(reason, place.step, (text.expected, text.actual))

    def _text(self, relation: MetamorphicRelation, place: Location) -> DifferenceText:
        left, right = map(self.runs.observation, (relation.left, relation.right))
        return difference_text(_unordered(self.runs.case), place, left, right)

    def _symptoms(self, relation: MetamorphicRelation) -> frozenset[str]:
        """Return the origins of findings that a repetition may confirm; none if the relation holds."""
        if self._lacks_settings(relation):
            return frozenset()
        comparison = self._comparison(relation)
        errors = (origin_of(error) for _, _, error in self._errors(relation, comparison))
        return frozenset((*errors, *((relation.name,) if _broken_at(relation, comparison) else ())))

    def _lacks_settings(self, relation: MetamorphicRelation) -> bool:
        """Return whether the arm lacks settings of the right variant, so that both variants may be the same run.

        Settings that the left variant lacks as well are modes of the case.
        """
        left, right = (set(self.runs.observation(variant).lacking) for variant in (relation.left, relation.right))
        return bool(right - left)

    def _verdict(self, relation: MetamorphicRelation, place: Location) -> Finding | Unstable:
        assert place.step is not None
        text = self._text(relation, place)
        unsteady = any(self._unsteady(variant, place) for variant in relation.variants)
        if unsteady or place not in _broken_at(relation, self._comparison(relation, repetition=1)):
            return Unstable(f"{relation.name}: not in each run", place.step, (text.expected, text.actual))
        evidence = self._all_evidence(relation, place.step)
        return Finding(
            oracle=self.oracle.name,
            arms=(self.runs.arm, self.runs.arm),
            origin=relation.name,
            step=place.step,
            summary=f"{text.summary}: {relation.name}",
            expected="\n".join([text.expected, *(f"query: {each.sql}" for each in evidence[:-1])]),
            actual=f"{text.actual}\nquery: {evidence[-1].sql}",
            evidence=evidence,
        )

    def _error_verdict(
        self, relation: MetamorphicRelation, step: int, variant: QueryVariant, error: Message
    ) -> Finding | Unstable:
        text, query = self._text(relation, Location(step, Aspect.OUTCOME)), self._sql(variant, step)
        again = self._impossible_error(variant, step, self.runs.observation(variant, repetition=1).steps[step])
        if again is None or again.sqlstate != error.sqlstate:
            return Unstable("an error that occurred once", step, (text.expected, text.actual))
        return Finding(
            oracle=self.oracle.name,
            arms=(self.runs.arm, self.runs.arm),
            origin=origin_of(error),
            step=step,
            summary=f"step {step}: a query that cannot fail ends in an error of SQLSTATE {error.sqlstate}",
            expected="no error, because no part of the query can raise one",
            actual=f"{error.severity}: {error.sqlstate}: {error.text}\nquery: {query}",
            evidence=self._all_evidence(relation, step),
        )

    def _all_evidence(self, relation: MetamorphicRelation, step: int) -> tuple[Evidence, ...]:
        return tuple(self._evidence(variant, step) for variant in relation.variants if variant != QueryVariant())

    def _unsteady(self, variant: QueryVariant, place: Location) -> bool:
        """Return whether a variant's rows differ from those of its repetition, or could not be compared with them."""
        once, again = self.runs.observation(variant), self.runs.observation(variant, repetition=1)
        compared = compare(_unordered(self.runs.case), self._modes(variant), once, again)
        return compared.differs_at(replace(place, aspect=Aspect.ROWS)) is not False

    def _evidence(self, variant: QueryVariant, step: int) -> Evidence:
        shown = (mode for mode in variant.modes if mode not in (SHORT_TIMEOUT, SIMPLE_PROTOCOL))
        settings = tuple(setting for mode in shown for setting in mode.settings)
        return Evidence(
            dict(variant.queries)[step], settings + variant.settings, simple_protocol=SIMPLE_PROTOCOL in variant.modes
        )


def _broken_at(relation: MetamorphicRelation, comparison: Comparison) -> list[Location]:
    """Return the places at which the variants of a relation return other rows."""
    return [place for place in comparison.places if place.step in relation.steps and place.aspect in _ROWS]


def _unordered(case: Case) -> Case:
    """Return the case without total orders, because rewritten queries have no ORDER BY."""
    scene, steps = (tuple(replace(step, ordered=False) for step in part) for part in (case.scene, case.steps))
    return replace(case, scene=scene, steps=steps)
