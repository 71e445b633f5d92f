"""Renaming of the roles that a script creates, because roles are global and cases run in several databases at once.

Each case gets unique role names. They replace the original names in the whole text, including strings and data.
Privilege functions take names as strings, and rows are compared with current_user. Role names must therefore name
nothing else. PostgreSQL's own tests ensure that (ENFORCE_REGRESSION_TEST_NAME_RESTRICTIONS). The executor drops the
roles of a case.
"""

import random
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from pglast import ast
from pglast.enums import RoleSpecType

from fuzz.sources.scripts.psql import Sent
from oracles.model.case import Step
from oracles.sql.reading import Reader

_MADE: Final = re.compile(
    r"(?:CREATE\s+(?:ROLE|GROUP|USER(?!\s+MAPPING))|ALTER\s+(?:ROLE|GROUP|USER)\s+\w+\s+RENAME\s+TO)\s+(\w+)", re.I
)
_NAMED: Final = re.compile(r"\bregress_\w+")
_OPEN: Final = Step("GRANT ALL ON SCHEMA duel TO PUBLIC")  # like the schema of PostgreSQL's own tests


def role_made(sql: str) -> str:
    """Return the role that a statement creates, or the new name of a renamed role; otherwise ""."""
    found = _MADE.match(sql)
    return found[1].lower() if found else ""


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles that a script creates, by original name, and the suffix of their new names."""

    made: frozenset[str]
    suffix: str

    @classmethod
    def of(cls, script: Iterable[Sent], rng: random.Random) -> "Roles":
        """Return the roles that a script creates, with a random suffix."""
        made = {role_made(sent.sql) for sent in script}
        return cls(frozenset(filter(_NAMED.match, made)), f"_{rng.randrange(1 << 32):08x}")

    @property
    def names(self) -> frozenset[str]:
        """Return the new names of the roles."""
        return frozenset(name + self.suffix for name in self.made)

    @property
    def scene(self) -> tuple[Step, ...]:
        """Return the steps that roles need in advance."""
        return (_OPEN,) if self.made else ()

    def named(self, sent: Sent) -> Sent:
        """Return the message with the new names of the roles."""
        data = sent.data and self._named(sent.data.decode()).encode()
        return replace(sent, sql=self._named(sent.sql), data=data)

    def _named(self, text: str) -> str:
        return _NAMED.sub(lambda found: found[0] + self.suffix * (found[0].lower() in self.made), text)


def about_roles(tree: Any, roles: frozenset[str]) -> bool:
    """Return whether a statement about roles concerns only these roles, so that no other database is affected."""
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


class _Named(Reader):
    """A visitor that collects the roles in a statement. CURRENT_USER and the like have the name of their enum value."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def visit_RoleSpec(self, _ancestors: Any, node: Any) -> None:
        own = node.roletype is RoleSpecType.ROLESPEC_CSTRING
        self.names.add(node.rolename if own else node.roletype.name)
