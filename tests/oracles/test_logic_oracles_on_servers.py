"""Tests of the oracles that judge a single arm, on a sound server: each judges statements and has no finding."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from fuzz.campaign.canaries import is_caught, plant
from fuzz.execution.executor import Executor
from fuzz.execution.judging import Assignment, assignments, judge_case
from fuzz.execution.modes import MODES
from fuzz.servers.arm import Arm
from oracles.cert.oracle import ESTIMATED, Cert
from oracles.framework.metamorphic import Metamorphic
from oracles.metamorphic_joins import REWRITTEN, MetamorphicJoins
from oracles.model.case import Case, Kind, SameRows, Step
from oracles.model.feature import Feature
from oracles.model.oracle import Agree, Canary, NotApplicable, Oracle, Verdict, all_oracles
from oracles.pqs import PIVOTED, Pqs

pytestmark = pytest.mark.servers

ORACLES = tuple(oracle for oracle in all_oracles() if not oracle.needs_another_arm)
LOGIC = [oracle for oracle in ORACLES if isinstance(oracle, Metamorphic)]
SCENE = (
    Step("CREATE TYPE mood AS ENUM ('sad', 'glad')"),
    Step(
        "CREATE TABLE a (i int, n numeric(4, 1), c char(5), t text, d date, m mood, v int[], PRIMARY KEY (i, d)) "
        "PARTITION BY RANGE (d)"
    ),
    Step("CREATE TABLE a_1 PARTITION OF a FOR VALUES FROM (MINVALUE) TO ('2024-01-05')"),
    Step("CREATE TABLE a_2 PARTITION OF a DEFAULT"),
    Step(
        "INSERT INTO a SELECT g, nullif(g % 7, 3) / 2.0, nullif(left(md5(g::text), 1 + g % 4), 'c'), "
        "CASE g % 5 WHEN 0 THEN NULL WHEN 1 THEN '' ELSE 'it''s \\' || g END, date '2024-01-01' + g % 9, "
        "CASE WHEN g % 3 > 0 THEN enum_range(NULL::mood) END[g % 3], array[g, NULL] FROM generate_series(1, 60) AS g"
    ),
    Step("CREATE TABLE b (i int, j int, t text)"),
    Step("INSERT INTO b SELECT g, nullif(g % 5, 2), 'k' || g % 6 FROM generate_series(20, 80) AS g"),
    Step("CREATE INDEX ON b (i)"),
)
# NULLs on either side, empty and padded text, quotes, arrays, enums; empty lists; rows that occur twice.
QUERIES = (
    "SELECT a.i, b.t FROM a LEFT JOIN b ON a.i = b.i WHERE a.n > 1.0",
    "SELECT a.t, b.j FROM a FULL JOIN b ON a.i = b.i AND a.d > '2024-01-03'::date",
    "SELECT count(*), sum(a.n), min(a.c), max(a.t), bool_or(a.i > 3) FROM a WHERE a.n < 2.5",
    "SELECT sum(a.i) FROM a WHERE a.i > 1000",
    "SELECT a.c, count(*) FROM a WHERE a.d > '2024-01-04'::date GROUP BY a.c HAVING max(a.n) > 2",
    "SELECT DISTINCT a.n, a.m FROM a WHERE a.m = 'sad'::mood",
    "SELECT a.v, a.c FROM a WHERE a.c IN (SELECT x.c FROM a AS x WHERE x.n > 2)",
    "SELECT a.i FROM a WHERE a.n NOT IN (SELECT b.j FROM b)",
    "SELECT a.i FROM a WHERE a.i > ALL (SELECT b.i FROM b WHERE b.i > 100)",
    "SELECT a.i FROM a WHERE a.i <= ANY (SELECT b.i FROM b WHERE b.i > 100)",
    "SELECT a.t FROM a WHERE a.i > (SELECT max(b.j) FROM b) AND EXISTS (SELECT 1 FROM b WHERE b.i = a.i)",
    "SELECT a.i FROM a WHERE a.v = ANY (ARRAY(SELECT x.v FROM a AS x ORDER BY 1 LIMIT 3)) OR a.t = ''",
    "SELECT count(*), sum(hashtextextended(q::text, 0)) FROM (SELECT a.*, b.* FROM a JOIN b ON a.i = b.i) AS q",
    "WITH c AS (SELECT b.j FROM b WHERE b.j > 0) SELECT c.j, a.i FROM c JOIN a ON c.j = a.i WHERE a.n IS NULL",
    "SELECT a.i, a.d FROM a WHERE a.d > '2024-01-02'::date AND a.i < 30 ORDER BY 1, 2 LIMIT 7",
    "SELECT b.i FROM b WHERE b.j > 1 AND b.t <> 'k3'",
)
CASE = Case(
    "by_hand",
    SCENE,
    (
        *(Step(sql, Kind.QUERY, ordered="ORDER BY 1, 2 LIMIT" in sql) for sql in QUERIES),
        Step("SELECT b.i FROM b WHERE b.t <> 'k3' AND b.j > 1", Kind.QUERY, same_rows=SameRows.BY_MEANING),
    ),
    samples=(ESTIMATED.name, *(sample.name for oracle in LOGIC for sample in oracle.samples)),
)
CANARIES = [
    pytest.param(oracle, canary, id=f"{oracle.name}-{canary.fault}-{number}")
    for oracle in ORACLES
    for number, canary in enumerate(oracle.canaries)
    if not canary.needs_another_arm
]


@pytest.mark.parametrize("mode", ["plain", "prepared_generic", "closed_early"])
def test_a_sound_server_has_no_findings(mode: str, executor: Executor, arms: tuple[Arm, ...]) -> None:
    judged = judge_case(executor, assignments(ORACLES, arms), replace(CASE, modes=(MODES[mode],)))
    assert {verdict for _, verdict in judged.verdicts if not isinstance(verdict, Agree | NotApplicable)} == set()
    statements = {name: verdict.statements for name, verdict in judged.verdicts if isinstance(verdict, Agree)}
    assert all(statements[name] for name in ("cert", *(oracle.name for oracle in LOGIC)))


@pytest.mark.parametrize(("oracle", "canary"), CANARIES)
def test_a_planted_bug_is_found_on_a_single_arm(
    oracle: Oracle, canary: Canary, executor: Executor, arms: tuple[Arm, ...]
) -> None:
    assert is_caught(plant(oracle, canary, executor, arms), arms)


def test_estimates_of_tables_with_short_names_are_compared(executor: Executor, arms: tuple[Arm, ...]) -> None:
    tables = [Step(f"CREATE TABLE {name} AS SELECT g AS k FROM generate_series(1, 9) AS g") for name in ("w0", "n1")]
    queries = [Step(f"SELECT r.k FROM {name} AS r WHERE r.k > 3", Kind.QUERY) for name in ("w0", "n1")]
    case = Case("by_hand", tuple(tables), tuple(queries), samples=(ESTIMATED.name,))
    judged = judge_case(executor, assignments((Cert(),), arms), case)
    assert {verdict for _, verdict in judged.verdicts} == {Agree(len(queries))}


def without_feature(executor: Executor, setting: str, scene: Sequence[Step], sql: str) -> list[Verdict]:
    """Judge a query by the relation that it has the same rows while a setting is off."""
    oracle = MetamorphicJoins().of((Feature("feature", "feature", off=((setting, "off"),)),))
    case = Case("by_hand", tuple(scene), (Step(sql, Kind.QUERY),), samples=(REWRITTEN.name,))
    return [verdict for _, verdict in judge_case(executor, (Assignment(oracle, ("only",)),), case).verdicts]


def test_a_feature_is_disabled_for_queries_only(executor: Executor) -> None:
    """Which rows get which numbers of a sequence depends on the plan of the INSERT, legally."""
    scene = (
        Step("CREATE TABLE t (id serial, g int)"),
        Step("INSERT INTO t (g) SELECT g FROM generate_series(9, 1, -1) AS g"),
        Step("ANALYZE t"),
        Step("CREATE TABLE u (id serial, g int)"),
        Step("INSERT INTO u (g) SELECT a.g FROM t AS a JOIN t AS b ON a.g = b.g"),
    )
    assert without_feature(executor, "enable_hashjoin", scene, "SELECT u.id, u.g FROM u") == [Agree(1)]


def test_an_arm_that_lacks_the_setting_of_a_feature_is_not_judged_by_it(executor: Executor) -> None:
    assert without_feature(executor, "enable_telepathy", SCENE, "SELECT b.i FROM b") == [NotApplicable()]


def test_conditions_of_pivot_rows_may_be_literals(executor: Executor, arms: tuple[Arm, ...]) -> None:
    """As a value, such a literal is a text, which is printed as it is."""
    steps = (Step("SELECT b.i FROM b WHERE 'yes' AND b.j > 1 AND 'true'", Kind.QUERY),)
    case = Case("by_hand", SCENE, steps, samples=(PIVOTED.name,))
    judged = judge_case(executor, assignments((Pqs(),), arms), case)
    assert [verdict for _, verdict in judged.verdicts] == [Agree(1)]


def test_queries_that_change_data_are_executed_in_each_variant(executor: Executor, arms: tuple[Arm, ...]) -> None:
    """Scripts to replay have such queries. Without them, later ones would read other rows."""
    scene = (
        Step("CREATE TABLE log (n int)"),
        Step("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'INSERT INTO log VALUES (1) RETURNING n'"),
        Step("CREATE VIEW v AS SELECT f() AS n"),
    )
    changes = ("SELECT n FROM v", "WITH w AS (INSERT INTO log VALUES (2) RETURNING n) SELECT n FROM w")
    steps = tuple(Step(sql, Kind.QUERY) for sql in (*changes, "SELECT n FROM log WHERE n > 0"))
    case = Case("by_hand", scene, steps, samples=CASE.samples)
    judged = judge_case(executor, assignments(LOGIC, arms), case)
    assert {type(verdict) for _, verdict in judged.verdicts} == {Agree, NotApplicable}
