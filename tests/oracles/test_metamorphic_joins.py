"""Tests of the oracle `metamorphic_joins` on hand-made observations."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from fuzz.execution.judging import judge_case
from oracles.metamorphic_joins import REWRITTEN, MetamorphicJoins
from oracles.model.case import Case
from oracles.model.observation import CaseObservation, Observation, Run
from oracles.model.oracle import Agree, Inconclusive, NotApplicable, Unstable, Verdict
from tests.features import SHIPPED
from tests.oracles.observed import LOST, StubExecutor, assigned, case, error, finding, judged, ok, query, seen, timeout

SQL = "SELECT a.x, b.y FROM a LEFT JOIN b ON a.k = b.k"
CASE = case(query(SQL), samples=(REWRITTEN,))
FILTER = "enable_hashjoin_bloom"

Answer = Callable[[str, Run], Observation]


def variant_of(run: Run) -> str:
    """Return the query variant of a run."""
    sql = dict(run.instead).get(0, "")
    if FILTER in sql:
        return "unfiltered"
    if sql in ("", SQL):
        return "plain"
    return "whole" if "UNION" not in sql else "halves" if "SELECT *" in sql else "parts"


def duel(answer: Answer, tested: Case = CASE, *, has_filter: bool = True) -> tuple[Verdict, ...]:
    """Judge answers; `answer` returns them for a query variant and a run."""

    def respond(run: Run) -> CaseObservation:
        lacking = (FILTER,) if variant_of(run) == "unfiltered" and not has_filter else ()
        return replace(seen(*(answer(variant_of(run), run) for _ in tested.steps)), lacking=lacking)

    return judged(MetamorphicJoins().of(SHIPPED), tested, respond)


def on(arm: str, variants: Sequence[str], wrong: Observation) -> Answer:
    """Return an answer with `wrong` for these query variants on an arm, and with equal rows otherwise."""
    return lambda variant, run: wrong if run.arm == arm and variant in variants else ok("1", "2")


def test_equal_answers_agree() -> None:
    assert duel(lambda variant, run: ok("1", "2")) == (Agree(1),)


def test_rows_in_another_order_agree() -> None:
    ordered = case(query(SQL, ordered=True), samples=(REWRITTEN,))
    assert duel(on("patched", ["parts"], ok("2", "1")), ordered) == (Agree(1),)


@pytest.mark.parametrize(
    ("variants", "relation", "evidence"),
    [
        (["plain", "unfiltered"], "outer join is not its parts", 1),
        (["parts"], "outer join is not its parts", 1),
        (["whole"], "side of a join is not its halves", 2),
        (["halves"], "side of a join is not its halves", 2),
        (["unfiltered"], "Bloom filter changes rows", 2),
    ],
)
def test_a_violated_relation_is_a_finding(variants: Sequence[str], relation: str, evidence: int) -> None:
    found = finding(duel(on("patched", variants, ok("1"))))
    assert (found.origin, found.arms, found.step) == (relation, ("master", "patched"), 0)
    assert len(found.evidence) == evidence
    assert all(each.sql in f"{found.expected}\n{found.actual}" for each in found.evidence)


def test_a_setting_that_all_runs_lack_does_not_prevent_judgement() -> None:
    answer = on("patched", ["parts"], ok("1"))

    def respond(run: Run) -> CaseObservation:
        return replace(seen(answer(variant_of(run), run)), lacking=("debug_force_hashjoin_bloom",))

    assert finding(judged(MetamorphicJoins(), CASE, respond)).origin == "outer join is not its parts"


def test_evidence_has_the_setting() -> None:
    evidence = finding(duel(on("patched", ["unfiltered"], ok("1")))).evidence
    assert [(each.sql, each.settings) for each in evidence] == [(SQL, ()), (SQL, ((FILTER, "off"),))]


def test_an_arm_without_the_filter_is_not_judged_by_it() -> None:
    broken = on("patched", ["unfiltered"], ok("1"))
    assert duel(broken, has_filter=False) == (Agree(1),)
    inner = case(query("SELECT a.x FROM a JOIN b ON a.k = b.k"), samples=(REWRITTEN,))
    assert duel(broken, inner, has_filter=False) == (NotApplicable(),)
    assert finding(duel(broken, inner))


def test_one_arm_is_enough() -> None:
    def both(variant: str, _: Run) -> Observation:
        return ok("1") if variant == "parts" else ok("1", "2")

    found = finding(duel(both))
    assert found.arms == ("master", "master")
    judged = judge_case(
        StubExecutor(lambda run: seen(both(variant_of(run), run))), assigned((MetamorphicJoins(),), ("only",)), CASE
    )
    assert judged.findings[0].arms == ("only", "only")


def test_a_difference_in_one_run_is_no_finding() -> None:
    def answer(variant: str, run: Run) -> Observation:
        wrong = variant == "parts" and run.arm == "patched" and not run.repetition
        return ok("1") if wrong else ok("1", "2")

    assert duel(answer) == (Unstable("outer join is not its parts: not in each run"), Agree(1))


def test_a_doubt_about_the_reference_alone_is_kept() -> None:
    def answer(variant: str, run: Run) -> Observation:
        wrong = variant == "parts" and run.arm == "master" and not run.repetition
        return ok("1") if wrong else ok("1", "2")

    assert duel(answer) == (Unstable("outer join is not its parts: not in each run"), Agree(1))


def test_a_doubt_about_all_arms_is_one() -> None:
    def answer(variant: str, run: Run) -> Observation:
        return ok("1") if variant == "parts" and not run.repetition else ok("1", "2")

    assert duel(answer) == (Unstable("outer join is not its parts: not in each run"), Agree(1))


def test_a_variant_that_differs_from_itself_is_no_finding() -> None:
    def answer(variant: str, run: Run) -> Observation:
        return ok(f"{variant} {run.repetition}") if variant == "parts" else ok("1")

    assert duel(answer)[0] == Unstable("outer join is not its parts: not in each run")


@pytest.mark.parametrize("cut", [timeout(), error("22012"), LOST])
def test_a_rewritten_query_that_fails_is_inconclusive(cut: Observation) -> None:
    reason = "one variant ends in an error" if cut.sqlstate == "22012" else "a variant was not executed to its end"
    unclear = Inconclusive(f"outer join is not its parts: {reason}")
    assert duel(on("patched", ["parts"], cut)) == (unclear, Agree(1))


def test_a_query_that_fails_is_not_rewritten() -> None:
    assert duel(lambda variant, run: error("22012")) == (NotApplicable(),)


def test_other_queries_are_left_empty_unless_they_fail() -> None:
    steps = (query("SELECT 1"), query(SQL), replace(query("SELECT $1"), params=("1",)), query("SELECT 1 / 0"))
    executor = StubExecutor(lambda run: seen(ok("1"), ok("1"), ok("1"), error("22012")))
    judge_case(executor, assigned((MetamorphicJoins(),), ("a", "b")), case(*steps, samples=(REWRITTEN,)))
    rewritten = [dict(run.instead) for run in executor.requested if run.instead]
    assert rewritten
    assert all(each.keys() == {0, 1, 2} and each[0] == each[2] == "SELECT" for each in rewritten)


def test_a_share_of_cases_is_judged() -> None:
    judged_share = sum(case(query(f"{SQL} WHERE a.x > {number}")) in REWRITTEN for number in range(2400)) / 2400
    assert 0.7 < judged_share * REWRITTEN.share < 1.3
