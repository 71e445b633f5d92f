"""Metamorphic joins: an arm must agree with itself on queries that mean the same, so no other arm is needed.

An outer join is a smaller join and the rows without a match; one side is its rows that have a match, and those that
have none; and a Bloom filter changes no row (where the arm has such a filter: others lack its setting, which is not
taken for agreement). A share of cases is judged. Each run plays the whole case, since what a query reads is what the
statements before it left; queries of no interest are left empty, which changes nothing that follows.

What differs must differ again, and either side agree with its own repetition: what is volatile behind a view's back
does not.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from oracles.canary_case import canary_case, query
from oracles.case import Case, Kind
from oracles.comparison import Aspect, Comparison, Place, compare
from oracles.finding import Beside, Finding, as_all_do, pairs_of
from oracles.join_rewriting import rewritten
from oracles.mode import Mode
from oracles.observation import CaseObservation, Outcome, Run
from oracles.oracle import Agree, Canary, Inconclusive, More, Observations, Oracle, Unstable, Verdict
from oracles.sampling import REWRITTEN
from oracles.wording import worded

AGAIN: Final = Mode("again 1")
# Looking up matches that no index or hash table finds may take long.
_BRIEFLY: Final = Mode("briefly", (("statement_timeout", "1500ms"),))
WITHOUT_FILTER: Final = Mode("without Bloom filters", (("enable_hashjoin_bloom", "off"),), optional=True)
_NOTHING: Final = "SELECT"
_ROWS: Final = (Aspect.ROWS, Aspect.ROW_COUNT)


@dataclass(frozen=True, slots=True)
class Way:
    """One side of a claim: queries by position, and the modes that they run in besides the case's own."""

    queries: tuple[tuple[int, str], ...] = ()  # none: the case as it is
    modes: tuple[Mode, ...] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """That rows of two ways are the same at these steps of an arm."""

    name: str
    steps: frozenset[int]
    left: Way
    right: Way


class MetamorphicJoins(Oracle):
    """The same question asked in another way has the same answer."""

    name: ClassVar[str] = "metamorphic_joins"
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary(
            "lose_unmatched",
            canary_case(
                query("SELECT canary.n, nest.name FROM canary LEFT JOIN nest ON canary.n = nest.n"),
                modes=(REWRITTEN.mode,),
            ),
        ),
        Canary(
            "lose_appended",
            canary_case(
                query("SELECT n FROM canary WHERE EXISTS (SELECT 1 FROM flock WHERE flock.n = canary.n + 1)"),
                modes=(REWRITTEN.mode,),
            ),
        ),
    )

    def judge(self, case: Case, arms: Sequence[str], observations: Observations) -> tuple[Verdict, ...] | More:
        """Return a finding for each claim that does not hold on an arm; ask for the runs that it takes to tell."""
        if case not in REWRITTEN:
            return (Agree(0),) * len(arms[1:])
        judges = [_Judge(case, arm, observations) for arm in arms]
        if missing := [run for judge in judges for run in judge.missing()]:
            return More(tuple(dict.fromkeys(missing)))
        broken: dict[str, dict[str, Finding]] = defaultdict(dict)  # claim -> arm -> example
        others: list[Verdict] = []
        for judge in judges:
            for verdict in judge.verdicts():
                if isinstance(verdict, Finding):
                    broken[verdict.origin].setdefault(judge.arm, verdict)
                elif judge.arm != arms[0]:
                    others.append(verdict)
        return (*_blamed(arms, broken), *others)


def _blamed(arms: Sequence[str], broken: dict[str, dict[str, Finding]]) -> Iterator[Finding]:
    for examples in broken.values():
        for pair in pairs_of(arms, examples):
            example = examples[pair[1]]
            yield replace(example, arms=pair, summary=example.summary + as_all_do(pair))


