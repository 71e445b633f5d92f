"""Trial: one case before all oracles. What they ask for is executed, once each, until none asks for more."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from fuzz.campaign.seats import Seat
from fuzz.execution.loop import Abandoned
from oracles.case import Case
from oracles.finding import Finding
from oracles.majority import with_votes
from oracles.observation import CaseObservation, Run
from oracles.oracle import Agree, More, Observations, Verdict


class Observer(Protocol):
    """Whatever executes runs: a Stage, or one that plants bugs."""

    def observe(self, case: Case, runs: Sequence[Run]) -> Mapping[Run, CaseObservation]:
        """Execute each run and return what was observed. Raises ServerError, Abandoned."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The verdicts on a case, as pairs of an oracle's name and a verdict, and all that they rest on."""

    verdicts: tuple[tuple[str, Verdict], ...]
    observations: Mapping[Run, CaseObservation]
    complete: bool = True  # False: it was abandoned, or enough; verdicts are those that were certain by then
    symptoms: frozenset[str] = frozenset()  # of findings that nothing spoke against when that was enough

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return the findings among the verdicts."""
        return tuple(verdict for _, verdict in self.verdicts if isinstance(verdict, Finding))

    @property
    def statements(self) -> int:
        """Return how many statements were really compared: by the oracle that compared most, since all see the same."""
        compared = {name: 0 for name, _ in self.verdicts}
        for name, verdict in self.verdicts:
            if isinstance(verdict, Agree):
                compared[name] += verdict.statements
        return max(compared.values(), default=0)


def try_case(
    stage: Observer, seats: Sequence[Seat], case: Case, known: Observations | None = None, enough: str | None = None
) -> Trial:
    """Try a case before the oracles, each of which judges the arms of its seat. Raises ServerError.

    What is `known` of it by now is not observed again. A symptom that is `enough` ends it, whatever may yet speak
    against it.
    All oracles judge anew in each round, so that each has seen every run in the end: a crash in a run that another
    oracle asked for is seen too.
    """
    observations = dict(known or {})
    judged: list[tuple[Verdict, ...] | More] = []
    symptoms: frozenset[str] = frozenset()
    wanted = [run for run in dict.fromkeys(_first_runs(seats, case)) if run not in observations]
    while wanted:
        try:
            observations |= stage.observe(case, wanted)
        except Abandoned:
            break
        judged = [seat.oracle.judge(case, seat.arms, observations) for seat in seats]
        symptoms = frozenset().union(*(given.symptoms for given in judged if isinstance(given, More)))
        if enough in symptoms:
            break
        wanted = _unobserved(seats, judged, observations)
    verdicts = (
        (seat.oracle.name, verdict)
        for seat, given in zip(seats, judged, strict=False)  # nothing was judged where the first runs were abandoned
        if not isinstance(given, More)
        for verdict in with_votes(given, seat.arms)
    )
    return Trial(tuple(verdicts), observations, complete=not wanted, symptoms=symptoms)


def _first_runs(seats: Sequence[Seat], case: Case) -> Iterator[Run]:
    return (run for seat in seats for run in seat.oracle.runs(case, seat.arms))


def _unobserved(
    seats: Sequence[Seat], judged: Sequence[tuple[Verdict, ...] | More], observations: Mapping[Run, CaseObservation]
) -> list[Run]:
    """Return the runs asked for. An oracle that asks for what it has would go on asking for ever."""
    wanted: dict[Run, None] = {}
    for seat, given in zip(seats, judged, strict=True):
        if isinstance(given, More):
            missing = [run for run in given.runs if run not in observations]
            if not missing:
                raise ValueError(f"oracle {seat.oracle.name} asks for runs that it was given")
            wanted |= dict.fromkeys(missing)
    return list(wanted)
