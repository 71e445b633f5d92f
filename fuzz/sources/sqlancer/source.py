"""Source `sqlancer`: SQLancer's tables become a scene, and its queries steps.

SQLancer depends on a seed and on results of the server, so it runs on the reference, in a database of its own. Its
oracles compare successive queries with each other; here each query is compared between arms.
"""

import random
from collections.abc import Iterator
from itertools import islice
from typing import Any, ClassVar, Final

import psycopg
from pglast import ast
from pglast.parser import ParseError

from fuzz.errors import CaseError
from fuzz.generators.choices import pick
from fuzz.generators.generator import Scale
from fuzz.sources.determinism.analysis import Unanalysable, doubts, is_quick
from fuzz.sources.determinism.catalog import Catalog
from fuzz.sources.determinism.repair import repair
from fuzz.sources.source import Source, UserInput
from fuzz.sources.sqlancer.logs import SqlancerLog, divided, scene_of
from fuzz.sources.sqlancer.options import SEEDS, SqlancerRun
from fuzz.sources.sqlancer.running import Server, class_path, lacking, run
from oracles.model.case import Case, Kind, Step
from oracles.sql.building import sql_of
from oracles.sql.parsing import parse_statements

_ORACLES: Final = ("NOREC", "QUERY_PARTITIONING", "HAVING", "PQS", "FUZZER")  # oracles of SQLancer that read rows
_DRAWN: Final = 4  # queries of SQLancer per query of a case
_TRIES: Final = 5  # seeds to try until one leads to queries, because SQLancer often gives up a database


class SqLancer(Source):
    """SQLancer's tables and queries, replayed on all arms."""

    name: ClassVar[str] = "sqlancer"

    @classmethod
    def lacks(cls, given: UserInput) -> str:
        """Return a missing prerequisite of SQLancer, or ""."""
        return lacking(given.sqlancer_jar)

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case of SQLancer's tables and queries. Raises CaseError, ServerError."""
        path = class_path(self.target.given.sqlancer_jar)
        for _ in range(_TRIES):
            call = SqlancerRun(pick(rng, _ORACLES), rng.randrange(SEEDS), scale.queries * _DRAWN)
            case = self._case(path, call, scale.queries)
            if case.steps:
                return case
        raise CaseError(f"SQLancer executed no query that can be compared, with {_TRIES} seeds")

    def _case(self, path: str, call: SqlancerRun, queries: int) -> Case:
        with self.target.session(()) as connection:
            catalog = Catalog.of(connection)
            info = connection.info
            ran = run(Server(info.host, info.port), path, call, f"{info.dbname}_lancer")
        made, sent = divided(next(iter(ran.doing.values()), SqlancerLog(0, (), "")))
        scene = scene_of(made, catalog)
        with self.target.session(scene) as connection:
            steps = tuple(islice(_fit(connection, catalog, sent), queries))
        return Case(self.name, scene, steps)


def _fit(connection: psycopg.Connection[Any], catalog: Catalog, sent: tuple[str, ...]) -> Iterator[Step]:
    """Yield a step for each query that is comparable after repair."""
    for sql in sent:
        try:
            tree = parse_statements(sql)[0].stmt
            if not isinstance(tree, ast.SelectStmt):
                continue
            repair(tree, catalog, without_calls=False)
            repaired = sql_of(tree)
            if not doubts(connection, catalog, repaired) and is_quick(connection, repaired):
                yield Step(repaired, Kind.QUERY, may_fail=True)
        except (ParseError, Unanalysable):
            continue
