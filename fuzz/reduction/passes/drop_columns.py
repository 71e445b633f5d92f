"""Leave out columns of tables, in all statements that list them at once."""

from itertools import chain

from fuzz.reduction.columns import mentioned, tables_of, without
from fuzz.reduction.deltas import shortest
from fuzz.reduction.problem import Problem


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
