"""Estimates that contradict each other, and what only seems to; on plans made by hand."""

from collections.abc import Callable
from dataclasses import replace

from oracles.cert.oracle import ESTIMATED, Cert, is_simple
from oracles.model.case import Case
from oracles.model.observation import CaseObservation, Observation, Run
from oracles.model.oracle import Agree, NotApplicable, Unstable, Verdict
from tests.oracles.observed import case, finding, judged, ok, query, seen

PLAYED = case(query("SELECT a.x FROM a WHERE a.x <> 1"), samples=(ESTIMATED,))
Estimate = Callable[[str, Run], int]


def plan(estimate: Estimate, run: Run) -> Observation:
    """Return the plan of the combined statement, each of whose parts is expected to return what `estimate` says."""
    parts = [
        {"Node Type": "Seq Scan", "Plan Rows": estimate(name, run), "Subplan Name": f"CTE {name}"}
        for name in ("w0", "n0", "w1", "n1", "w2", "n2")
    ]
    return replace(ok(), plan={"Plan": {"Node Type": "Append", "Plan Rows": 6, "Plans": parts}})


def duel(estimate: Estimate, played: Case = PLAYED, known: Observation | None = None) -> tuple[Verdict, ...]:
    def respond(run: Run) -> CaseObservation:
        if run.plannings:
            return seen(plan(estimate, run))
        return seen(known or ok("1"))

    return judged(Cert(), played, respond)


def test_fewer_rows_are_expected_of_what_restricts() -> None:
    assert duel(lambda name, run: 10 if name.startswith("w") else 9) == (Agree(1),)
    assert duel(lambda name, run: 10) == (Agree(1),)


def test_more_are_a_finding_on_the_arm_that_expects_them() -> None:
    verdicts = duel(lambda name, run: 11 if name == "n0" and run.arm == "patched" else 10)
    found = finding(verdicts[:1])
    assert (found.oracle, found.arms, found.step) == ("cert", ("master", "patched"), 0)
    assert found.summary == "step 0: 11 rows are expected, 10 without the restriction: one more condition"
    assert [each.planned for each in found.beside] == [True, True]
    assert found.beside[1].sql == "SELECT 1 FROM a WHERE (a.x <> 1) AND a.x IS NOT NULL"


def test_what_all_arms_expect_is_the_bases_own() -> None:
    found = finding(duel(lambda name, run: 11 if name == "n0" else 10)[:1])
    assert found.shown_by_all


def test_one_row_is_the_least_and_no_rows_are_known_not_expected() -> None:
    assert duel(lambda name, run: 1) == (Agree(1),)
    assert duel(lambda name, run: 0 if name.startswith("w") else 7) == (NotApplicable(),)


def test_what_does_not_show_again_is_unstable() -> None:
    verdicts = duel(lambda name, run: 11 if name == "n0" and not run.repetition else 10)
    assert isinstance(verdicts[0], Unstable)


def test_extended_statistics_may_know_better() -> None:
    assert duel(lambda name, run: 11 if name == "n0" else 10, known=replace(ok(), rows=())) == (NotApplicable(),)


def test_nothing_is_said_of_what_is_asked_once_for_all_rows() -> None:
    scan = {"Node Type": "Seq Scan", "Plan Rows": 9}
    gated = {"Node Type": "Result", "Plan Rows": 9, "Plans": [scan]}
    assert is_simple(gated)
    assert not is_simple(gated | {"One-Time Filter": "(to_date('1', 'D') = '2024-01-01'::date)"})


def test_cases_that_are_not_sampled_are_not_looked_at() -> None:
    others = [replace(PLAYED, samples=(), steps=(query(f"SELECT a.x FROM a WHERE a.x <> {n}"),)) for n in range(200)]
    skipped = next(each for each in others if each not in ESTIMATED)
    assert duel(lambda name, run: 11 if name == "n0" else 10, skipped) == (NotApplicable(),)
