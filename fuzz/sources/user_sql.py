"""Source `user_sql`: queries of an application over its own schema and data, unchanged or mutated.

Statements of scripts and dumps that do not only read make the scene, in order. Each file ends with RESET ALL, as if it
were a session of its own. Cases draw from the queries in these files, and from statements that a server recorded as
CSV. Mutations change constants, comparisons and kinds of joins in the syntax tree.

A statement that pglast cannot parse, such as one with syntax of a newer PostgreSQL, is in the scene at its place. It is
a query, too, if the server's own parser finds that it only reads and is deterministic. If there are no queries, the
case is the scene, and its steps begin with the first such statement.
"""

import csv
import io
import random
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Final

import pglast
import psycopg
from pglast import ast
from pglast.enums import A_Expr_Kind, JoinType
from pglast.visitors import Visitor

from fuzz.errors import CaseError
from fuzz.generators.choices import chance, pick
from fuzz.generators.generator import Scale
from fuzz.sources.determinism.analysis import Unanalysable, doubts, is_determined_query, is_quick
from fuzz.sources.determinism.catalog import Catalog
from fuzz.sources.determinism.repair import repair
from fuzz.sources.scripts.psql import Sent, Token, inclusions, read_script, tokens
from fuzz.sources.scripts.steps import StepConverter
from fuzz.sources.source import UNPARSED, LostServer, Source, UserInput
from oracles.model.case import Case, Kind, Step
from oracles.sql.building import is_parsed, sql_of
from oracles.sql.determinism import only_reads
from oracles.sql.parsing import parse_statements

_JOINS: Final = (JoinType.JOIN_INNER, JoinType.JOIN_LEFT, JoinType.JOIN_RIGHT, JoinType.JOIN_FULL)
_COMPARISONS: Final = ("=", "<", "<=", ">", ">=", "<>")
_CHANGED: Final = 40  # percentage of the possible places that are changed
_KEPT: Final = 20  # values read per column
_COLUMNS: Final = """
    SELECT format('%I.%I', n.nspname, c.relname), quote_ident(a.attname), t.typcategory::text
    FROM pg_attribute AS a
    JOIN pg_class AS c ON c.oid = a.attrelid
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    JOIN pg_type AS t ON t.oid = a.atttypid
    WHERE c.relkind IN ('r', 'p', 'm') AND a.attnum > 0 AND NOT a.attisdropped AND NOT c.relispartition
      AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname NOT IN ('information_schema', 'pgduel_tools')
      AND t.typcategory IN ('N', 'S', 'D')
    ORDER BY n.nspname, c.relname, a.attnum
"""
_VALUES: Final = "SELECT DISTINCT {0}::text FROM {1} WHERE length({0}::text) < 100 ORDER BY 1 LIMIT {2}"

Values = Mapping[str, Sequence[str]]


def values_of(connection: psycopg.Connection[Any]) -> Values:
    """Return values of columns as text, by type category: N numbers, S strings, D dates.

    Tables that cannot be read have none, such as a materialized view without data. Raises psycopg.Error.
    """
    found: dict[str, dict[str, None]] = {"N": dict.fromkeys(("0", "1", "-1", "2147483647")), "S": {"": None}, "D": {}}
    for table, column, category in connection.execute(_COLUMNS).fetchall():
        sql = _VALUES.format(column, table, _KEPT)
        try:
            rows = connection.execute(sql.encode()).fetchall()
        except psycopg.Error:
            if connection.broken:
                raise
            continue
        found[category] |= dict.fromkeys(value for (value,) in rows if value is not None)
    return {category: tuple(values) for category, values in found.items()}


def mutate(statement: Any, rng: random.Random, values: Values) -> None:
    """Mutate a syntax tree in place."""
    _Mutation(rng, values)(statement)


