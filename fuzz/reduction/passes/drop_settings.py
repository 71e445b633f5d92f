"""Leave out the protocol and the single settings of modes that stay."""

from dataclasses import replace

from fuzz.reduction.deltas import shortest
from fuzz.reduction.problem import Problem
from oracles.case import Case
from oracles.mode import Mode

PARTLY = " (partly)"  # what a mode is called after it lost a setting


def drop_settings(problem: Problem) -> None:
    """Find the settings that matter."""
    for position in range(len(problem.best.modes)):
        _drop_protocol(problem, position)
        _drop_settings(problem, position)


def _drop_protocol(problem: Problem, position: int) -> None:
    mode = problem.best.modes[position]
    if mode.protocol is not None:
        problem.is_interesting(_changed(problem.best, position, replace(mode, protocol=None, changes_results=False)))


def _drop_settings(problem: Problem, position: int) -> None:
    start = problem.best
    mode = start.modes[position]
    shortest(
        mode.settings,
        lambda kept: problem.is_interesting(_changed(start, position, replace(mode, settings=kept))),
    )


def _changed(case: Case, position: int, mode: Mode) -> Case:
    """Return the case with one mode changed, and say so in the mode's name."""
    if mode != case.modes[position]:
        mode = replace(mode, name=mode.name.removesuffix(PARTLY) + PARTLY)
    return replace(case, modes=(*case.modes[:position], mode, *case.modes[position + 1 :]))
