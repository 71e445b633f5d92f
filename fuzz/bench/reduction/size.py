"""Size of a case, by measures that suit all reducers and ignore a script's comments."""

from dataclasses import dataclass

from pglast import ast

from fuzz.triage.reduction.trees import parts_of
from oracles.model.case import Case
from oracles.model.mode import settings_of


@dataclass(frozen=True, slots=True)
class Size:
    """Statements, including settings; their characters, with data and parameters; nodes of their syntax trees.

    `alone` is the number of characters of the statement that shows the finding.
    """

    statements: int
    characters: int
    nodes: int
    alone: int


def size_of(case: Case, step: int | None) -> Size:
    """Return the size of a case. `step` is the step that shows the finding, if it is a single one."""
    statements = _statements(case)
    return Size(
        len(statements),
        characters_of(case),
        sum(map(_nodes, statements)),
        0 if step is None else len(case.all_steps[step].sql),
    )


def characters_of(case: Case) -> int:
    """Return the number of characters of a case's statements, with data and parameters."""
    data = sum(len(each.copy_data or b"") + sum(len(value or "") for value in each.params) for each in case.all_steps)
    return sum(map(len, _statements(case))) + data


def _statements(case: Case) -> list[str]:
    settings = [f"SET {name} = '{value}'" for name, value in settings_of(case.modes).items()]
    return [*settings, *(each.sql for each in case.all_steps)]


def _nodes(sql: str) -> int:
    """Count the nodes of a statement's syntax tree, plus one for the statement itself, even without a tree."""
    return 1 + sum(isinstance(part, ast.Node) for _, part in parts_of(sql))
