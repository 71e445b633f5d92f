"""Statements that postgres_fdw or file_fdw refuses: forbidden changes, values of a wrong type, moved rows."""

import random

from fuzz.generators import loopback
from fuzz.generators.choices import Weighted, between, chance, pick
from fuzz.generators.foreign_tables.files import refused_file
from fuzz.generators.foreign_tables.scene import BOUNDS, Scene
from oracles.model.case import Kind, Step


def _forbidden(rng: random.Random, scene: Scene) -> list[Step]:
    """Return a change of a foreign table whose option forbids it, or of another kind."""
    relations = [each for each in scene.foreign if each.changeable]
    if not relations:
        return _wrong_type(rng, scene)
    relation = pick(rng, relations)
    option = pick(rng, ("updatable", "truncatable"))
    change = pick(
        rng,
        (
            "UPDATE {0} AS x SET c = 1 WHERE k = {1}",
            "DELETE FROM {0} AS x WHERE k = {1}",
            "INSERT INTO {0} (k) VALUES (-{1})",
            "TRUNCATE {0}",
        ),
    )
    server = chance(rng, 40)

    def set_to(value: str) -> Step:
        if server:
            return Step(loopback.server_option(option, value, server=relation.server))
        return Step(loopback.table_option(relation.name, option, value))

    sql = change.format(relation.name, between(rng, 1, scene.keys))
    return [set_to("false"), Step("BEGIN"), Step(sql, may_fail=True), Step("ROLLBACK"), set_to("true")]


def _wrong_type(rng: random.Random, scene: Scene) -> list[Step]:
    """Return queries of a foreign table whose remote column has values that are no dates."""
    there = "CREATE TABLE r_wrong AS SELECT k, CASE k WHEN 1 THEN 'x' WHEN 2 THEN '2024-01-03' END AS b"
    other = pick(rng, scene.foreign)
    server = other.server if chance(rng, 70) else loopback.SERVER
    queries = (
        "SELECT b FROM wrong WHERE k = {0}",
        "SELECT wrong FROM wrong WHERE k = {0}",
        f"SELECT w.b, y.a FROM wrong AS w JOIN {other.name} AS y ON y.k = w.k WHERE w.k = {{0}}",
        f"SELECT w, y.k FROM wrong AS w JOIN {other.name} AS y ON y.k = w.k WHERE w.k = {{0}}",
        "SELECT max(b) FROM wrong WHERE k = {0} GROUP BY k",
    )
    return [
        Step(f"{there} FROM generate_series(1, 3) AS k"),
        Step(loopback.foreign_table("wrong", "(k int, b date)", "r_wrong", server=server)),
        *(Step(query.format(key), Kind.QUERY, may_fail=True) for query in queries for key in (1, 2) if chance(rng, 60)),
        Step("DROP FOREIGN TABLE wrong"),
        Step("DROP TABLE r_wrong"),
    ]


def _moved_between(rng: random.Random, scene: Scene) -> list[Step]:
    """Return an UPDATE of several partitions that moves rows of a local one to a foreign one.

    It is legal if the foreign partition is updated first. Otherwise, it ends in an error.
    """
    trees = [tree for tree in scene.trees if len(tree.local) < len(BOUNDS)]
    if not trees:
        return _wrong_type(rng, scene)
    tree = pick(rng, trees)
    foreign = pick(rng, [bound for bound in BOUNDS if bound not in tree.local])
    local, to = pick(rng, tree.local), foreign.split(", ")[0]
    row_by_row = " AND x.k::text <> '7'" if chance(rng, 60) else ""  # postgres_fdw does not send this condition
    conditions = f"x.a IN ({local}, {foreign}){row_by_row}"
    sql = f"UPDATE {tree.name} AS x SET a = {to}, c = x.c + 1 WHERE {conditions} RETURNING x.k, x.a"
    return [Step("BEGIN"), Step(sql, may_fail=True), Step("ROLLBACK")]


