"""Different data on two sides, and the statements of a case that cannot depend on them.

A statement is independent only if its syntax tree proves it. It names only tables of the case, and views of these,
whose data are equal. It calls only listed functions. Partitions and children count as their parents. Triggers, rules,
functions of the case, foreign keys and shared sequences make dependence indirect: in cases that may have any of these,
every statement counts as dependent.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from pglast import ast
from pglast.enums import AlterTableType

from oracles.model.case import Kind, Step
from oracles.model.observation import Observation
from oracles.sql.building import trees
from oracles.sql.determinism import DETERMINED, is_known, name_of
from oracles.sql.names import names_in
from oracles.sql.reading import Reader

CACHED: Final = 64  # cases
_INDIRECT: Final = re.compile(
    r"CREATE\s+CAST|\b(AGGREGATE|DEFERR\w+|DOMAIN|FOREIGN|FUNCTION|NEXTVAL|OPERATOR|POLICY|PROCEDURE|REFERENCES|RENAME"
    r"|RULE|SEQUENCE|TRIGGER)\b|\bDO\b.*\b(ATTACH|INHERIT)\b|\bINCLUDING\s+(ALL|DEFAULTS)\b",
    re.IGNORECASE | re.DOTALL,
)
_CHANGES: Final = (ast.DeleteStmt, ast.InsertStmt, ast.MergeStmt, ast.UpdateStmt)
_WITHOUT_DATA: Final = (ast.TransactionStmt, ast.VariableSetStmt)


@dataclass(slots=True)
class DifferentData:
    """The tables that may hold different data on two sides, after statements with different effects."""

    steps: tuple[Step, ...]
    names: set[str] = field(default_factory=set)  # of topmost parents

    def add(self, step: Step, ours: Observation, theirs: Observation) -> bool:
        """Add the tables that a statement with different effects writes; return False if it may have other effects."""
        tables = _tables_of(self.steps)
        written = None if tables is None or ours.transaction != theirs.transaction else _written(step)
        if tables is None or not ours.transaction or written is None or not written <= tables.parents.keys():
            return False
        self.names |= {tables.family(name) for name in written}
        return True

    def reach(self, step: Step) -> bool:
        """Return whether a statement may depend on the different data."""
        tables = _tables_of(self.steps)
        named = None if tables is None else _named(step)
        if tables is None or named is None:
            return True
        families = tables.families(named)
        return families is None or not families.isdisjoint(self.names)


class _Tables(Reader):
    """The tables of a case by name, each with the name of its parent, and the names that its views use."""

    def __init__(self) -> None:
        super().__init__()
        self.parents: dict[str, str] = {}  # the topmost table has itself
        self._views: dict[str, set[str]] = {}

    def family(self, name: str) -> str:
        """Return the topmost parent of a table."""
        while self.parents[name] != name:
            name = self.parents[name]
        return name

    def families(self, names: frozenset[str]) -> set[str] | None:
        """Return the topmost parents of all tables that relations of these names read; None if one is unknown."""
        pending, found = set(names), set()
        while pending:
            name = pending.pop()
            if name in found:
                continue
            found.add(name)
            if name not in self.parents and name not in self._views:
                return None
            pending |= self._views.get(name, set())
        return {self.family(name) for name in found & self.parents.keys()}

    def _join(self, one: str, other: str) -> None:
        for name in (one, other):
            self.parents.setdefault(name, name)
        self.parents[self.family(one)] = self.family(other)

    def visit_CreateStmt(self, _ancestors: Any, node: Any) -> None:
        name = node.relation.relname
        self.parents.setdefault(name, name)
        for parent in node.inhRelations or ():
            self._join(name, parent.relname)

    def visit_AlterTableStmt(self, _ancestors: Any, node: Any) -> None:
        for each in node.cmds:
            if each.subtype == AlterTableType.AT_AttachPartition:
                self._join(each.def_.name.relname, node.relation.relname)
            elif each.subtype == AlterTableType.AT_AddInherit:
                self._join(node.relation.relname, each.def_.relname)

    def visit_ViewStmt(self, _ancestors: Any, node: Any) -> None:
        self._views.setdefault(node.view.relname, set()).update(_relations(node.query))


@lru_cache(CACHED)
def _tables_of(steps: tuple[Step, ...]) -> _Tables | None:
    """Return the tables of a case; None if a statement may have indirect effects."""
    tables = _Tables()
    for step in steps:
        if step.kind is Kind.QUERY:
            continue
        if not trees(step.sql) or _INDIRECT.search(step.sql):
            return None
        for each in trees(step.sql):
            tables(each.stmt)
    return tables


def _written(step: Step) -> frozenset[str] | None:
    """Return the table that a statement changes, if it has no other effect; None for other statements."""
    statement = _only(step)
    if step.kind is Kind.QUERY or isinstance(statement, ast.VacuumStmt):
        return frozenset()
    target = getattr(statement, "relation", None)
    copies = isinstance(statement, ast.CopyStmt) and statement.is_from
    if target is None or not (copies or isinstance(statement, _CHANGES)) or _common_changes(statement):
        return None
    return frozenset({target.relname})


def _named(step: Step) -> frozenset[str] | None:
    """Return the relations that a statement names; None if it may depend on anything else."""
    statement = _only(step)
    if isinstance(statement, _WITHOUT_DATA):
        return frozenset()
    if isinstance(statement, ast.SelectStmt):
        return frozenset(_relations(statement)) if step.kind is Kind.QUERY and is_known(step.sql) else None
    if isinstance(statement, ast.VacuumStmt):
        return frozenset(_relations(statement)) or None
    if not isinstance(statement, (ast.CopyStmt, *_CHANGES)) or not _Calls(statement).names <= DETERMINED:
        return None
    return frozenset(_relations(statement))


def _only(step: Step) -> Any:
    statements = trees(step.sql)
    return statements[0].stmt if len(statements) == 1 else None


def _relations(tree: Any) -> Iterator[str]:
    """Yield the relations that a tree names, besides its own common table expressions."""
    names = names_in(tree, deep=True)
    yield from names.tables - names.common


def _common_changes(statement: Any) -> bool:
    """Return whether WITH contains statements that change data."""
    within: Any = getattr(statement, "withClause", None)
    return within is not None and any(isinstance(each.ctequery, _CHANGES) for each in within.ctes)


class _Calls(Reader):
    def __init__(self, tree: Any) -> None:
        super().__init__()
        self.names: set[str] = set()
        self(tree)

    def visit_FuncCall(self, _ancestors: Any, node: Any) -> None:
        self.names.add(name_of(node))
