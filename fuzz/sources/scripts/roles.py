"""Roles: those that a script makes belong to all databases of a server, where other cases run at the same time.

So each case gives its roles names that no other case has. That is done in the whole text, in strings and data as well:
privileges are asked for by name, and rows compared with current_user. It takes names that stand for nothing else, as
those of PostgreSQL's tests do by its own rule (ENFORCE_REGRESSION_TEST_NAME_RESTRICTIONS). Who drops the roles of a
case is the executor that runs it.
"""

import random
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from pglast import ast
from pglast.enums import RoleSpecType
from pglast.visitors import Visitor

from fuzz.sources.scripts.psql import Sent
from oracles.model.case import Step

_MADE: Final = re.compile(
    r"(?:CREATE\s+(?:ROLE|GROUP|USER(?!\s+MAPPING))|ALTER\s+(?:ROLE|GROUP|USER)\s+\w+\s+RENAME\s+TO)\s+(\w+)", re.I
)
_NAMED: Final = re.compile(r"\bregress_\w+")
_OPEN: Final = Step("GRANT ALL ON SCHEMA duel TO PUBLIC")  # as the tests' own schema is


def role_made(sql: str) -> str:
    """Return the role that a statement makes, or gives this name; empty if it does neither."""
    found = _MADE.match(sql)
    return found[1].lower() if found else ""


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles that a script makes, by their names there, and what all their names end in here."""

    made: frozenset[str]
    suffix: str

    @classmethod
    def of(cls, script: Iterable[Sent], rng: random.Random) -> "Roles":
        """Return the roles that a script makes."""
        made = {role_made(sent.sql) for sent in script}
        return cls(frozenset(filter(_NAMED.match, made)), f"_{rng.randrange(1 << 32):08x}")

    @property
    def names(self) -> frozenset[str]:
        """Return the names that the roles have here."""
        return frozenset(name + self.suffix for name in self.made)

    @property
    def scene(self) -> tuple[Step, ...]:
        """Return what has to be done before roles can do anything in a case."""
        return (_OPEN,) if self.made else ()

    def named(self, sent: Sent) -> Sent:
        """Return what is sent, with the names that the roles have here."""
        data = sent.data and self._named(sent.data.decode()).encode()
        return replace(sent, sql=self._named(sent.sql), data=data)

    def _named(self, text: str) -> str:
        return _NAMED.sub(lambda found: found[0] + self.suffix * (found[0].lower() in self.made), text)


def about_roles(tree: Any, roles: frozenset[str]) -> bool:
    """Tell whether a statement about roles is about these alone, and so about nothing that other databases see."""
    if isinstance(tree, ast.CreateRoleStmt):
        return tree.role in roles
    if isinstance(tree, ast.AlterRoleSetStmt) and (tree.role is None or tree.database):
        return False
    if isinstance(tree, ast.RenameStmt):
        return {tree.subname, tree.newname} <= roles
    if isinstance(tree, ast.CommentStmt | ast.SecLabelStmt):
        return getattr(tree.object, "sval", "") in roles
    visitor = _Named()
    visitor(tree)
    return visitor.names <= roles


class _Named(Visitor):
    """Who is named in a statement; whoever the session's user is has the name of its keyword."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def visit_RoleSpec(self, _ancestors: Any, node: Any) -> None:
        own = node.roletype is RoleSpecType.ROLESPEC_CSTRING
        self.names.add(node.rolename if own else node.roletype.name)
