"""Tests of the counters of cases, of their shares, and of a campaign's health."""

from collections import Counter
from typing import Any

from fuzz.campaign.counters import NOT_EXECUTED, Counters, Plans, failed_checks
from fuzz.execution.judging import JudgedCase
from oracles.model.case import Case, Kind, Step
from oracles.model.finding import Finding
from oracles.model.mode import Mode
from oracles.model.observation import CaseObservation, Observation, Outcome
from oracles.model.oracle import Agree, Inconclusive, NotApplicable, Unstable

OK, ERROR, SKIPPED = (Observation(outcome) for outcome in (Outcome.OK, Outcome.ERROR, Outcome.SKIPPED))


def test_expected_errors_do_not_count_as_invalid() -> None:
    case = Case(
        "a",
        (Step("CREATE TABLE t (a int)"),),
        (
            Step("SELECT 1", Kind.QUERY, tags=("plain",)),
            Step("SELECT 1/0", Kind.QUERY, may_fail=True, tags=("error", "plain")),
            Step("SELEC", Kind.QUERY),
            Step("SELECT 2", Kind.QUERY, tags=("never run",)),
        ),
    )
    counters = Counters()
    counters.count_steps("a", case, CaseObservation("master", (OK, OK, ERROR, ERROR, SKIPPED)))
    assert (counters.steps["a"], counters.valid["a"]) == (3, 2)
    assert counters.tags == {("a", "plain"): 2, ("a", "error"): 1}


def test_a_statement_that_several_oracles_compared_is_judged_once() -> None:
    finding = Finding("leak", ("master", "patched"), "x", None, "", "", "")
    verdicts = (
        ("result", Agree(5, answers=7)),
        ("result", Agree(4)),  # compares arms
        ("crash", Agree(5)),
        ("leak", finding),
        ("leak", Unstable("moody")),
        ("leak", Inconclusive("timeout")),
    )
    counters = Counters()
    counters.count_verdicts("a", JudgedCase(verdicts, {}))
    assert counters.statements_judged == 9
    assert counters.compared == {"result": 7, "crash": 0}
    assert counters.judged_by == {("result", "a"): 9, ("crash", "a"): 5, ("leak", "a"): 1}
    assert [counters.of_kind(kind) for kind in ("agree", "finding", "unstable", "inconclusive")] == [3, 1, 1, 1]
    assert counters.reasons == {("leak", "a", "unstable", "moody"): 1, ("leak", "a", "inconclusive", "timeout"): 1}


def test_plans_of_a_generator_are_counted_by_shape() -> None:
    counters = Counters()
    for shape in ("Seq Scan", "Seq Scan", "Sort(Seq Scan)"):
        counters.count_plan("a", shape)
    counters.count_plan("b", "Result")
    assert counters.all_plans()["a"] == Plans(explained=3, shapes=2, once=1)
    counters.add(counters)
    assert counters.all_plans()["a"] == Plans(explained=6, shapes=2, once=0)


def test_counters_add_up() -> None:
    one = Counters(cases=Counter(a=1), tags=Counter({("a", "x"): 2}), seconds=1.5)
    one.add(Counters(cases=Counter(a=1, b=2), tags=Counter({("a", "x"): 1}), seconds=0.5, client_cpu=3.0))
    assert one == Counters(cases=Counter(a=2, b=2), tags=Counter({("a", "x"): 3}), seconds=2.0, client_cpu=3.0)


def test_a_part_is_counted_under_its_modes() -> None:
    case = Case("regress", (Step("SELECT 1"),), (Step("SELECT 2"),), (Mode("parallel"), Mode("cursor")), "sql/int4")
    verdicts = (("result", Agree(2)), ("result", Agree(1)), ("result", Inconclusive("timeout")), ("crash", Agree(9)))
    judged = JudgedCase(verdicts, {})
    counters = Counters()
    for _ in range(2):
        counters.count_part(case, judged)
    key = ("regress", "parallel+cursor", "sql/int4")
    expected = {"cases": 2, "statements": 4, "compared": 6, "inconclusive: timeout": 2}
    assert counters.parts == {(*key, what): count for what, count in expected.items()}


