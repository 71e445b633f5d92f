"""Claims about joins, on observations made by hand: what breaks them, and what only seems to."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from fuzz.execution.judging import judge_case
from oracles.metamorphic_joins import REWRITTEN, MetamorphicJoins
from oracles.model.case import Case
from oracles.model.observation import CaseObservation, Observation, Run
from oracles.model.oracle import Agree, Inconclusive, NotApplicable, Unstable, Verdict
from tests.features import SHIPPED
from tests.oracles.observed import LOST, ByHand, case, error, finding, judged, ok, query, seated, seen, timeout

SQL = "SELECT a.x, b.y FROM a LEFT JOIN b ON a.k = b.k"
CASE = case(query(SQL), samples=(REWRITTEN,))
FILTER = "enable_hashjoin_bloom"

Answer = Callable[[str, Run], Observation]


def asked(run: Run) -> str:
    """Return which way a run is of."""
    if any(FILTER in dict(mode.settings) for mode in run.modes):
        return "unfiltered"
    sql = dict(run.instead).get(0, "")
    if not sql:
        return "plain"
    return "whole" if "UNION" not in sql else "halves" if "SELECT *" in sql else "parts"


def duel(answer: Answer, played: Case = CASE, *, knows_filter: bool = True) -> tuple[Verdict, ...]:
    """Judge answers by way and run."""

    def respond(run: Run) -> CaseObservation:
        lacking = (FILTER,) if asked(run) == "unfiltered" and not knows_filter else ()
        return replace(seen(*(answer(asked(run), run) for _ in played.steps)), lacking=lacking)

    return judged(MetamorphicJoins().of(SHIPPED), played, respond)


def on(arm: str, ways: Sequence[str], wrong: Observation) -> Answer:
    """Return what answers `wrong` to these ways on an arm, and one and the same otherwise."""
    return lambda asked, run: wrong if run.arm == arm and asked in ways else ok("1", "2")


def test_equal_answers_agree() -> None:
    assert duel(lambda asked, run: ok("1", "2")) == (Agree(1),)


def test_rows_in_another_order_agree() -> None:
    ordered = case(query(SQL, ordered=True), samples=(REWRITTEN,))
    assert duel(on("patched", ["parts"], ok("2", "1")), ordered) == (Agree(1),)


@pytest.mark.parametrize(
    ("ways", "claim", "beside"),
    [
        (["plain", "unfiltered"], "outer join is not its parts", 1),
        (["parts"], "outer join is not its parts", 1),
        (["whole"], "side of a join is not its halves", 2),
        (["halves"], "side of a join is not its halves", 2),
        (["unfiltered"], "Bloom filter changes rows", 1),
    ],
)
def test_a_broken_claim_is_a_finding(ways: Sequence[str], claim: str, beside: int) -> None:
    found = finding(duel(on("patched", ways, ok("1"))))
    assert (found.origin, found.arms, found.step) == (claim, ("master", "patched"), 0)
    assert len(found.beside) == beside
    assert all(each.sql in f"{found.expected}\n{found.actual}" for each in found.beside)


def test_what_all_runs_of_a_case_lack_is_no_reason_to_say_nothing() -> None:
    answer = on("patched", ["parts"], ok("1"))

    def respond(run: Run) -> CaseObservation:
        return replace(seen(answer(asked(run), run)), lacking=("debug_force_hashjoin_bloom",))

    assert finding(judged(MetamorphicJoins(), CASE, respond)).origin == "outer join is not its parts"


def test_the_setting_stands_beside_the_query() -> None:
    (beside,) = finding(duel(on("patched", ["unfiltered"], ok("1")))).beside
    assert (beside.sql, beside.settings) == (SQL, ((FILTER, "off"),))


def test_an_arm_without_the_filter_is_not_taken_to_agree() -> None:
    broken = on("patched", ["unfiltered"], ok("1"))
    assert duel(broken, knows_filter=False) == (Agree(1),)
    inner = case(query("SELECT a.x FROM a JOIN b ON a.k = b.k"), samples=(REWRITTEN,))
    assert duel(broken, inner, knows_filter=False) == (NotApplicable(),)
    assert finding(duel(broken, inner))


def test_one_arm_is_enough() -> None:
    def both(asked: str, _: Run) -> Observation:
        return ok("1") if asked == "parts" else ok("1", "2")

    found = finding(duel(both))
    assert found.arms == ("master", "master")
    judged = judge_case(ByHand(lambda run: seen(both(asked(run), run))), seated((MetamorphicJoins(),), ("only",)), CASE)
    assert judged.findings[0].arms == ("only", "only")


def test_what_differs_once_is_no_finding() -> None:
    def answer(asked: str, run: Run) -> Observation:
        wrong = asked == "parts" and run.arm == "patched" and not run.repetition
        return ok("1") if wrong else ok("1", "2")

    assert duel(answer) == (Unstable("outer join is not its parts: not in each run"), Agree(1))


def test_what_differs_from_itself_is_no_finding() -> None:
    def answer(asked: str, run: Run) -> Observation:
        return ok(f"{asked} {run.repetition}") if asked == "parts" else ok("1")

    assert duel(answer)[0] == Unstable("outer join is not its parts: not in each run")


@pytest.mark.parametrize("cut", [timeout(), error("22012"), LOST])
def test_a_rewritten_query_that_fails_says_nothing(cut: Observation) -> None:
    unclear = Inconclusive("outer join is not its parts: a variant was not executed to its end")
    assert duel(on("patched", ["parts"], cut)) == (unclear, Agree(1))


def test_a_query_that_fails_is_not_rewritten() -> None:
    assert duel(lambda asked, run: error("22012")) == (NotApplicable(),)


def test_other_queries_are_left_empty_unless_they_have_parameters_or_fail() -> None:
    steps = (query("SELECT 1"), query(SQL), replace(query("SELECT $1"), params=("1",)), query("SELECT 1 / 0"))
    executor = ByHand(lambda run: seen(ok("1"), ok("1"), ok("1"), error("22012")))
    judge_case(executor, seated((MetamorphicJoins(),), ("a", "b")), case(*steps, samples=(REWRITTEN,)))
    rewritten = [dict(run.instead) for run in executor.asked if run.instead]
    assert rewritten
    assert all(each.keys() == {0, 1} and each[0] == "SELECT" for each in rewritten)


def test_a_share_of_cases_is_judged() -> None:
    judged_share = sum(case(query(f"{SQL} WHERE a.x > {number}")) in REWRITTEN for number in range(2400)) / 2400
    assert 0.7 < judged_share * REWRITTEN.share < 1.3
