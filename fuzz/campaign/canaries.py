"""Canaries: bugs planted in one arm before a campaign, because a broken oracle looks like a server without bugs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from fuzz.errors import CanaryMissed
from fuzz.execution.judging import Assignment, JudgedCase, Observer, judge_case
from fuzz.servers.arm import Arm, session_defaults
from fuzz.servers.modules import FAULT_INJECTOR, ensure_module
from oracles.model.case import Case
from oracles.model.mode import Mode
from oracles.model.observation import CaseObservation, Run
from oracles.model.oracle import Canary, Oracle

TRIES: Final = 3  # a statement may reach its timeout on a busy machine; a broken oracle misses the canary in each try


class FaultyExecutor:
    """An executor that plants a bug in one arm. Its observations do not show that."""

    def __init__(self, executor: Observer, arm: str, fault: str) -> None:
        """`fault` is an action of the fault injector: NAME or NAME:RELATION."""
        self._executor = executor
        self._arm = arm
        self._fault = fault

    def observe(self, case: Case, runs: Sequence[Run]) -> Mapping[Run, CaseObservation]:
        """Execute each run, with the bug on one arm, and return the observations by the runs without it."""
        executed = {run: replace(run, fault=self._fault) if run.arm == self._arm else run for run in runs}
        observed = self._executor.observe(case, tuple(executed.values()))
        return {run: observed[as_executed] for run, as_executed in executed.items()}


def plant(oracle: Oracle, canary: Canary, executor: Observer, arms: Sequence[Arm]) -> JudgedCase:
    """Return the verdicts on a canary's case with its bug in the last arm. Raises BuildError, ServerError."""
    suspect = arms[-1]
    ensure_module(suspect.build, FAULT_INJECTOR)
    faulty = FaultyExecutor(executor, suspect.name, canary.fault)
    return judge_case(faulty, (Assignment(oracle, tuple(arm.name for arm in arms)),), canary.case)


def is_caught(judged: JudgedCase, arms: Sequence[Arm]) -> bool:
    """Return whether the bug was found on the arm that has it."""
    return any(finding.arms == (arms[0].name, arms[-1].name) for finding in judged.findings)


@dataclass(frozen=True, slots=True)
class PlantedBug:
    """A bug that was planted for an oracle; `caught_in` is the number of the try that found it, or None."""

    oracle: str
    fault: str
    caught_in: int | None


def plant_all(assigned: Sequence[Assignment], executor: Observer, arms: Sequence[Arm]) -> Iterator[PlantedBug]:
    """Plant each canary, several times if it is missed, and yield the results.

    Sessions undo the arms' own settings, because some keep an oracle from judging: `coddtest` needs exact output.
    """
    defaults = {name: value for arm in arms for name, value in session_defaults(arm).items()}
    undone = (Mode("settings_undone", tuple(defaults.items()), optional=True),) if defaults else ()
    for assignment in assigned:
        judged_arms = [arm for arm in arms if arm.name in assignment.arms]
        for each in assignment.oracle.canaries:
            canary = replace(each, case=replace(each.case, modes=(*undone, *each.case.modes)))
            if canary.needs_another_arm and len(judged_arms) == 1:
                continue
            tries = range(1, TRIES + 1)
            caught_in = (
                number
                for number in tries
                if is_caught(plant(assignment.oracle, canary, executor, judged_arms), judged_arms)
            )
            yield PlantedBug(assignment.oracle.name, canary.fault, next(caught_in, None))


def counts(outcomes: Sequence[PlantedBug]) -> dict[str, int]:
    """Return the numbers of canaries planted, caught, and caught only in a later try."""
    return {
        "planted": len(outcomes),
        "caught": sum(each.caught_in is not None for each in outcomes),
        "retried": sum(each.caught_in not in (None, 1) for each in outcomes),
    }


def require_caught(outcomes: Sequence[PlantedBug]) -> None:
    """Raise CanaryMissed, with oracles and bugs, unless all were caught."""
    missed = [f"{planted.oracle} ({planted.fault})" for planted in outcomes if planted.caught_in is None]
    if missed:
        raise CanaryMissed(
            f"canaries missed by {', '.join(missed)}: do not trust any result until the oracles find them"
        )
