"""Tests of the oracle `reported`: another fuzzer's report that two queries have equal rows."""

from dataclasses import replace

from oracles.model.case import Case, SameRows, Step
from oracles.model.observation import CaseObservation, Observation, ResultColumn, Run
from oracles.model.oracle import Agree, Inconclusive, NotApplicable, Unstable, Verdict
from oracles.reported import Reported
from tests.oracles.observed import case, error, finding, judged, ok, query, seen

LEFT, RIGHT = "SELECT a FROM t", "SELECT b FROM t"


def reported(sql: str) -> Step:
    return replace(query(sql), same_rows=SameRows.BY_MEANING)


CASE = case(query(LEFT), reported(RIGHT))


def duel(answers: dict[str, Observation], tested: Case = CASE) -> tuple[Verdict, ...]:
    def respond(run: Run) -> CaseObservation:
        instead = dict(run.instead)
        sqls = [instead.get(position, step.sql) for position, step in enumerate(tested.all_steps)]
        return seen(*(answers.get(sql, ok()) for sql in sqls))

    return judged(Reported(), tested, respond)


def test_equal_rows_in_any_order_agree() -> None:
    assert duel({LEFT: ok("1", "2"), RIGHT: ok("2", "1")}) == (Agree(1),)


def test_other_rows_are_a_finding_that_shows_both_queries() -> None:
    found = finding(duel({LEFT: ok("1", "2"), RIGHT: ok("1")})[:1])
    assert (found.oracle, found.step, found.shown_by_all) == ("reported", 1, True)
    assert [each.sql for each in found.evidence] == [LEFT, RIGHT]


def test_logs_of_triggers_name_the_statement_that_they_log() -> None:
    logs = query(LEFT), replace(query(RIGHT), same_rows=SameRows.BY_TRIGGERS)
    tested = case(
        Step("INSERT INTO t VALUES (1)"), Step("merge INTO t USING s ON true WHEN MATCHED THEN DO NOTHING"), *logs
    )
    found = finding(duel({LEFT: ok("1"), RIGHT: ok("2")}, tested)[:1])
    assert found.origin == "transition tables and row triggers differ after MERGE"


def test_queries_without_a_report_are_not_compared() -> None:
    assert duel({LEFT: ok("1"), RIGHT: ok("2")}, case(query(LEFT), query(RIGHT))) == (NotApplicable(),)


def test_a_query_that_fails_is_not_judged() -> None:
    assert duel({LEFT: error("22012"), RIGHT: ok("2")}) == (NotApplicable(),)
    assert not any(isinstance(each, Inconclusive) for each in duel({LEFT: ok("1"), RIGHT: error("22012")}))


def test_sums_of_floating_point_numbers_are_not_compared() -> None:
    rounded = replace(ok("0.1"), columns=(ResultColumn("sum", "701"),))
    assert duel({LEFT: rounded, RIGHT: replace(rounded, rows=ok("0.2").rows)}) == (NotApplicable(),)


def test_a_difference_in_one_run_is_no_finding() -> None:
    def respond(run: Run) -> CaseObservation:
        again = run.repetition == 1
        wrong = dict(run.instead).get(1) == RIGHT and not again
        return seen(ok(), ok("2" if wrong else "1"))

    assert isinstance(judged(Reported(), CASE, respond)[0], Unstable)


def test_a_reduced_case_keeps_the_reported_queries() -> None:
    whole = Case(
        "by_hand", (Step("CREATE TABLE t (a int, b int)"), Step("ANALYZE")), (query(), query(LEFT), reported(RIGHT))
    )
    fewer = replace(whole, scene=whole.scene[:1], steps=whole.steps[1:])
    assert Reported().may_become(whole, fewer)
    assert not Reported().may_become(whole, replace(whole, steps=(query(LEFT), reported("SELECT 1"))))
    assert not Reported().may_become(whole, replace(whole, steps=(query(), reported(RIGHT))))


def test_a_report_on_the_rows_of_a_scene_keeps_the_scene() -> None:
    there = replace(query("SELECT true"), same_rows=SameRows.BY_CONTENT)
    whole = Case("by_hand", (Step("CREATE TABLE t (a int)"), Step("INSERT INTO t VALUES (1)")), (query(LEFT), there))
    assert Reported().may_become(whole, replace(whole, modes=()))
    assert not Reported().may_become(whole, replace(whole, scene=whole.scene[:1]))
