"""Tests of the oracle `cert` on hand-made plans: inconsistent and legal row estimates."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from oracles.cert.oracle import ESTIMATED, Cert, is_simple
from oracles.model.case import Case, Step
from oracles.model.observation import CaseObservation, Observation, Run
from oracles.model.oracle import Agree, Inconclusive, NotApplicable, Unstable, Verdict
from tests.oracles.observed import LOST, case, error, finding, judged, ok, query, seen, timeout

CASE = case(query("SELECT a.x FROM a WHERE a.x <> 1"), samples=(ESTIMATED,))
NARROW = "pgduel_narrow0"
Estimate = Callable[[str, Run], int]


def plan(estimate: Estimate, run: Run, scanned: str = "a") -> Observation:
    """Return the plan of the combined statement; `estimate` returns the expected rows of each part.

    `scanned` is the table in the restricted queries.
    """
    parts = [
        {
            "Node Type": "Seq Scan",
            "Relation Name": scanned if "narrow" in name else "a",
            "Plan Rows": estimate(name, run),
            "Subplan Name": f"CTE {name}",
        }
        for name in (f"pgduel_{side}{number}" for number in range(3) for side in ("wide", "narrow"))
    ]
    return replace(ok(), plan={"Plan": {"Node Type": "Append", "Plan Rows": 6, "Plans": parts}})


def duel(estimate: Estimate, tested: Case = CASE, rows: Observation | None = None) -> tuple[Verdict, ...]:
    def respond(run: Run) -> CaseObservation:
        if run.plannings:
            return seen(plan(estimate, run))
        return seen(rows or ok("1"))

    return judged(Cert(), tested, respond)


def test_a_restriction_with_fewer_expected_rows_agrees() -> None:
    assert duel(lambda name, run: 10 if name.startswith("pgduel_wide") else 9) == (Agree(1),)
    assert duel(lambda name, run: 10) == (Agree(1),)


def test_a_restriction_with_more_expected_rows_is_a_finding() -> None:
    verdicts = duel(lambda name, run: 11 if name == NARROW and run.arm == "patched" else 10)
    found = finding(verdicts[:1])
    assert (found.oracle, found.arms, found.step) == ("cert", ("master", "patched"), 0)
    assert found.summary == "step 0: 11 rows are expected, 10 without the restriction: one more condition"
    assert [each.planned for each in found.evidence] == [True, True]
    assert found.evidence[1].sql == "SELECT 1 FROM a WHERE (a.x <> 1) AND a.x IS NOT NULL"


def test_a_fault_of_all_arms_is_the_bases_own() -> None:
    found = finding(duel(lambda name, run: 11 if name == NARROW else 10)[:1])
    assert found.shown_by_all


def test_estimates_of_at_most_one_row_are_no_finding() -> None:
    assert duel(lambda name, run: 1) == (Agree(1),)
    assert duel(lambda name, run: 0 if name.startswith("pgduel_wide") else 7) == (NotApplicable(),)


def test_estimates_that_differ_once_are_unstable() -> None:
    verdicts = duel(lambda name, run: 11 if name == NARROW and not run.repetition else 10)
    assert isinstance(verdicts[0], Unstable)


def test_a_restriction_that_leaves_more_empty_partitions_is_a_doubt() -> None:
    sides = ("at most 10 rows", "11 rows")
    expected = Inconclusive("one more condition: with it, more empty partitions are scanned", 0, sides)
    assert more_partitions(ok())[0] == expected
    assert more_partitions(error("42501"))[0] == expected
    assert finding(more_partitions(ok("1"))[:1])


def more_partitions(content: Observation) -> tuple[Verdict, ...]:
    """Return the verdicts if restricted queries scan another partition, which has this content."""

    def respond(run: Run) -> CaseObservation:
        if run.plannings:
            return seen(plan(lambda name, run: 11 if name == NARROW else 10, run, "b"))
        return seen(content if any('"b"' in sql for _, sql in run.instead) else ok("1"))

    return judged(Cert(), CASE, respond)


def test_extended_statistics_may_be_more_exact() -> None:
    assert duel(lambda name, run: 11 if name == NARROW else 10, rows=replace(ok(), rows=())) == (NotApplicable(),)


def test_plans_with_one_time_filters_are_not_judged() -> None:
    scan = {"Node Type": "Seq Scan", "Plan Rows": 9}
    gated = {"Node Type": "Result", "Plan Rows": 9, "Plans": [scan]}
    assert is_simple(gated)
    assert not is_simple(gated | {"One-Time Filter": "(to_date('1', 'D') = '2024-01-01'::date)"})


def test_cases_outside_of_the_sample_are_not_judged() -> None:
    others = [replace(CASE, samples=(), steps=(query(f"SELECT a.x FROM a WHERE a.x <> {n}"),)) for n in range(200)]
    skipped = next(each for each in others if each not in ESTIMATED)
    assert duel(lambda name, run: 11 if name == NARROW else 10, skipped) == (NotApplicable(),)


def failing(again: str, sqlstate: str = "22003") -> tuple[Verdict, ...]:
    """Judge a query that cannot fail, with a planner error on `patched`; `again` is its SQLSTATE in repetitions."""

    def respond(run: Run) -> CaseObservation:
        if run.plannings and run.arm == "patched":
            return seen(error(again if run.repetition else sqlstate), ok())
        return seen(plan(lambda name, run: 10, run) if run.plannings else ok("1"), ok())

    return judged(Cert(), replace(CASE, steps=(*CASE.steps, Step("CREATE TABLE a (x int)"))), respond)


def test_an_error_of_the_planner_that_nothing_can_raise_is_a_finding() -> None:
    found = finding(failing("22003")[:1])
    assert (found.arms, found.step, found.actual[:13]) == (("master", "patched"), 0, "ERROR: 22003:")
    once = failing("22012")[0]
    assert isinstance(once, Unstable)


def test_any_other_error_is_inconclusive_with_both_sides() -> None:
    doubt = failing("42883", "42883")[0]
    assert doubt == Inconclusive("queries are not planned")
    assert isinstance(doubt, Inconclusive)
    assert (doubt.step, doubt.sides) == (0, ("a plan", "ERROR: 42883: it failed"))


@pytest.mark.parametrize("cut", [timeout(), LOST])
def test_queries_that_are_not_planned_to_the_end_are_inconclusive(cut: Observation) -> None:
    def respond(run: Run) -> CaseObservation:
        if run.plannings and run.arm == "patched":
            return seen(cut)
        return seen(plan(lambda name, run: 10, run) if run.plannings else ok("1"))

    assert Inconclusive("queries are not planned to the end") in judged(Cert(), CASE, respond)


def test_a_type_without_equality_leaves_the_other_restrictions() -> None:
    def respond(run: Run) -> CaseObservation:
        if run.plannings and any("DISTINCT" in sql for _, sql in run.instead):
            return seen(error("42883"))
        return seen(plan(lambda name, run: 11 if name == NARROW else 10, run) if run.plannings else ok("1"))

    assert finding(judged(Cert(), CASE, respond)[:1]).origin == "more rows expected: one more condition"
