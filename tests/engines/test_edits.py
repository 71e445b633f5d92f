"""Tests of edits of syntax trees: the permitted changes, and queries that oracles can judge afterwards."""

import random
from dataclasses import replace

import pytest

from fuzz.engines.guided.edits import EDITED, edited
from fuzz.engines.guided.inputs import SEPARATOR, case_of_input, random_input
from oracles.model.case import Case, Kind, SameRows, Step
from oracles.sql.determinism import is_known
from oracles.sql.infallible import is_infallible

SCENE = (Step("CREATE TABLE t (a int4, b int4, c text)"), Step("INSERT INTO t VALUES (1, 2, 'x')"))
QUERY = "SELECT a, c FROM t WHERE a = 1 AND b IS NULL"


def results(*steps: Step, tries: int = 300, scene: tuple[Step, ...] = SCENE) -> set[tuple[Step, ...]]:
    """Return the steps of cases with random edits."""
    case = Case("tests", scene, steps)
    return {edited(random.Random(seed), case).steps for seed in range(tries)}


def texts(sql: str) -> set[str]:
    """Return the texts that random edits make of a query."""
    return {step.sql for (step,) in results(Step(sql, Kind.QUERY))} - {sql}


def test_operators_and_constants_are_exchanged_and_conditions_negated() -> None:
    assert texts(QUERY) >= {
        "SELECT a, c FROM t WHERE a > 1 AND b IS NULL",
        "SELECT a, c FROM t WHERE a = 2147483647 AND b IS NULL",
        "SELECT a, c FROM t WHERE a = 1 OR b IS NULL",
        "SELECT a, c FROM t WHERE a = 1 AND b IS NOT NULL",
        "SELECT a, c FROM t WHERE NOT a = 1 AND b IS NULL",
        "SELECT DISTINCT a, c FROM t WHERE a = 1 AND b IS NULL",
    }


def test_types_of_joins_and_set_operations_are_exchanged() -> None:
    assert "SELECT x.a FROM t AS x RIGHT JOIN t AS y ON x.a = y.b" in texts(
        "SELECT x.a FROM t x LEFT JOIN t y ON x.a = y.b"
    )
    assert "SELECT a FROM t EXCEPT ALL SELECT b FROM t" in texts("SELECT a FROM t UNION ALL SELECT b FROM t")


def test_conditions_of_joins_stay() -> None:
    made = texts("SELECT x.a FROM t x LEFT JOIN t y ON x.a = y.b AND x.b = 1")
    assert made
    assert all("ON x.a = y.b AND x.b = 1" in sql for sql in made)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a / b FROM t WHERE b <> 0",  # which rows it divides depends on the plan
        "SELECT a FROM t WHERE b = 1 LIMIT 1",  # any row
        "SELECT random() FROM t WHERE a = 1",
        "SELECT a FROM unknown WHERE a = 1",
    ],
)
def test_a_query_that_oracles_could_not_judge_stays(sql: str) -> None:
    assert not texts(sql)


def test_a_query_of_a_view_that_does_not_determine_its_rows_stays() -> None:
    scene = (*SCENE, Step("CREATE VIEW v AS SELECT a FROM t LIMIT 3"), Step("CREATE VIEW w AS SELECT a FROM t"))
    step = Step("SELECT a FROM v WHERE a = 1", Kind.QUERY)
    assert results(step, scene=scene) == {(step,)}
    assert len(results(step.with_statement("SELECT a FROM w WHERE a = 1"), scene=scene)) > 1


def test_an_edited_query_has_no_order_and_may_fail() -> None:
    step = Step(f"{QUERY} ORDER BY 1, 2", Kind.QUERY, ordered=True, tags=("expected",))
    changed = {made for (made,) in results(step)} - {step}
    assert changed
    assert {(made.ordered, made.may_fail, made.tags) for made in changed} == {(False, True, (EDITED,))}


def test_reported_pairs_and_commands_stay() -> None:
    pair = Step(QUERY, Kind.QUERY), Step(QUERY, Kind.QUERY, same_rows=SameRows.BY_MEANING)
    command = Step("DELETE FROM t WHERE a = 1")
    assert results(*pair, command) == {(*pair, command)}


def test_edits_of_an_input_depend_on_their_own_stream() -> None:
    changed = 0
    for seed in range(40):
        data = random_input("set_operations", random.Random(seed))
        modes, scene, _, *actions = data.split(SEPARATOR)
        plain = case_of_input(SEPARATOR.join((modes, scene, b"", *actions)), "set_operations")
        case = case_of_input(data, "set_operations")
        assert case == case_of_input(data, "set_operations")
        others = [step for step, before in zip(case.steps, plain.steps, strict=True) if step != before]
        assert case == replace(plain, steps=case.steps)
        assert all(is_known(step.sql) and is_infallible(step.sql, case.all_steps) for step in others)
        changed += bool(others)
    assert 5 < changed < 30
