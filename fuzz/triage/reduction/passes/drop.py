"""Passes that remove parts of a case: statements, columns of tables, modes and their settings, queries, and tags."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from fuzz.triage.reduction.columns import mentioned, tables_of, without
from fuzz.triage.reduction.deltas import least, shortest
from fuzz.triage.reduction.problem import Problem, with_only
from oracles.model.case import Case, Kind
from oracles.model.mode import Mode


def drop_columns(problem: Problem) -> None:
    """Remove columns of tables in all statements: first names that no query uses, then single columns of each table."""
    start = problem.best
    used = mentioned(start)
    unused = [name for name in dict.fromkeys(chain(*tables_of(start).values())) if name not in used]
    shortest(
        unused, lambda kept: problem.is_interesting(without(start, lambda _, name: name in unused and name not in kept))
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
    """Remove modes and samples. Some samples repeat a case, so all later tests are cheaper without them."""
    start = problem.best
    items: tuple[Mode | str, ...] = (*start.modes, *start.samples)
    shortest(items, lambda kept: problem.is_interesting(_with_only(start, kept)))


def _with_only(case: Case, kept: Sequence[Mode | str]) -> Case:
    """Return the case with these of its modes and samples."""
    modes = tuple(each for each in kept if isinstance(each, Mode))
    return replace(case, modes=modes, samples=tuple(each for each in kept if isinstance(each, str)))


def drop_other_queries(problem: Problem) -> None:
    """Remove all steps after the last necessary one, then all queries before it at once.

    Queries change no data, and take most of a case's time.
    """
    start = problem.best
    steps = start.all_steps
    if not steps:
        return
    end = least(0, len(steps), lambda end: problem.is_interesting(with_only(start, range(end))))
    others = (index for index in range(end - 1) if steps[index].kind is not Kind.QUERY)
    problem.is_interesting(with_only(start, (*others, end - 1)))


PARTLY = " (partly)"  # suffix of the name of a mode without some of its settings


def drop_settings(problem: Problem) -> None:
    """Remove the protocol and single settings of modes."""
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
    """Return the case with one mode changed and marked in its name."""
    if mode != case.modes[position]:
        mode = replace(mode, name=mode.name.removesuffix(PARTLY) + PARTLY)
    return replace(case, modes=(*case.modes[:position], mode, *case.modes[position + 1 :]))


def drop_tags(problem: Problem) -> None:
    """Remove all tags at once, then all reports about rows.

    Tags were counted in the first run of the case, and a reproducer does not need them.
    """
    for dropped in ({"tags": ()}, {"same_rows": None}):
        case = problem.best
        scene, steps = (tuple(replace(step, **dropped) for step in part) for part in (case.scene, case.steps))
        problem.is_interesting(replace(case, scene=scene, steps=steps))


def drop_steps(problem: Problem) -> None:
    """Remove statements of the scene and of the steps."""
    start = problem.best
    shortest(range(len(start.all_steps)), lambda kept: problem.is_interesting(with_only(start, kept)))