@dataclass(frozen=True, slots=True)
class _Judge:
    """A case on one arm."""

    case: Case
    arm: str
    observations: Observations

    def missing(self) -> list[Run]:
        """Return the runs that it takes to go on: those of the claims, and repetitions where one does not hold."""
        runs = [self._run(way) for claim in self._claims() for way in (claim.left, claim.right)]
        if not any(run not in self.observations for run in runs):
            runs = [self._run(way, AGAIN) for claim in self._claims() for way in self._doubtful(claim)]
        return [run for run in runs if run not in self.observations]

    def verdicts(self) -> Iterator[Verdict]:
        """Yield what is to be said of each claim, and how many statements were judged; needs all runs."""
        compared: set[int] = set()
        for claim in self._claims():
            if self._seen(claim.right).lacking:
                continue
            comparison = self._compared(claim)
            compared |= comparison.compared & claim.steps
            unclear = claim.steps - comparison.compared
            failed = [place for place in comparison.places if place.step in claim.steps and place.aspect not in _ROWS]
            if unclear or any(place.aspect is Aspect.OUTCOME for place in failed):
                yield Inconclusive(f"{claim.name}: one side did not come to its end")
            yield from (self._settled(claim, place) for place in self._broken_at(claim))
        yield Agree(len(compared))

    def _claims(self) -> Iterator[Claim]:
        queries = self._queries()
        made = {position: rewritten(sql) for position, sql in queries.items()}
        plain = {position for position in queries if not self.case.all_steps[position].params}
        parts = {position: each.parts for position, each in made.items() if each.parts}
        sides = {position: each for position, each in made.items() if each.whole and position in plain}
        joins = {position: sql for position, sql in queries.items() if "JOIN" in sql.upper() or made[position]}
        if parts:
            yield Claim("outer join is not its parts", frozenset(parts), Way(), self._way(parts))
        if sides:
            whole = self._way({position: each.whole for position, each in sides.items()})
            halves = self._way({position: each.halves for position, each in sides.items()})
            yield Claim("side of a join is not its halves", frozenset(sides), whole, halves)
        if joins:
            yield Claim("Bloom filter changes rows", frozenset(joins), Way(), self._way(joins, WITHOUT_FILTER))

    def _queries(self) -> dict[int, str]:
        """Return the queries that succeed, by position: one that fails may end a transaction, so it stays."""
        steps = zip(self.case.all_steps, self._seen(Way()).steps, strict=True)
        return {
            position: step.sql
            for position, (step, seen) in enumerate(steps)
            if step.kind is Kind.QUERY and seen.outcome is Outcome.OK
        }

    def _way(self, queries: dict[int, str], mode: Mode = _BRIEFLY) -> Way:
        """Return the way that runs these queries, and no other that could be left out."""
        empty = {position: _NOTHING for position in self._queries() if not self.case.all_steps[position].params}
        return Way(tuple(sorted((empty | queries).items())), (mode,))

    def _run(self, way: Way, *more: Mode) -> Run:
        return Run(self.arm, (*self.case.modes, *way.modes, *more), instead=way.queries)

    def _seen(self, way: Way, *more: Mode) -> CaseObservation:
        return self.observations[self._run(way, *more)]

    def _compared(self, claim: Claim, *more: Mode) -> Comparison:
        return compare(
            _unordered(self.case), self.case.modes, self._seen(claim.left, *more), self._seen(claim.right, *more)
        )

    def _broken_at(self, claim: Claim, *more: Mode) -> list[Place]:
        places = self._compared(claim, *more).places
        return [place for place in places if place.step in claim.steps and place.aspect in _ROWS]

    def _doubtful(self, claim: Claim) -> tuple[Way, ...]:
        """Return both ways of a claim that does not hold."""
        unknown = self._seen(claim.right).lacking
        return () if unknown or not self._broken_at(claim) else (claim.left, claim.right)

    def _settled(self, claim: Claim, place: Place) -> Finding | Unstable:
        ways = (claim.left, claim.right)
        if place not in self._broken_at(claim, AGAIN) or any(self._unsteady(way, place) for way in ways):
            return Unstable(f"{claim.name}: not in each run")
        assert place.step is not None
        said = worded(_unordered(self.case), place, *map(self._seen, ways))
        beside = tuple(self._beside(way, place.step) for way in ways if way.queries)
        return Finding(
            oracle=MetamorphicJoins.name,
            arms=(self.arm, self.arm),
            origin=claim.name,
            step=place.step,
            summary=f"{said.summary}: {claim.name}",
            expected="\n".join([said.expected, *(f"query: {each.sql}" for each in beside[:-1])]),
            actual=f"{said.actual}\nquery: {beside[-1].sql}",
            beside=beside,
        )

    def _unsteady(self, way: Way, place: Place) -> bool:
        once, again = self._seen(way), self._seen(way, AGAIN)
        return compare(_unordered(self.case), self.case.modes, once, again).differs_at(place) is not False

    def _beside(self, way: Way, step: int) -> Beside:
        settings = tuple(setting for mode in way.modes if mode is not _BRIEFLY for setting in mode.settings)
        return Beside(dict(way.queries)[step], settings)


def _unordered(case: Case) -> Case:
    """Return the case for comparing multisets of rows: queries are rewritten without ORDER BY."""
    scene, steps = (tuple(replace(step, ordered=False) for step in part) for part in (case.scene, case.steps))
    return replace(case, scene=scene, steps=steps)
