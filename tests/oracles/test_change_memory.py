"""Tests of the oracle `change_memory` on hand-made observations."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from oracles.change_memory import ChangeMemory
from oracles.explain.nodes import EXPLAINED
from oracles.model.case import Kind, Step
from oracles.model.observation import CaseObservation, Observation, Run
from oracles.model.oracle import Agree, Inconclusive, NotApplicable, Unstable, Verdict
from tests.oracles.observed import LOST, case, error, finding, judged_with_runs, ok, query, seen

COPY = Step("COPY t FROM STDIN", Kind.COPY_IN, copy_data=b"1\n")


def using(kilobytes: float, tag: str = "COPY 1") -> Observation:
    return replace(ok(tag=tag), memory=kilobytes)


def judged_by(respond: Callable[[Run], CaseObservation], step: Step = COPY) -> tuple[tuple[Verdict, ...], list[Run]]:
    return judged_with_runs(ChangeMemory(), case(step, query(), samples=(EXPLAINED,)), respond)


def judged(master: Observation, patched: Observation, step: Step = COPY) -> tuple[tuple[Verdict, ...], list[Run]]:
    return judged_by(lambda run: seen(master if run.arm == "master" else patched, ok()), step)


def test_more_memory_is_found_after_twenty_rounds_without_the_queries() -> None:
    verdicts, runs = judged(using(100), using(300))
    found = finding(verdicts)
    assert found.origin == "memory of a change: COPY"
    assert "3.00 times as much" in found.summary
    rounds = [run for run in runs if run.repetition]
    assert [run.arm for run in rounds] == ["master", "patched"] * 20
    assert all(run.explain for run in rounds)
    assert {run.instead for run in rounds} == {((1, "SELECT"),)}


@pytest.mark.parametrize("kilobytes", [163, 213])
def test_the_margin_is_a_factor_and_a_constant(kilobytes: float) -> None:
    assert judged(using(100), using(kilobytes))[0] == (Agree(1),)


def test_memory_of_one_round_is_unstable() -> None:
    def respond(run: Run) -> CaseObservation:
        return seen(using(500 if run.arm == "patched" and run.repetition < 2 else 100), ok())

    verdict, _ = judged_by(respond)[0]
    assert isinstance(verdict, Unstable)


@pytest.mark.parametrize(
    ("sql", "compared"),
    [
        ("INSERT INTO t SELECT g FROM generate_series(1, 9) AS g", True),
        ("INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING", True),
        ("UPDATE t SET a = 1 WHERE b > 2 RETURNING a", True),
        ("DELETE FROM t WHERE b > 2", True),
        ("INSERT INTO t SELECT a FROM u JOIN v USING (a)", False),
        ("INSERT INTO t SELECT a FROM u, v", False),
        ("INSERT INTO t SELECT DISTINCT a FROM u", False),
        ("INSERT INTO t SELECT sum(a) OVER () FROM u", False),
        ("INSERT INTO t SELECT a FROM u UNION ALL SELECT a FROM v", False),
        ("UPDATE t SET a = u.a FROM u", False),
        ("UPDATE t SET a = (SELECT a FROM u)", False),
        ("DELETE FROM t USING u WHERE t.a = u.a", False),
        ("WITH w AS (DELETE FROM t RETURNING *) INSERT INTO u TABLE w", False),
        ("CREATE TABLE t AS SELECT 1", False),
        ("no statement", False),
    ],
)
def test_changes_of_one_table_are_compared(sql: str, *, compared: bool) -> None:
    verdicts, _ = judged(using(100, "INSERT 0 1"), using(1000, "INSERT 0 1"), Step(sql))
    assert (verdicts != (NotApplicable(),)) == compared


@pytest.mark.parametrize("other", [error("22012"), using(1000, "COPY 2")])
def test_changes_that_fail_or_change_other_numbers_of_rows_are_not_compared(other: Observation) -> None:
    assert judged(using(100), other)[0] == (NotApplicable(),)


def test_a_lost_session_is_inconclusive() -> None:
    def respond(run: Run) -> CaseObservation:
        whole = seen(using(100), ok())
        return replace(seen(using(100), LOST), residue=None) if run.arm == "patched" and run.explain else whole

    doubt, agreed = judged_by(respond)[0]
    assert isinstance(doubt, Inconclusive)
    assert agreed == NotApplicable()


def test_other_cases_are_not_applicable() -> None:
    verdicts, _ = judged_with_runs(ChangeMemory(), case(COPY, query()), lambda run: seen(using(1), ok()))
    assert verdicts == (NotApplicable(),)
