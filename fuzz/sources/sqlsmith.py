"""Source `sqlsmith`: random queries of SQLsmith (Debian's package sqlsmith) over the scene of a generator.

SQLsmith reads a server's catalogs and prints statements instead of executing them. It calls any function with suitable
types, so its statements are repaired, or dropped if they stay nondeterministic. The parser refuses half of them; these
are dropped, too. Statements with high cost estimates are dropped, because they would time out.
"""

import random
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Final

import pglast
import psycopg
from pglast import ast
from pglast.parser import ParseError
from psycopg.conninfo import make_conninfo

from fuzz.errors import CaseError, last_line
from fuzz.generators.choices import chance
from fuzz.generators.generator import Scale, small_scene
from fuzz.sources.determinism.analysis import Unanalysable, doubts, is_quick
from fuzz.sources.determinism.catalog import Catalog
from fuzz.sources.determinism.repair import repair
from fuzz.sources.source import Source, UserInput
from oracles.model.case import Case, Kind, Step
from oracles.sql.building import sql_of
from oracles.sql.parsing import parse_statements

PROGRAM: Final = "sqlsmith"
SEEDS: Final = 1 << 31
_DRAWN: Final = 10  # statements generated per statement of a case
_LARGEST: Final = 8_000  # upper bound of a statement's length, in characters
_SECONDS: Final = 600  # timeout; it usually needs one second


class SqlSmith(Source):
    """SQLsmith's queries and changes, over the scenes of generators."""

    name: ClassVar[str] = "sqlsmith"
    cpu_seconds: ClassVar[float] = 8.7

    @classmethod
    def lacks(cls, given: UserInput) -> str:
        """Return a message if SQLsmith is not installed, otherwise ""."""
        return "" if shutil.which(PROGRAM) else "SQLsmith is not installed; as root, run: apt-get install sqlsmith"

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case: the scene of a generator, and statements of SQLsmith. Raises CaseError, ServerError."""
        scene = small_scene(rng, scale)
        with self.target.session(scene) as connection:
            drawn = draw(connection, rng.randrange(SEEDS), scale.queries * _DRAWN)
            steps = []
            for step in _fit(connection, drawn, rng):
                steps.append(step)
                if len(steps) == scale.queries:
                    break
        return Case(self.name, scene, tuple(steps))


def draw(connection: psycopg.Connection[Any], seed: int, count: int) -> tuple[str, ...]:
    """Return `count` statements of SQLsmith for the tables of a database. Raises CaseError."""
    info = connection.info
    server = make_conninfo(host=info.host, port=info.port, user=info.user, dbname=info.dbname)
    options = ["--dry-run", "--exclude-catalog", f"--seed={seed}", f"--max-queries={count}"]
    command = [PROGRAM, f"--target={server}", *options]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise CaseError(
            f"SQLsmith did not end within {_SECONDS} s; run it by hand to see why: {shlex.join(command)}"
        ) from error
    if done.returncode:
        raise CaseError(f"SQLsmith fails: {last_line(done.stderr, f'exit status {done.returncode}')}")
    return tuple(pglast.split(done.stdout))


def _fit(connection: psycopg.Connection[Any], drawn: Iterable[str], rng: random.Random) -> Iterator[Step]:
    """Yield a step for each statement that is comparable after repair."""
    catalog = Catalog.of(connection)
    for sql in drawn:
        try:
            if len(sql) <= _LARGEST:
                doubts(connection, catalog, sql)  # cheap, and finds most statements that the parser refuses
                step = _step(sql, catalog, widened=chance(rng, 50))
                if not doubts(connection, catalog, step.sql) and is_quick(connection, step.sql):
                    yield step
        except (ParseError, Unanalysable):
            continue


def _step(sql: str, catalog: Catalog, *, widened: bool) -> Step:
    """Return the repaired statement. If `widened`, a query loses its WHERE clause, which is rarely true."""
    tree = parse_statements(sql)[0].stmt
    repair(tree, catalog, without_calls=True)
    if widened and isinstance(tree, ast.SelectStmt):
        tree.whereClause = None
    kind = Kind.QUERY if isinstance(tree, ast.SelectStmt) else Kind.COMMAND
    return Step(sql_of(tree), kind, may_fail=True, tags=(type(tree).__name__.removesuffix("Stmt").lower(),))
