"""The user's SQL: queries of an application over its own schema and data, as they are and changed a little.

What scripts and dumps do other than to read makes the scene, in order; each file ends with RESET ALL, as it would be
a session of its own. Queries of theirs, and statements that a server recorded, are drawn from.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import pglast
import psycopg
from pglast import ast
from pglast.visitors import Visitor

from fuzz.errors import CaseError
from fuzz.generators.choices import chance, pick
from fuzz.generators.generator import Scale
from fuzz.sources.legality.analysis import Unanalysable, doubts
from fuzz.sources.legality.catalog import Catalog
from fuzz.sources.legality.cost import is_quick
from fuzz.sources.legality.repair import repair, sql_of
from fuzz.sources.replaying.files import Files, read_files
from fuzz.sources.replaying.mutation import Values, mutate, values_of
from fuzz.sources.replaying.steps import Stager
from fuzz.sources.source import Source
from fuzz.sources.target import Given
from oracles.case import Case, Kind, Step

_TRIES: Final = 6  # statements drawn for each that a case has, at most
_AS_IT_IS: Final = 30  # percent of them
_READ: Final = (ast.DeleteStmt, ast.InsertStmt, ast.MergeStmt, ast.SelectStmt, ast.UpdateStmt)


@dataclass(frozen=True, slots=True)
class _Play:
    """What the user's files come down to."""

    scene: tuple[Step, ...]
    drawn_from: tuple[str, ...]


class UserSql(Source):
    """Queries from the user's files (--sql) over the schema and data in them, as they are and mutated."""

    name: ClassVar[str] = "user_sql"

    @classmethod
    def lacks(cls, given: Given) -> str:
        """Return what option to give, unless it was."""
        return "" if given.sql is not None else "say where your SQL is with --sql"

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case. Raises CaseError where the files are of no use, ServerError."""
        path = self.target.given.sql_path
        if path is None:
            raise CaseError(f"{self.name}: {self.lacks(self.target.given)}")
        with self.target.played(()) as connection:
            catalog = Catalog.of(connection)
        play = _play(read_files(path), catalog)
        if not play.drawn_from:
            raise CaseError(f"{path} has no query to draw from: give scripts with SELECT, or recorded statements")
        with self.target.played(play.scene) as connection:
            steps = _Drawing(connection, rng).steps(play.drawn_from, scale.queries)
        if not steps:
            raise CaseError(f"{path}: none of its queries can be compared, or runs at all, on the schema that it makes")
        return Case(self.name, play.scene, steps)


def _play(files: Files, catalog: Catalog) -> _Play:
    stager = Stager(catalog, lambda _: None)
    scene: list[Step] = []
    queries = []
    for script in files.scripts:
        for sent in script:
            step = stager.step(sent)
            if step is not None and step.kind is Kind.QUERY:
                queries.append(step.sql)
            elif step is not None and step.kind is not Kind.COPY_OUT:
                scene.append(step)
        scene.append(Step("RESET ALL"))
    return _Play(tuple(scene), tuple(dict.fromkeys((*queries, *files.recorded))))


class _Drawing:
    """Draws statements that may be compared on the scene that was played in a session."""

    def __init__(self, connection: psycopg.Connection[Any], rng: random.Random) -> None:
        self._connection = connection
        self._rng = rng
        self._catalog = Catalog.of(connection)
        self._values = values_of(connection)

    def steps(self, drawn_from: tuple[str, ...], count: int) -> tuple[Step, ...]:
        found: list[Step] = []
        for _ in range(count * _TRIES):
            found += self._tried(pick(self._rng, drawn_from))
            if len(found) == count:
                break
        return tuple(found)

    def _tried(self, sql: str) -> Iterator[Step]:
        try:
            statements = pglast.parse_sql(sql)
            if len(statements) != 1 or not isinstance(tree := statements[0].stmt, _READ):
                return
            _Placeholders(self._rng, self._values)(tree)
            if not chance(self._rng, _AS_IT_IS):
                mutate(tree, self._rng, self._values)
            repair(tree, self._catalog, without_calls=False)
            sql = sql_of(tree)
            if doubts(self._connection, self._catalog, sql) or not is_quick(self._connection, sql):
                return
        except (pglast.parser.ParseError, Unanalysable):
            return
        kind = Kind.QUERY if isinstance(tree, ast.SelectStmt) else Kind.COMMAND
        yield Step(sql, kind, may_fail=True)


class _Placeholders(Visitor):
    """Puts values for $1, $2 ...: of any kind, since nobody knows what they were; quoted, so that they find a type."""

    def __init__(self, rng: random.Random, values: Values) -> None:
        super().__init__()
        self._rng = rng
        self._values = [value for each in ("N", "S", "D") for value in values[each]]

    def visit_ParamRef(self, _ancestors: Any, _node: Any) -> Any:
        return ast.A_Const(isnull=False, val=ast.String(pick(self._rng, self._values)))
