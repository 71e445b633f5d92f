"""Joint play: runs of a case that differ only in what they ask in the place of its queries share one scene.

Oracles that ask a query in several ways want a run for each, and to make the same tables for all of them would take
most of the time. So each query is played in all ways, one after another, as if the case were written like that. They
read only, so the one does not see the other, unless it aborts the transaction that both are in, or the session ends.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from oracles.model.case import Case, Kind, Step
from oracles.model.observation import CaseObservation, Outcome, Run

_IDLE = "I"  # status of a session outside of transactions
_CUT = (Outcome.LOST, Outcome.SKIPPED)


@dataclass(frozen=True, slots=True)
class Joint:
    """A case with its queries in several ways, the run that plays it, and where the steps of each run are in it."""

    case: Case
    run: Run
    places: tuple[tuple[Run, tuple[int, ...]], ...]

    def parts(self, seen: CaseObservation) -> dict[Run, CaseObservation] | None:
        """Return what was observed of each run; None where one may have stood in another's way."""
        if seen.crash is not None or any(step.outcome in _CUT for step in seen.steps) or self._disturbed(seen):
            return None
        return {run: replace(seen, steps=tuple(seen.steps[place] for place in places)) for run, places in self.places}

    def _disturbed(self, seen: CaseObservation) -> bool:
        """Tell whether a query that has several ways left the session in another state than it was in."""
        status = [_IDLE, *(step.transaction for step in seen.steps)]
        ways = [set(places) for places in zip(*(places for _, places in self.places), strict=True)]
        return any(status[place] != status[place + 1] for places in ways if len(places) > 1 for place in places)


def joint(case: Case, runs: Sequence[Run]) -> Joint:
    """Return how to play these runs, which `alike` put together, in one."""
    asked = {run: dict(run.instead) for run in runs}
    steps: list[Step] = []
    places: dict[Run, list[int]] = defaultdict(list)
    for position, step in enumerate(case.all_steps):
        ways: dict[str, int] = {}
        for run in runs:
            sql = asked[run].get(position, step.sql)
            if sql not in ways:
                ways[sql] = len(steps)
                steps.append(replace(step, sql=sql))
            places[run].append(ways[sql])
    found = tuple((run, tuple(where)) for run, where in places.items())
    return Joint(replace(case, scene=(), steps=tuple(steps)), replace(runs[0], instead=()), found)


def alike(case: Case, runs: Sequence[Run]) -> list[list[Run]]:
    """Return the runs, in order, with those together that may be played in one."""
    together: dict[Run, list[Run]] = defaultdict(list)
    for run in runs:
        together[replace(run, instead=()) if _may_join(case, run) else run].append(run)
    return list(together.values())


def _may_join(case: Case, run: Run) -> bool:
    """Tell whether nothing is measured of the run as a whole, and it asks for other queries only."""
    steps = case.all_steps
    queries = all(steps[position].kind is Kind.QUERY for position, _ in run.instead)
    return run.repeats == 1 and not run.explain and run.plannings < 2 and queries
