"""Canaries: bugs planted in one arm before a run, since an oracle gone blind looks like a server without bugs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from fuzz.errors import CanaryMissed
from fuzz.execution.judging import Assignment, JudgedCase, Observer, judge_case
from fuzz.servers.arm import Arm
from fuzz.servers.modules import FAULT_INJECTOR, ensure_module
from oracles.model.case import Case
from oracles.model.observation import CaseObservation, Run
from oracles.model.oracle import Canary, Oracle

TRIES: Final = 3  # on a busy machine a statement may meet its time limit; who is blind notices nothing in any


class Sabotaged:
    """An executor on which one arm misbehaves; nobody who looks at the observations is told."""

    def __init__(self, executor: Observer, arm: str, sabotage: str) -> None:
        """`sabotage` is an action of the fault injector: NAME or NAME:RELATION."""
        self._executor = executor
        self._arm = arm
        self._sabotage = sabotage

    def observe(self, case: Case, runs: Sequence[Run]) -> Mapping[Run, CaseObservation]:
        """Execute each run, those on the arm under sabotage, and return observations as if of plain runs."""
        executed = {run: replace(run, sabotage=self._sabotage) if run.arm == self._arm else run for run in runs}
        observed = self._executor.observe(case, tuple(executed.values()))
        return {run: observed[as_executed] for run, as_executed in executed.items()}


def plant(oracle: Oracle, canary: Canary, executor: Observer, arms: Sequence[Arm]) -> JudgedCase:
    """Try a canary's case with its bug planted in the last arm. Raises BuildError, ServerError."""
    suspect = arms[-1]
    ensure_module(suspect.build, FAULT_INJECTOR)
    sabotaged = Sabotaged(executor, suspect.name, canary.sabotage)
    return judge_case(sabotaged, (Assignment(oracle, tuple(arm.name for arm in arms)),), canary.case)


def is_caught(judged: JudgedCase, arms: Sequence[Arm]) -> bool:
    """Tell whether the bug was found, and blamed on the arm that it was planted in."""
    return any(finding.arms == (arms[0].name, arms[-1].name) for finding in judged.findings)


@dataclass(frozen=True, slots=True)
class Planted:
    """A bug that was planted for an oracle; `caught_in` is the number of the try that caught it, None if none did."""

    oracle: str
    sabotage: str
    caught_in: int | None


def plant_all(assigned: Sequence[Assignment], executor: Observer, arms: Sequence[Arm]) -> Iterator[Planted]:
    """Plant every canary, again where it is not caught at once; yield what came of each."""
    for assignment in assigned:
        judged_arms = [arm for arm in arms if arm.name in assignment.arms]
        for canary in assignment.oracle.canaries:
            if canary.needs_another_arm and len(judged_arms) == 1:
                continue
            tries = range(1, TRIES + 1)
            caught_in = (
                each
                for each in tries
                if is_caught(plant(assignment.oracle, canary, executor, judged_arms), judged_arms)
            )
            yield Planted(assignment.oracle.name, canary.sabotage, next(caught_in, None))


def counts(outcomes: Sequence[Planted]) -> dict[str, int]:
    """Return how many were planted, caught, and caught only when planted again."""
    return {
        "planted": len(outcomes),
        "caught": sum(each.caught_in is not None for each in outcomes),
        "retried": sum(each.caught_in not in (None, 1) for each in outcomes),
    }


def require_caught(outcomes: Sequence[Planted]) -> None:
    """Raise CanaryMissed, naming oracle and sabotage, unless all were caught."""
    missed = [f"{planted.oracle} ({planted.sabotage})" for planted in outcomes if planted.caught_in is None]
    if missed:
        raise CanaryMissed(
            f"planted bugs were not noticed by {', '.join(missed)}: trust no result until this is mended"
        )
