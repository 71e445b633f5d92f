"""Leave out statements, of the scene and of the steps alike.

Leave out columns of tables, in all statements that list them at once.

Leave out whole modes.

Leave out all queries but one: they change nothing, and are what a case takes most of its time for.

Leave out the protocol and the single settings of modes that stay.

Leave out the names of workload paths: they were counted when the case ran first, and only clutter a reproducer.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from fuzz.triage.reduction.columns import mentioned, tables_of, without
from fuzz.triage.reduction.deltas import least, shortest
from fuzz.triage.reduction.problem import Problem
from fuzz.triage.reduction.statement import with_only
from oracles.model.case import Case, Kind
from oracles.model.mode import Mode


def drop_columns(problem: Problem) -> None:
    """Find the columns that matter: names that nothing else refers to, then those of each table."""
    start = problem.best
    used = mentioned(start)
    loose = [name for name in dict.fromkeys(chain(*tables_of(start).values())) if name not in used]
    shortest(
        loose, lambda kept: problem.is_interesting(without(start, lambda _, name: name in loose and name not in kept))
    )
    left = problem.best
    columns = [(table, name) for table, names in tables_of(left).items() for name in names]
    shortest(
        columns,
        lambda kept: problem.is_interesting(
            without(left, lambda table, name: (table, name) in columns and (table, name) not in kept)
        ),
    )


def drop_modes(problem: Problem) -> None:
    """Find the modes and samples that matter. Some samples repeat a case: without them, all questions are cheaper."""
    start = problem.best
    items: tuple[Mode | str, ...] = (*start.modes, *start.samples)
    shortest(items, lambda kept: problem.is_interesting(_with_only(start, kept)))


def _with_only(case: Case, kept: Sequence[Mode | str]) -> Case:
    """Return the case with these of its modes and samples."""
    modes = tuple(each for each in kept if isinstance(each, Mode))
    return replace(case, modes=modes, samples=tuple(each for each in kept if isinstance(each, str)))


def drop_other_queries(problem: Problem) -> None:
    """Find where the case may end, and guess that what is there shows it without the queries before."""
    start = problem.best
    steps = start.all_steps
    if not steps:
        return
    end = least(0, len(steps), lambda end: problem.is_interesting(with_only(start, range(end))))
    others = (index for index in range(end - 1) if steps[index].kind is not Kind.QUERY)
    problem.is_interesting(with_only(start, (*others, end - 1)))


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


def drop_tags(problem: Problem) -> None:
    """Drop all tags at once, then all reports about rows."""
    for dropped in ({"tags": ()}, {"same_rows": None}):
        case = problem.best
        scene, steps = (tuple(replace(step, **dropped) for step in part) for part in (case.scene, case.steps))
        problem.is_interesting(replace(case, scene=scene, steps=steps))


def drop_steps(problem: Problem) -> None:
    """Find a part of the statements of which none can be left out."""
    start = problem.best
    shortest(range(len(start.all_steps)), lambda kept: problem.is_interesting(with_only(start, kept)))
