"""Conversion of script statements, which depend on earlier ones, to steps whose results are comparable.

The effects of a statement must remain, because later statements need them. Some queries return facts about the server:
times, process numbers, transaction numbers, plans. They run for their effect in a DO block, which discards their rows.
Statements are left out only if they affect pgduel itself, or anything outside of their database.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from pglast import ast
from pglast.enums import ObjectType, ReindexObjectType, TransactionStmtKind
from pglast.parser import ParseError

from fuzz.sources.determinism.catalog import Catalog
from fuzz.sources.determinism.repair import repair
from fuzz.sources.scripts.facts import Facts, changed_by, facts_of
from fuzz.sources.scripts.psql import Sent, tokens
from fuzz.sources.scripts.roles import about_roles
from fuzz.sources.source import UNPARSED
from oracles.model.case import Kind, Step
from oracles.sql.building import sql_of
from oracles.sql.determinism import only_reads
from oracles.sql.parsing import parse_statements

_WITH_QUERIES: Final = (
    *(ast.SelectStmt, ast.InsertStmt, ast.UpdateStmt, ast.DeleteStmt, ast.MergeStmt),
    *(ast.CreateTableAsStmt, ast.DeclareCursorStmt),
)
_CHANGES: Final = (ast.CopyStmt, ast.DeleteStmt, ast.InsertStmt, ast.MergeStmt, ast.TruncateStmt, ast.UpdateStmt)
_ABOUT_ROLES: Final = (
    *(ast.AlterRoleSetStmt, ast.AlterRoleStmt, ast.CreateRoleStmt, ast.DropRoleStmt, ast.GrantRoleStmt),
    *(ast.DropOwnedStmt, ast.ReassignOwnedStmt, ast.AlterOwnerStmt),
)
# Databases, tablespaces, replication and server settings are global. Event triggers would fire for pgduel's own
# statements. The effects of LISTEN, NOTIFY and CHECKPOINT depend on other sessions.
_BEYOND_THE_DATABASE: Final = (
    *(ast.AlterDatabaseSetStmt, ast.AlterDatabaseStmt, ast.CreatedbStmt, ast.DropdbStmt),
    *(ast.AlterTableMoveAllStmt, ast.AlterTableSpaceOptionsStmt, ast.CreateTableSpaceStmt, ast.DropTableSpaceStmt),
    *(ast.AlterSubscriptionStmt, ast.CreateSubscriptionStmt, ast.DropSubscriptionStmt),
    *(ast.AlterEventTrigStmt, ast.CreateEventTrigStmt, ast.AlterSystemStmt, ast.CheckPointStmt, ast.LoadStmt),
    *(ast.ListenStmt, ast.NotifyStmt, ast.UnlistenStmt),
)
_SHARED_OBJECTS: Final = frozenset(
    {
        ObjectType.OBJECT_DATABASE,
        ObjectType.OBJECT_PARAMETER_ACL,
        ObjectType.OBJECT_SUBSCRIPTION,
        ObjectType.OBJECT_TABLESPACE,
    }
)
_TWO_PHASES: Final = frozenset(
    {TransactionStmtKind.TRANS_STMT_COMMIT_PREPARED, TransactionStmtKind.TRANS_STMT_ROLLBACK_PREPARED}
)
# pgduel sets a timeout of its own.
_TIMEOUTS: Final = frozenset({"statement_timeout", "transaction_timeout", "lock_timeout"})


@dataclass(frozen=True, slots=True)
class StepConverter:
    """A converter of script messages to steps.

    `file` returns the content of a path, or None. `roles` are the script's own roles.
    """

    catalog: Catalog
    file: Callable[[str], bytes | None]
    roles: frozenset[str] = frozenset()
    explaining: set[str] = field(default_factory=set)  # functions of the script so far that return output of EXPLAIN

    def step(self, sent: Sent) -> Step | None:
        """Return the step of a message, or None if it is left out.

        Any step may fail, because errors are often the purpose of a test.
        """
        try:
            statements = parse_statements(sent.sql)
        except ParseError:
            return _unparsed(sent)
        if len(statements) == 1:
            return self._step(sent, statements[0].stmt)
        if any(left_out(each.stmt, self.roles) or isinstance(each.stmt, ast.CopyStmt) for each in statements):
            return None  # data for several statements at once
        return Step(sent.sql, may_fail=True) if statements else None

    def _step(self, sent: Sent, tree: Any) -> Step | None:
        if left_out(tree, self.roles):
            return None
        if isinstance(tree, ast.CreateFunctionStmt) and self._explains(sent.sql):
            self.explaining.update(changed_by(tree))
        if isinstance(tree, ast.ExplainStmt):
            return self._explained(tree)
        if isinstance(tree, ast.CopyStmt):
            return self._copy(sent, tree)
        if isinstance(tree, ast.TransactionStmt) and tree.kind is TransactionStmtKind.TRANS_STMT_PREPARE:
            return Step("ROLLBACK", may_fail=True)  # a prepared transaction would outlive its session
        facts = facts_of(tree)
        if isinstance(tree, (*_WITH_QUERIES, ast.PrepareStmt, ast.ViewStmt)) and self._lists_the_server(tree, facts):
            return None
        if not isinstance(tree, _WITH_QUERIES):
            return Step(sent.sql, may_fail=True)
        sql = sql_of(tree) if repair(tree, self.catalog, without_calls=False) else sent.sql
        if not isinstance(tree, ast.SelectStmt):
            return Step(sql, may_fail=True)
        return self._query(sql, tree, facts)

    def _explained(self, tree: Any) -> Step | None:
        """Return the explained statement as a step if EXPLAIN would run it, or if it only reads. Plans may differ."""
        runs = any(option.defname == "analyze" for option in tree.options or ())
        known = isinstance(tree.query, (*_WITH_QUERIES, ast.ExecuteStmt))
        if not known or not (runs or only_reads(tree.query)):
            return None
        return self._step(Sent(sql_of(tree.query), None, 0), tree.query)

    def _explains(self, routine: str) -> bool:
        words = set(re.findall(r"\w+", routine.lower()))
        return "explain" in words or not words.isdisjoint(self.explaining)

    def _lists_the_server(self, tree: Any, facts: Facts) -> bool:
        """Return whether rows come from system catalogs, or are stored from an unfit function in FROM."""
        stored = not isinstance(tree, ast.SelectStmt) or tree.intoClause is not None
        listed = stored and any(self._unfit(call.name, call.arguments) for call in facts.sources)
        return listed or any(name.startswith("pg_") for name in facts.relations)

    def _query(self, sql: str, tree: Any, facts: Facts) -> Step:
        if tree.intoClause is not None:
            return Step(sql, may_fail=True)
        if facts.identities or any(self._unfit(call.name, call.arguments) for call in facts.calls):
            return Step(f"DO {_quoted(f'BEGIN EXECUTE {_quoted(sql)}; END')}", may_fail=True)
        own = any(call.name not in self.catalog.names for call in facts.calls)  # unknown functions
        return Step(sql, Kind.QUERY if only_reads(tree) and not own else Kind.COMMAND, may_fail=True)

    def _unfit(self, name: str, arguments: int) -> bool:
        if name in self.explaining:
            return True
        unfit = self.catalog.unfit(name, arguments)
        return bool(unfit) and all(function.kind == "f" for function in unfit)

    def _copy(self, sent: Sent, tree: Any) -> Step | None:
        if tree.is_program:
            return None
        if not tree.is_from and self._lists_the_server(tree, facts_of(tree)):
            return None
        if not tree.is_from:
            return None if tree.filename else Step(sent.sql, Kind.COPY_OUT, may_fail=True)
        if tree.filename is None:
            return Step(sent.sql, Kind.COPY_IN, sent.data or b"", may_fail=True)
        data = self.file(tree.filename)
        if data is None:
            return None
        tree.filename = None
        return Step(sql_of(tree), Kind.COPY_IN, data, may_fail=True)


def _unparsed(sent: Sent) -> Step | None:
    """Return the step of a message that pglast cannot parse, such as syntax of a newer PostgreSQL.

    None if psql would have put the value of a variable into it, which came from a server's result.
    """
    if any(token.kind == "variable" for token in tokens(sent.sql)):
        return None
    kind = Kind.COMMAND if sent.data is None else Kind.COPY_IN
    return Step(sent.sql, kind, sent.data, may_fail=True, tags=(UNPARSED,))


def left_out(tree: Any, roles: frozenset[str]) -> bool:
    """Return whether a statement affects pgduel itself, or anything outside of its database and these roles."""
    if isinstance(tree, ast.VariableSetStmt):
        return tree.name in _TIMEOUTS
    if isinstance(tree, ast.VariableShowStmt):
        return str(tree.name) == "all"
    if isinstance(tree, ast.TransactionStmt):
        return tree.kind in _TWO_PHASES
    if isinstance(tree, ast.ReindexStmt):
        return tree.kind in (ReindexObjectType.REINDEX_OBJECT_SYSTEM, ReindexObjectType.REINDEX_OBJECT_DATABASE)
    if isinstance(tree, _CHANGES) and any(name.startswith("pg_") for name in changed_by(tree)):
        return True  # superusers may change system catalogs
    shared = {getattr(tree, field, None) for field in ("objtype", "objectType", "renameType")}
    if isinstance(tree, _BEYOND_THE_DATABASE) or not _SHARED_OBJECTS.isdisjoint(shared):
        return True
    of_roles = isinstance(tree, _ABOUT_ROLES) or ObjectType.OBJECT_ROLE in shared
    return of_roles and not about_roles(tree, roles)


def _quoted(text: str) -> str:
    return "E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
