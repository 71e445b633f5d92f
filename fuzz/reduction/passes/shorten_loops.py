"""Have loops of PL/pgSQL go around less often: DO makes most partitions, and a scene's time goes to them."""

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from fuzz.reduction.deltas import least_from_below
from fuzz.reduction.problem import Problem
from fuzz.reduction.steps import with_step
from oracles.case import Case

_LOOP = re.compile(r"\bIN (\d+)\.\.(\d+) LOOP\b", re.IGNORECASE)


def shorten_loops(problem: Problem) -> None:
    """Find how often they have to, as far as that is written in numbers: as if that were one for all, then each."""
    _shorten(problem, range(len(problem.best.all_steps)))
    for position in range(len(problem.best.all_steps)):
        _shorten(problem, [position])


def _shorten(problem: Problem, positions: Iterable[int]) -> None:
    start = problem.best
    longest = max((_times(loop) for at in positions for loop in _LOOP.finditer(start.all_steps[at].sql)), default=0)
    least_from_below(-1, longest, lambda times: problem.is_interesting(_with_at_most(start, positions, times)))


def _times(loop: re.Match[str]) -> int:
    return int(loop[2]) - int(loop[1]) + 1


def _with_at_most(case: Case, positions: Iterable[int], times: int) -> Case:
    for position in positions:
        step = case.all_steps[position]
        case = with_step(case, position, replace(step, sql=_LOOP.sub(partial(_shortened, times), step.sql)))
    return case


def _shortened(times: int, loop: re.Match[str]) -> str:
    return f"IN {loop[1]}..{int(loop[1]) - 1 + min(times, _times(loop))} LOOP"
