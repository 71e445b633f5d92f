"""How large a case is, by measures that are alike for all reducers, whatever they leave of a script's comments."""

from dataclasses import dataclass

from pglast import ast

from fuzz.triage.reduction.trees import parts_of
from oracles.model.case import Case
from oracles.model.mode import settings_of


@dataclass(frozen=True, slots=True)
class Size:
    """Statements, settings included; their characters, with data and parameters; and nodes of their syntax trees.

    `alone` is the number of characters of the statement that shows the finding.
    """

    statements: int
    characters: int
    nodes: int
    alone: int


def size_of(case: Case, step: int | None) -> Size:
    """Return the size of a case of which this step, if it is one, shows the finding."""
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
    """Count the nodes of a statement's syntax tree, and one that is the statement, whether it has a tree or not."""
    return 1 + sum(isinstance(part, ast.Node) for _, part in parts_of(sql))
