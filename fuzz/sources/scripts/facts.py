"""Facts from the syntax tree of a statement: names of objects that it creates, changes, drops and references."""

from dataclasses import dataclass
from typing import Any, Final

from pglast import ast

from oracles.sql.determinism import SYSTEM_COLUMNS
from oracles.sql.reading import Reader


@dataclass(frozen=True, slots=True)
class Call:
    """A function call: name without schema, and number of arguments."""

    name: str
    arguments: int


@dataclass(frozen=True, slots=True)
class Facts:
    """Names in a statement, without schemas. Objects with equal names are assumed to be the same object."""

    relations: frozenset[str]
    calls: frozenset[Call]
    sources: frozenset[Call]  # calls in FROM
    uses: frozenset[str]  # names of relations, functions and types
    identities: bool  # whether the result contains OIDs, ctids or transaction numbers


def facts_of(statement: Any) -> Facts:
    """Return the facts of one statement's syntax tree."""
    visitor = _Facts()
    visitor(statement)
    uses = visitor.relations | visitor.types | {call.name for call in visitor.calls}
    calls, sources = frozenset(visitor.calls), frozenset(visitor.sources)
    return Facts(frozenset(visitor.relations), calls, sources, frozenset(uses), visitor.identities)


class _Facts(Reader):
    def __init__(self) -> None:
        super().__init__()
        self.relations: set[str] = set()
        self.calls: set[Call] = set()
        self.sources: set[Call] = set()
        self.types: set[str] = set()
        self.identities = False
        self._named: set[int] = set()  # column references in tableoid::regclass, by id()

    def visit_RangeVar(self, _ancestors: Any, node: Any) -> None:
        schema = node.schemaname
        self.relations.add(f"pg_{node.relname}" if schema == "information_schema" else node.relname)

    def visit_FuncCall(self, _ancestors: Any, node: Any) -> None:
        self.calls.add(_call(node))

    def visit_RangeFunction(self, _ancestors: Any, node: Any) -> None:
        self.sources.update(_call(each) for each, *_ in node.functions if isinstance(each, ast.FuncCall))

    def visit_TypeName(self, _ancestors: Any, node: Any) -> None:
        if node.names:
            self.types.add(str(node.names[-1].sval))

    def visit_CreateOpClassItem(self, _ancestors: Any, node: Any) -> None:
        self.types.add(_last(getattr(node.name, "objname", None)))

    def visit_IndexElem(self, _ancestors: Any, node: Any) -> None:
        self.types.add(_last(node.opclass))

    visit_PartitionElem = visit_IndexElem

    def visit_TypeCast(self, _ancestors: Any, node: Any) -> None:
        name = _last(node.typeName)
        if name == "regclass" and isinstance(node.arg, ast.ColumnRef):
            self._named.add(id(node.arg))
        if name == "oid" and isinstance(node.arg, ast.TypeCast) and _last(node.arg.typeName).startswith("reg"):
            self.identities = True  # such as 't'::regclass::oid

    def visit_ColumnRef(self, _ancestors: Any, node: Any) -> None:
        name = getattr(node.fields[-1], "sval", "")
        if name in SYSTEM_COLUMNS and not (name == "tableoid" and id(node) in self._named):
            self.identities = True


def _call(node: Any) -> Call:
    return Call(str(node.funcname[-1].sval), len(node.args or ()))


def changed_by(statement: Any) -> frozenset[str]:
    """Return the names of objects that a statement creates or changes, if later statements may need them."""
    names = {_last(getattr(statement, field, None)) for field in _MAKES.get(type(statement), ())}
    if isinstance(statement, ast.VacuumStmt):
        names |= {each.relation.relname for each in statement.rels or ()}
    if isinstance(statement, ast.CopyStmt) and not statement.is_from:
        names = set()
    return frozenset(names - {""})


def dropped_by(statement: Any) -> frozenset[str]:
    """Return the names of objects that a statement drops."""
    if not isinstance(statement, ast.DropStmt):
        return frozenset()
    return frozenset(_last(getattr(each, "objname", each)) for each in statement.objects or ()) - {""}


def _last(named: Any) -> str:
    """Return the last component of a name, for each of its representations in a syntax tree."""
    if isinstance(named, ast.IntoClause):
        named = named.rel
    if isinstance(named, ast.RangeVar):
        return str(named.relname)
    if isinstance(named, tuple) and named:
        return str(getattr(named[-1], "sval", ""))
    if isinstance(named, ast.TypeName):
        return _last(named.names)
    return str(named) if isinstance(named, str) else ""


_MAKES: Final[dict[type, tuple[str, ...]]] = {
    ast.AlterTableStmt: ("relation",),
    ast.ClusterStmt: ("relation",),
    ast.CompositeTypeStmt: ("typevar",),
    ast.CopyStmt: ("relation",),
    ast.CreateDomainStmt: ("domainname",),
    ast.CreateEnumStmt: ("typeName",),
    ast.CreateForeignTableStmt: ("base",),
    ast.CreateOpClassStmt: ("opclassname",),
    ast.CreateFunctionStmt: ("funcname",),
    ast.CreateRangeStmt: ("typeName",),
    ast.CreateSeqStmt: ("sequence",),
    ast.CreateStatsStmt: ("relations",),
    ast.CreateStmt: ("relation",),
    ast.CreateTableAsStmt: ("into",),
    ast.CreateTrigStmt: ("relation",),
    ast.DefineStmt: ("defnames",),
    ast.DeleteStmt: ("relation",),
    ast.IndexStmt: ("relation",),
    ast.InsertStmt: ("relation",),
    ast.MergeStmt: ("relation",),
    ast.RenameStmt: ("relation", "newname"),
    ast.RuleStmt: ("relation",),
    ast.TruncateStmt: ("relations",),
    ast.UpdateStmt: ("relation",),
    ast.ViewStmt: ("view",),
}
