"""Tests of the generator `foreign_tables` without servers: its constructs, unique keys, targets, and shrinking."""

import re

import pytest

from fuzz.generators.foreign_tables.generator import ForeignTables
from oracles.model.case import Case, Kind
from tests.generators.drawing import cases_of
from tests.generators.shrinking import assert_shrinks

CASES = cases_of(ForeignTables, 60)
TARGET = re.compile(r"^(?:WITH w AS \()?(?:UPDATE|DELETE FROM|INSERT INTO|MERGE INTO|TRUNCATE) (\w+)")
# Parts of the texts of steps: of the scene, of queries, of changes, and of other steps.
CONSTRUCTS = (
    *("SERVER duel_loop_too", "column_name", "DROP COLUMN gone", "STORED", "CREATE VIEW r_", "CREATE TRIGGER changes"),
    *("CREATE TRIGGER notes", "async_capable", "batch_size", "use_remote_estimate", "ATTACH PARTITION"),
    *("FULL JOIN", "NOT EXISTS", "LATERAL", "UNION ALL", "HAVING", "FILTER", "WITHIN GROUP", "USING OPERATOR", "$1"),
    *("FOR UPDATE OF", "SELECT DISTINCT", "LIMIT", "COLLATE", "e[1]", "CASE WHEN"),
    *("RETURNING", "ON CONFLICT DO NOTHING", " FROM f2 AS y", " USING f2 AS y", "MERGE INTO near", "SET a = "),
    *("TRUNCATE", "IMPORT FOREIGN SCHEMA", "LIMIT TO", "EXCEPT (", "DECLARE c SCROLL", "EXECUTE p", "EXPLAIN (VERBOSE"),
    *("ROLLBACK TO SAVEPOINT", "WITH CHECK OPTION", "ANALYZE", "keep_connections"),
    *("fdw_tuple_cost", "ANALYZE, TIMING OFF", "costly(", "same(", "FOREIGN TABLE absent", "nonsense"),
    *("FOREIGN TABLE p1", "header 'match'", "encoding 'EUC_JP'", "force_null 'true'", "force_not_null"),
    *("JOIN p1", "FROM p1 AS", "FROM wrong", "EXPLAIN SELECT k FROM wrong", "FOREIGN TABLE refused", "COPY wrong FROM"),
    *("updatable", "truncatable", "FOREIGN TABLE wrong", "regtype 'int4'", "IntervalStyle", "VARIADIC"),
)


def texts(case: Case) -> list[str]:
    return [step.sql for step in case.all_steps]


@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_statements_have(construct: str) -> None:
    assert any(construct in sql for case in CASES for sql in texts(case))


def test_no_step_uses_a_remote_relation_directly() -> None:
    """A session that does may wait for its own remote session, without an end."""
    for case in CASES:
        for step in case.steps:
            uses = re.findall(r"(?<!imported\.)\br_[ft]\w+", step.sql)
            assert not uses or step.sql.startswith("IMPORT FOREIGN SCHEMA"), step.sql


def test_no_change_reads_its_target() -> None:
    """Rows that a statement changes are seen or not, depending on the plan, if it scans them several times."""
    for case in CASES:
        for step in case.steps:
            if (target := TARGET.match(step.sql)) and target[1] != "checked":
                assert len(re.findall(rf"(?:FROM|JOIN|USING|INTO|UPDATE) {target[1]}\b", step.sql)) <= 1, step.sql


def test_views_are_not_updated() -> None:
    for case in CASES:
        views = {sql.split()[2].removeprefix("r_") for sql in texts(case) if sql.startswith("CREATE VIEW r_")}
        for step in case.steps:
            target = TARGET.match(step.sql)
            assert not (target and target[1] in views) or step.sql.startswith("INSERT INTO"), step.sql


def test_file_tables_are_only_read() -> None:
    for case in CASES:
        for step in case.steps:
            assert not re.search(r"(?:INTO|UPDATE|DELETE FROM|TRUNCATE|COPY) p1\b", step.sql), step.sql


def test_only_moves_assign_the_partition_key() -> None:
    for case in CASES:
        for step in case.steps:
            if re.search(r"\bSET a =", step.sql):
                assert re.search(r"UPDATE t\d AS x SET .* WHERE x\.a IN \(", step.sql), step.sql


def test_rows_in_order_have_all_keys_in_it() -> None:
    for case in CASES:
        for step in case.steps:
            if step.ordered and not {"grouped", "nested", "projected"} & set(step.tags) and step.kind is Kind.QUERY:
                keys = re.findall(r"[xyz]\.k", step.sql.split(" FROM ")[0])
                assert keys
                assert all(key in step.sql.rsplit(" ORDER BY ", 1)[1] for key in keys), step.sql


def test_a_failing_case_shrinks() -> None:
    assert_shrinks(ForeignTables(), scene=17, steps=3, characters=250, construct="FULL JOIN")