class _Mutation(Visitor):
    def __init__(self, rng: random.Random, values: Values) -> None:
        super().__init__()
        self._rng = rng
        self._values = values

    def _changes(self) -> bool:
        return chance(self._rng, _CHANGED)

    def visit_A_Const(self, ancestors: Any, node: Any) -> None:
        position = isinstance(ancestors.node, ast.SortBy) or ancestors.parent.member == "groupClause"
        if position or not self._changes():
            return
        kind = type(node.val)
        if kind in (ast.Integer, ast.Float):
            node.val = _number(pick(self._rng, self._values["N"]))
        elif kind is ast.String:
            category = "D" if node.val.sval in self._values["D"] else "S"
            node.val = ast.String(pick(self._rng, self._values[category]))

    def visit_JoinExpr(self, _ancestors: Any, node: Any) -> None:
        if node.jointype in _JOINS and (node.quals is not None or node.usingClause) and self._changes():
            node.jointype = pick(self._rng, _JOINS)

    def visit_A_Expr(self, _ancestors: Any, node: Any) -> None:
        if node.kind is A_Expr_Kind.AEXPR_OP and node.name[-1].sval in _COMPARISONS and self._changes():
            node.name = (ast.String(pick(self._rng, _COMPARISONS)),)


def _number(text: str) -> Any:
    try:
        value = int(text)
    except ValueError:
        return ast.Float(text)
    return ast.Integer(value) if abs(value) < 1 << 31 else ast.Float(text)