CANARIES = {"planted": 50, "caught": 50, "retried": 5}


def _counters(**counters: Counter[Any]) -> Counters:
    sound = {
        "cases": Counter(joins=100),
        "judged": Counter(joins=1000),
        "steps": Counter(joins=1000),
        "valid": Counter(joins=1000),
        "verdicts": Counter({("result", "joins", "agree"): 100}),
    }
    return Counters(**{**sound, **counters})  # type: ignore[arg-type]


def test_a_sound_campaign_passes() -> None:
    assert failed_checks(_counters(), CANARIES) == ()


def test_no_statement_compared() -> None:
    assert failed_checks(_counters(judged=Counter()), CANARIES) == ("no statement was compared",)


def test_too_many_canaries_were_retried() -> None:
    (line,) = failed_checks(_counters(), {**CANARIES, "retried": 6})
    assert line == "6 of 50 planted bugs were found only when planted again, at most 10% may"


def test_too_many_statements_failed() -> None:
    (line,) = failed_checks(_counters(valid=Counter(joins=960)), CANARIES)
    assert line.startswith("joins: only 96.0% of the statements succeeded")
    assert failed_checks(_counters(valid=Counter(joins=970)), CANARIES) == ()


def _undecided(oracle: str, kind: str, statements: int, cases: int) -> Counters:
    """Return counters of an oracle that judged 60 statements, and could not decide some others."""
    return _counters(
        judged_by=Counter({(oracle, "joins"): 60}),
        undecided=Counter({(oracle, "joins", kind): statements}),
        judged_cases=Counter({(oracle, "joins"): cases}),
    )


def test_an_oracle_that_could_not_judge() -> None:
    (line,) = failed_checks(_undecided("leak", "inconclusive", 16, cases=20), CANARIES)
    assert line == "leak on joins: 21% of the statements were inconclusive"
    assert failed_checks(_undecided("leak", "inconclusive", 15, cases=20), CANARIES) == ()


def test_an_oracle_with_mostly_doubts() -> None:
    (line,) = failed_checks(_undecided("plan", "unstable", 90, cases=20), CANARIES)
    assert line == "plan on joins: 60% of the statements were unstable"
    assert failed_checks(_undecided("plan", "unstable", 60, cases=20), CANARIES) == ()


def test_doubts_about_few_cases_fail_no_check() -> None:
    assert failed_checks(_undecided("rescan", "unstable", 400, cases=19), CANARIES) == ()


def test_a_doubt_about_a_case_as_a_whole_counts_for_all_its_statements() -> None:
    verdicts = (("result", Agree(5)), ("result", Unstable("differed", 3)), ("leak", Inconclusive("connection lost")))
    counters = Counters()
    counters.count_verdicts("joins", JudgedCase((*verdicts, ("tlp", NotApplicable())), {}))
    assert counters.undecided == {("result", "joins", "unstable"): 1, ("leak", "joins", "inconclusive"): 5}
    assert counters.judged_cases == {("result", "joins"): 1, ("leak", "joins"): 1}


def test_failures_of_pgduel_itself() -> None:
    counters = _counters()
    counters.failed("joins", "KeyError")
    assert failed_checks(counters, CANARIES) == ("pgduel itself failed on 1 cases of joins",)
    assert counters.reasons[NOT_EXECUTED, "joins", "inconclusive", "KeyError"] == 1


def test_a_failure_of_one_oracle_does_not_count_its_case_twice() -> None:
    counters = _counters()
    before = counters.cases["joins"]
    counters.failed_in_part("joins", "KeyError")
    assert failed_checks(counters, CANARIES) == ("pgduel itself failed on 1 cases of joins",)
    assert counters.cases["joins"] == before
