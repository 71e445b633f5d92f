"""The examples of a property test: counters over all of them, and whether they prove enough."""

from typing import Final

from fuzz.campaign.counters import Counters, failed_checks
from fuzz.execution.judging import JudgedCase
from oracles.explain.nodes import plan_shape, plans
from oracles.model.case import Case
from oracles.model.observation import Run
from oracles.result import Result

ARMS: Final = ("master", "patched")
_NO_CANARIES: Final = {"planted": 0, "retried": 0}


def explained_run(case: Case) -> Run:
    """Return the run whose plan shapes are counted."""
    return Run(ARMS[1], case.modes, explain=True)


def count(counters: Counters, case: Case, judged: JudgedCase) -> int:
    """Count an example, and return the number of its plan shapes that no earlier one had."""
    known = len(counters.shapes)
    counters.count_steps(case.generator, case, judged.observations[Run(ARMS[0], case.modes)])
    counters.count_verdicts(case.generator, judged)
    for _, plan in plans(judged.observations[explained_run(case)]):
        counters.count_plan(case.generator, plan_shape(plan))
    return len(counters.shapes) - known


def missing_proof(counters: Counters) -> tuple[str, ...]:
    """Return the reasons why the counted examples prove too little, one line each.

    They are the failed health checks of a campaign with these cases. In addition, `result` must have agreed once:
    `crash`, for example, also agrees on cases whose rows could not be compared.
    """
    agreed = {oracle for oracle, _, kind in counters.verdicts if kind == "agree"}
    never = () if Result.name in agreed else (f"{Result.name} agreed on no example",)
    return (*never, *failed_checks(counters, _NO_CANARIES))