MOST_BYTES: Final = 32 << 20  # each case loads them several times
_SUFFIXES: Final = (".sql", ".csv", ".psql", ".dump")
_MESSAGE: Final = 13  # index of the column `message` in csvlog
_CSVLOG_COLUMNS: Final = range(23, 30)  # numbers of columns, since PostgreSQL 13
_STATEMENT: Final = re.compile(r"(?:duration: \S+ ms  )?(?:statement|execute [^:]*): (.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Files:
    """The messages of each script in order, and recorded statements in unknown order."""

    scripts: tuple[tuple[Sent, ...], ...]
    recorded: tuple[str, ...]
    inclusions: tuple[str, ...] = ()  # places where a script includes a file, which is not read: path and line


@lru_cache(maxsize=1)
def read_files(path: Path) -> Files:
    """Return the content of a file, or of a directory's files in order of their names. Raises CaseError."""
    below = (each for each in path.rglob("*") if each.suffix in _SUFFIXES and each.is_file())
    found = sorted(below) if path.is_dir() else [path]
    if not found:
        raise CaseError(f"{path} has no files ending in {', '.join(_SUFFIXES)}")
    size = sum(each.stat().st_size for each in found)
    if size > MOST_BYTES:
        limit = MOST_BYTES >> 20
        raise CaseError(f"{path} has {size >> 20} MB, which each case would load; give at most {limit} MB of SQL")
    texts = {each: _text(each) for each in found}
    read = {file: text for file, text in texts.items() if file.suffix != ".csv"}
    scripts = tuple(tuple(read_script(text, {}, {})) for text in read.values())
    recorded = (sql for file, text in texts.items() if file.suffix == ".csv" for sql in _recorded(file, text))
    included = (f"{file}, line {line}" for file, text in read.items() for line in inclusions(text))
    files = Files(scripts, tuple(dict.fromkeys(recorded)), tuple(included))
    if not any(scripts) and not files.recorded:
        raise CaseError(f"{path} has no statement; give scripts with SELECT, or recorded statements")
    return files


def _text(file: Path) -> str:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CaseError(f"{file} cannot be read ({error}); --sql takes text in UTF-8, as pg_dump writes it") from error
    if "\0" in text:
        raise CaseError(f"{file} has NUL characters, which PostgreSQL has no text with; give --sql SQL without them")
    return text


def _recorded(file: Path, text: str) -> Iterator[str]:
    """Yield the statements of pg_stat_statements (with a column `query`), or of a server log, both as CSV."""
    csv.field_size_limit(sys.maxsize)
    rows = list(csv.reader(io.StringIO(text)))
    if rows and "query" in rows[0]:
        column = rows[0].index("query")
        yield from (sql for row in rows[1:] if len(row) > column for sql in _split(row[column]))
    elif rows and len(rows[0]) in _CSVLOG_COLUMNS:
        matches = (_STATEMENT.fullmatch(row[_MESSAGE]) for row in rows if len(row) > _MESSAGE)
        yield from (sql for found in matches if found for sql in _split(found[1]))
    else:
        raise CaseError(f"{file} is neither a log in CSV nor pg_stat_statements with a header that names `query`")


def _split(text: str) -> Iterator[str]:
    """Yield the statements of a text; those that cannot be parsed end at semicolons, too."""
    try:
        yield from pglast.split(text)
    except pglast.Error:
        with suppress(pglast.Error):  # a quotation mark without its counterpart: probably truncated by the server
            yield from pglast.split(text, with_parser=False)


_TRIES: Final = 6  # upper bound of attempts per statement of a case
_UNCHANGED: Final = 30  # percentage of unmutated statements
_READ: Final = (ast.DeleteStmt, ast.InsertStmt, ast.MergeStmt, ast.SelectStmt, ast.UpdateStmt)


@dataclass(frozen=True, slots=True)
class _Material:
    """The scene and the statements from the user's files.

    Statements of scripts that cannot be parsed are in both, because they may be changes or queries.
    """

    scene: tuple[Step, ...]
    drawn_from: tuple[str, ...]

    @property
    def first_unparsed(self) -> int | None:
        """Return the position of the first statement of the scene that cannot be parsed, or None."""
        return next((position for position, step in enumerate(self.scene) if UNPARSED in step.tags), None)

    def alone(self) -> tuple[tuple[Step, ...], tuple[Step, ...]] | None:
        """Return scene and steps of a case without queries: from the first unparsed statement on. None without one."""
        first = self.first_unparsed
        return None if first is None else (self.scene[:first], self.scene[first:])


class UserSql(Source):
    """Queries from the user's files (--sql) over the schema and data in them, unchanged and mutated."""

    name: ClassVar[str] = "user_sql"
    default_weight: ClassVar[int] = 0

    @classmethod
    def lacks(cls, given: UserInput) -> str:
        """Return a message if --sql is missing, otherwise ""."""
        return "" if given.sql is not None else "give your SQL with --sql"

    def remarks(self) -> tuple[str, ...]:
        """Return a line about recorded statements that no case has. Raises CaseError if there are no others."""
        material = self._material()
        queries = material.drawn_from
        lost = 0
        with suppress(LostServer), self.target.session(material.scene) as connection:  # cases will show the crash
            drawing = _Drawing(connection, random.Random(0))
            if material.first_unparsed is None and not drawing.can_use_any(queries):
                raise self._nothing_comparable()
            of_scene = {step.sql for step in material.scene}
            unparsed = [sql for sql in queries if not is_parsed(sql) and sql not in of_scene]
            lost = sum(not drawing.can_use_any([sql]) for sql in unparsed)
        left_out = (
            f"left out: {lost} of {len(queries)} queries of {self._path}, no valid SQL, or beyond pglast's grammar"
        )
        return (*((left_out,) if lost else ()), *self._left_out_files())

    def _left_out_files(self) -> Iterator[str]:
        """Yield a line about files that the scripts include."""
        if places := read_files(self._path).inclusions:
            more = f" and {len(places) - 1} more" if len(places) > 1 else ""
            yield f"left out: files that \\i or \\ir includes ({places[0]}{more}); give --sql their directory"

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case. Raises CaseError if no statement of the files can be used, ServerError."""
        material = self._material()
        with self.target.session(material.scene) as connection:
            steps = _Drawing(connection, rng).steps(material.drawn_from, scale.queries)
        if steps:
            return Case(self.name, material.scene, steps)
        if alone := material.alone():
            return Case(self.name, *alone)
        raise self._nothing_comparable()

    def _nothing_comparable(self) -> CaseError:
        return CaseError(
            f"{self._path}: none of its queries can be compared, or runs at all, on the schema that it makes; "
            "give the schema, too"
        )

    @property
    def _path(self) -> Path:
        path = self.target.given.sql_path
        if path is None:
            raise CaseError(f"{self.name}: {self.lacks(self.target.given)}")
        return path

    def _material(self) -> _Material:
        with self.target.session(()) as connection:
            material = _material(read_files(self._path), Catalog.of(connection))
        if not material.drawn_from:
            raise CaseError(f"{self._path} has no query to draw from; give scripts with SELECT, or recorded statements")
        return material


def _material(files: Files, catalog: Catalog) -> _Material:
    converter = StepConverter(catalog, lambda _: None)
    scene: list[Step] = []
    queries = []
    for script in files.scripts:
        for sent in script:
            step = converter.step(sent)
            if step is not None and (step.kind is Kind.QUERY or UNPARSED in step.tags):
                queries.append(step.sql)
            if step is not None and step.kind not in (Kind.QUERY, Kind.COPY_OUT):
                scene.append(step)
        scene.append(Step("RESET ALL"))
    return _Material(tuple(scene), tuple(dict.fromkeys((*queries, *files.recorded))))


class _Drawing:
    """A sampler of comparable statements over the scene in a session."""

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

    def can_use_any(self, queries: Sequence[str]) -> bool:
        """Return whether any query is comparable as it is."""
        return any(True for sql in queries for _ in self._tried(sql, unchanged=100))

    def _tried(self, sql: str, unchanged: int = _UNCHANGED) -> Iterator[Step]:
        """Yield the step of a statement, unchanged with a probability of `unchanged` percent, if it is comparable."""
        if not is_parsed(sql):
            yield from self._unparsed(sql)
            return
        try:
            statements = parse_statements(sql)
            if len(statements) != 1 or not isinstance(tree := statements[0].stmt, _READ):
                return
            _Placeholders(self._rng, self._values)(tree)
            if not chance(self._rng, unchanged):
                mutate(tree, self._rng, self._values)
            repair(tree, self._catalog, without_calls=False)
            sql = sql_of(tree)
            if doubts(self._connection, self._catalog, sql) or not is_quick(self._connection, sql):
                return
        except (pglast.parser.ParseError, Unanalysable):
            return
        kind = Kind.QUERY if only_reads(tree) else Kind.COMMAND
        yield Step(sql, kind, may_fail=True)

    def _unparsed(self, sql: str) -> Iterator[Step]:
        """Yield the step of a statement that pglast cannot parse, if the server's parser finds that it is comparable.

        Only queries are, because no repair is possible. They are not mutated.
        """
        values = _all_values(self._values)
        parts = (_quoted(pick(self._rng, values)) if _is_placeholder(each) else each.text for each in tokens(sql))
        sql = "".join(parts)
        try:
            if is_determined_query(self._connection, self._catalog, sql) and is_quick(self._connection, sql):
                yield Step(sql, Kind.QUERY, may_fail=True, tags=(UNPARSED,))
        except Unanalysable:
            return


def _is_placeholder(token: Token) -> bool:
    return token.kind == "number" and token.text.startswith("$")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _all_values(values: Values) -> list[str]:
    return [value for each in ("N", "S", "D") for value in values[each]]


class _Placeholders(Visitor):
    """A visitor that replaces $1, $2 ... by values of any type, because the original values are unknown.

    The values are quoted, so that they adopt the required type.
    """

    def __init__(self, rng: random.Random, values: Values) -> None:
        super().__init__()
        self._rng = rng
        self._values = _all_values(values)

    def visit_ParamRef(self, _ancestors: Any, _node: Any) -> Any:
        return ast.A_Const(isnull=False, val=ast.String(pick(self._rng, self._values)))
