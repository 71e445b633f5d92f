"""Shared scenes: runs of a case that differ only in replaced queries are executed as one run.

An oracle may request several variants of a query, each in a run of its own. Creating the same tables for each run would
take most of the time. So one run executes all variants of each query, one after another. Queries only read, so variants
do not affect each other, unless one aborts their transaction or ends the session.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from oracles.model.case import Case, Kind, Step
from oracles.model.observation import CaseObservation, Outcome, Run

_IDLE = "I"  # transaction status outside of transactions
_CUT = (Outcome.LOST, Outcome.SKIPPED)


@dataclass(frozen=True, slots=True)
class SharedRun:
    """A case with all variants of its queries, the run that executes it, and the positions of each run's steps."""

    case: Case
    run: Run
    places: tuple[tuple[Run, tuple[int, ...]], ...]

    def parts(self, seen: CaseObservation) -> dict[Run, CaseObservation] | None:
        """Return the observation of each run, or None if a variant may have affected another."""
        if seen.crash is not None or any(step.outcome in _CUT for step in seen.steps) or self._disturbed(seen):
            return None
        return {run: replace(seen, steps=tuple(seen.steps[place] for place in places)) for run, places in self.places}

    def _disturbed(self, seen: CaseObservation) -> bool:
        """Return whether a query with several variants changed the transaction status of the session."""
        status = [_IDLE, *(step.transaction for step in seen.steps)]
        variants = [set(places) for places in zip(*(places for _, places in self.places), strict=True)]
        return any(status[place] != status[place + 1] for places in variants if len(places) > 1 for place in places)


def shared_run(case: Case, runs: Sequence[Run]) -> SharedRun:
    """Return the shared run for one of the `groups`."""
    replacements = {run: dict(run.instead) for run in runs}
    steps: list[Step] = []
    places: dict[Run, list[int]] = defaultdict(list)
    for position, step in enumerate(case.all_steps):
        variants: dict[str, int] = {}
        for run in runs:
            sql = replacements[run].get(position, step.sql)
            if sql not in variants:
                variants[sql] = len(steps)
                steps.append(replace(step, sql=sql))
            places[run].append(variants[sql])
    found = tuple((run, tuple(where)) for run, where in places.items())
    return SharedRun(replace(case, scene=(), steps=tuple(steps)), replace(runs[0], instead=()), found)


def groups(case: Case, runs: Sequence[Run]) -> list[list[Run]]:
    """Return the runs in order, grouped by whether they may share a scene."""
    found: dict[Run, list[Run]] = defaultdict(list)
    for run in runs:
        found[replace(run, instead=()) if _may_share(case, run) else run].append(run)
    return list(found.values())


def _may_share(case: Case, run: Run) -> bool:
    """Return whether a run replaces queries only, and is not measured as a whole."""
    steps = case.all_steps
    queries = all(steps[position].kind is Kind.QUERY for position, _ in run.instead)
    return run.repeats == 1 and not run.explain and run.plannings < 2 and queries