def _without_columns(rng: random.Random, scene: Scene) -> list[Step]:
    """Return statements about a foreign table without columns, and about one whose values are of a wrong type."""
    server = pick(rng, scene.foreign).server
    return [
        Step("CREATE TABLE r_empty ()"),
        Step(loopback.foreign_table("empty", "()", "r_empty", server=server)),
        Step("INSERT INTO empty DEFAULT VALUES"),
        Step("SELECT count(*) FROM empty", Kind.QUERY),
        Step("ANALYZE empty"),
        Step("CREATE SCHEMA imported"),
        Step(f"IMPORT FOREIGN SCHEMA duel LIMIT TO (r_empty) FROM SERVER {server} INTO imported"),
        Step("SELECT count(*) FROM imported.r_empty", Kind.QUERY),
        Step("DROP SCHEMA imported CASCADE"),
        Step("CREATE TABLE r_wrong (k int, b text)"),
        Step(loopback.foreign_table("wrong", "(k int, b int)", "r_wrong", server=server)),
        Step("INSERT INTO r_wrong VALUES (1, 'x')"),
        Step("ANALYZE wrong", may_fail=True),
        Step("UPDATE wrong SET k = 2 RETURNING b", may_fail=True),
        Step("DELETE FROM wrong WHERE k::text <> '7' RETURNING b", may_fail=True),  # row by row
        Step("DROP FOREIGN TABLE empty, wrong"),
        Step("DROP TABLE r_empty, r_wrong"),
    ]


def _divided(rng: random.Random, scene: Scene) -> list[Step]:
    """Return statements that end in an error on the other server, if a row is there."""
    relation = pick(rng, scene.foreign)
    key = between(rng, 1, scene.keys)
    steps = [Step(f"SELECT k FROM {relation.name} WHERE 10 / (k - k) > 0 AND k = {key}", Kind.QUERY, may_fail=True)]
    if relation.changeable:
        steps.append(Step(f"UPDATE {relation.name} SET c = k / (k - k) WHERE k = {key}", may_fail=True))
    return steps


def _absent(rng: random.Random, scene: Scene) -> list[Step]:
    """Return statements about a foreign table without a remote one, and about schemas that cannot be imported."""
    server = pick(rng, scene.foreign).server
    used = (
        "SELECT k FROM absent WHERE k = 1",
        "INSERT INTO absent VALUES (1, 'x')",
        "UPDATE absent SET b = 'y' WHERE k = 1",
        "DELETE FROM absent WHERE k = 1 AND k::text <> '7'",
        # The session catches its error, which quotes a remote query that differs between arms.
        "DO $$ BEGIN ANALYZE absent; EXCEPTION WHEN undefined_table THEN RAISE NOTICE '%', SQLSTATE; END $$",
    )
    imported = (f"duel FROM SERVER {server} INTO imported OPTIONS (nonsense 'true')",
                f"absent FROM SERVER {server} INTO imported")  # fmt: skip
    return [
        Step(loopback.foreign_table("absent", "(k int, b text)", "r_absent", server=server)),
        *(Step(sql, may_fail=True) for sql in used if chance(rng, 60)),
        Step("DROP FOREIGN TABLE absent"),
        Step("CREATE SCHEMA imported"),
        Step(f"IMPORT FOREIGN SCHEMA {pick(rng, imported)}", may_fail=True),
        Step("DROP SCHEMA imported"),
    ]


def _files(rng: random.Random, _scene: Scene) -> list[Step]:
    return refused_file(rng)


_REFUSALS = Weighted(
    (22, _forbidden), (18, _wrong_type), (22, _moved_between), (14, _without_columns), (12, _divided), (12, _absent),
    (25, _files),
)  # fmt: skip


def refused(rng: random.Random, scene: Scene, _number: int) -> list[Step]:
    """Return steps some of which end in an error."""
    return _REFUSALS.pick(rng)(rng, scene)
