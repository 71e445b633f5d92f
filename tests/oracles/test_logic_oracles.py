"""Tests of the metamorphic oracles on hand-made observations."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from fuzz.execution.judging import judge_case
from oracles.coddtest import FOLDED, Coddtest
from oracles.dqp import Dqp
from oracles.eet import Eet
from oracles.framework.metamorphic import Metamorphic
from oracles.model.case import Case, Step
from oracles.model.finding import Finding
from oracles.model.mode import Mode, Protocol
from oracles.model.observation import CaseObservation, Observation, ResultColumn, Run
from oracles.model.oracle import Agree, Inconclusive, NotApplicable, Unstable, Verdict
from oracles.norec import Norec
from oracles.optimization_fence import OptimizationFence
from oracles.pagination import Pagination
from oracles.rescan import Rescan
from oracles.shared_cte import SharedCte
from oracles.tlp import Tlp
from tests.oracles.observed import (
    StubExecutor,
    agreed,
    assigned,
    case,
    error,
    finding,
    judged,
    ok,
    query,
    row,
    seen,
    timeout,
)

SQL = "SELECT a.x FROM a WHERE a.x > 1"
ORACLES = (Tlp(), Norec(), Dqp(), Eet(), Coddtest(), OptimizationFence(), Pagination(), Rescan(), SharedCte())
BROKEN = {  # oracle → text in the queries of one side only
    "tlp": "IS NULL",
    "norec": "CASE WHEN",
    "dqp": "SET enable_hashjoin",
    "eet": "NULL",
    "coddtest": "(SELECT 1)",
    "optimization_fence": "OFFSET 0",
    "pagination": "AS page",
    "rescan": "AS again",
    "shared_cte": "AS MATERIALIZED",
}
CLOSED_EARLY = Mode("closed_early", protocol=Protocol.CLOSED_EARLY, changes_results=True)

each_oracle = pytest.mark.parametrize("oracle", ORACLES, ids=[oracle.name for oracle in ORACLES])
Answer = Callable[[str, Run], Observation]


def case_for(oracle: Metamorphic, *modes: Mode) -> Case:
    return case(query(SQL), modes=modes, samples=oracle.samples)


def duel(oracle: Metamorphic, tested: Case, answer: Answer) -> tuple[Verdict, ...]:
    """Judge responses; `answer` returns them for the SQL in place of the first query, and the run."""
    return judged(oracle, tested, lambda run: seen(*(answer(dict(run.instead).get(0, ""), run) for _ in tested.steps)))


def wrong_on(arm: str, oracle: Metamorphic, wrong: Observation) -> Answer:
    """Return an answer with `wrong` for one side of each relation on an arm, and with equal rows otherwise."""
    return lambda sql, run: wrong if run.arm == arm and BROKEN[oracle.name] in sql else ok("1", "2")


@each_oracle
def test_equal_answers_agree(oracle: Metamorphic) -> None:
    assert duel(oracle, case_for(oracle), lambda sql, run: ok("1", "2")) == (Agree(1),)


@each_oracle
def test_rows_in_another_order_agree(oracle: Metamorphic) -> None:
    tested = case(query(SQL, ordered=True), samples=oracle.samples)
    assert duel(oracle, tested, wrong_on("patched", oracle, ok("2", "1"))) == (Agree(1),)


@each_oracle
def test_a_violated_relation_is_a_finding_with_its_queries(oracle: Metamorphic) -> None:
    verdicts = duel(oracle, case_for(oracle), wrong_on("patched", oracle, ok("1")))
    found = finding([verdict for verdict in verdicts if not isinstance(verdict, Unstable)][:1])
    assert (found.oracle, found.arms, found.step) == (oracle.name, ("master", "patched"), 0)
    assert found.evidence
    assert all(each.sql in f"{found.expected}\n{found.actual}" for each in found.evidence)


@each_oracle
def test_an_arm_is_judged_alone(oracle: Metamorphic) -> None:
    answer = wrong_on("only", oracle, ok("1"))
    executor = StubExecutor(lambda run: seen(answer(dict(run.instead).get(0, ""), run)))
    judged = judge_case(executor, assigned((oracle,), ("only",)), case_for(oracle))
    assert {found.arms for found in judged.findings} == {("only", "only")}
    assert not any("as all arms do" in found.summary for found in judged.findings)


@each_oracle
@pytest.mark.parametrize("cut", [timeout(), error("22012")], ids=["timeout", "error"])
def test_a_query_that_does_not_end_is_inconclusive(oracle: Metamorphic, cut: Observation) -> None:
    first, *_, last = duel(oracle, case_for(oracle), wrong_on("patched", oracle, cut))
    assert isinstance(first, Inconclusive)
    assert isinstance(last, Agree | NotApplicable)


@each_oracle
def test_a_query_that_cannot_be_parsed_is_not_judged(oracle: Metamorphic) -> None:
    tested = case(query("SELECT a.x FROM a QUALIFY a.x > 1"), samples=oracle.samples)
    assert duel(oracle, tested, lambda sql, run: ok("1", "2")) == (NotApplicable(),)


@each_oracle
@pytest.mark.parametrize(("change", "statements"), [(ok(), 0), (error("42601"), 1)], ids=["succeeds", "fails"])
def test_no_query_is_judged_after_a_change_that_cannot_be_parsed(
    oracle: Metamorphic, change: Observation, statements: int
) -> None:
    tested = case(Step("CREATE NEWLY VIEW a"), query(SQL), samples=oracle.samples)
    assert judged(oracle, tested, lambda run: seen(change, ok("1", "2"))) == (agreed(statements),)


def with_table(oracle: Metamorphic) -> Case:
    """Return a case with the query's table, so that the query cannot fail."""
    return case(query(SQL), Step("CREATE TABLE a (x int)"), samples=oracle.samples)


@each_oracle
def test_an_error_that_no_part_of_a_query_can_raise_is_a_finding(oracle: Metamorphic) -> None:
    verdicts = duel(oracle, with_table(oracle), wrong_on("patched", oracle, error("22003")))
    found = finding([verdict for verdict in verdicts if not isinstance(verdict, Unstable)][:1])
    assert (found.arms, found.step) == (("master", "patched"), 0)
    assert found.origin.startswith("22003 in an unnamed function")
    assert any(f"query: {each.sql}" in found.actual for each in found.evidence)


@each_oracle
def test_such_an_error_that_occurs_once_is_unstable(oracle: Metamorphic) -> None:
    def answer(sql: str, run: Run) -> Observation:
        return error("22003") if BROKEN[oracle.name] in sql and not run.repetition else ok("1", "2")

    first = duel(oracle, with_table(oracle), answer)[0]
    assert isinstance(first, Unstable)
    assert (first.step, first.sides[1][:5]) == (0, "22003")


@pytest.mark.parametrize("sqlstate", ["0A000", "25P02", "42883", "53200", "54001", "57014", "XX000"])
@each_oracle
def test_an_error_that_any_query_may_raise_is_inconclusive_with_both_sides(oracle: Metamorphic, sqlstate: str) -> None:
    first = duel(oracle, with_table(oracle), wrong_on("patched", oracle, error(sqlstate)))[0]
    assert isinstance(first, Inconclusive)
    assert (first.step, first.sides) == (0, ("ok", f"{sqlstate}\n  ERROR: it failed"))


def test_a_query_that_cannot_fail_is_judged_even_if_the_case_itself_fails() -> None:
    failing = replace(error("22003"), columns=(ResultColumn("x", "23"),))
    found = finding(duel(Dqp(), with_table(Dqp()), lambda sql, run: failing)[:1])
    assert found.arms == ("master", "master")
    assert duel(Dqp(), with_table(Dqp()), lambda sql, run: error("22003")) == (NotApplicable(),)


def test_queries_after_a_failed_one_are_compared() -> None:
    tested = case(query(SQL), query("SELECT a.x FROM a WHERE a.x > 2"), samples=Dqp.samples)

    def respond(run: Run) -> CaseObservation:
        changed = run.arm == "patched" and BROKEN["dqp"] in dict(run.instead).get(0, "")
        return seen(error("22012") if changed else ok("1"), ok("3") if changed else ok("2"))

    assert (
        finding([each for each in judged(Dqp(), tested, respond) if not isinstance(each, Inconclusive)][:1]).step == 1
    )


def test_sums_of_floating_point_numbers_in_conditions_are_not_judged() -> None:
    for value, count in (("y::float8", 0), ("y", 1)):
        tested = case(query(f"SELECT x FROM a WHERE (SELECT sum({value}) FROM b) > a.x"), samples=Norec.samples)
        assert duel(Norec(), tested, lambda sql, run: ok("1")) == (agreed(count),)


@each_oracle
def test_a_difference_in_one_run_is_no_finding(oracle: Metamorphic) -> None:
    def answer(sql: str, run: Run) -> Observation:
        return ok("1") if BROKEN[oracle.name] in sql and not run.repetition else ok("1", "2")

    assert isinstance(duel(oracle, case_for(oracle), answer)[0], Unstable)


@each_oracle
def test_a_query_that_fails_is_not_judged(oracle: Metamorphic) -> None:
    assert duel(oracle, case_for(oracle), lambda sql, run: error("22012")) == (NotApplicable(),)


def test_sums_of_floating_point_numbers_are_not_judged() -> None:
    def answer(_: str, run: Run) -> Observation:
        return replace(ok("0.1" if run.instead else "0.2"), columns=(ResultColumn("sum", "701"),))

    for oracle in (Tlp(), Dqp(), Eet(), Coddtest()):
        assert duel(oracle, case_for(oracle), answer) == (NotApplicable(),)


@each_oracle
def test_both_sides_read_all_rows_although_the_protocol_cuts_rows(oracle: Metamorphic) -> None:
    tested = case_for(oracle, CLOSED_EARLY)
    assert finding(duel(oracle, tested, wrong_on("patched", oracle, ok("1", "3")))[:1])
    executor = StubExecutor(lambda run: seen(ok("1")))
    judge_case(executor, assigned((oracle,), ("a", "b")), tested)
    protocols = [run.modes[-1].protocol for run in executor.requested if run.instead]
    assert set(protocols) == {Protocol.SIMPLE}


@each_oracle
def test_variants_that_lack_parameters_are_not_executed(oracle: Metamorphic) -> None:
    given = replace(query("SELECT a.x FROM a WHERE a.x > $1::int AND a.y > 0"), params=("1",))
    executor = StubExecutor(lambda run: seen(ok("1")))
    judge_case(executor, assigned((oracle,), ("a", "b")), case(given, samples=oracle.samples))
    executed = [dict(run.instead)[0] for run in executor.requested if 0 in dict(run.instead)]
    assert [sql for sql in executed if "$1" not in sql or sql.startswith("SET ")] == []


def test_settings_hold_for_the_query_alone() -> None:
    executor = StubExecutor(lambda run: seen(ok("1")))
    judge_case(executor, assigned((Dqp(),), ("a", "b")), case_for(Dqp()))
    executed = [dict(run.instead)[0] for run in executor.requested if run.instead]
    assert SQL in executed
    for sql in executed:
        before, _, after = sql.partition(SQL)
        assert before.count("SET ") == after.count("RESET ")
    assert all("enable_hashjoin" not in dict(mode.settings) for run in executor.requested for mode in run.modes)


def test_a_subquery_is_executed_before_it_is_folded() -> None:
    sql = "SELECT a.x FROM a WHERE a.x IN (SELECT b.y FROM b)"
    tested = case(query(sql), samples=(FOLDED,))

    def respond(run: Run) -> CaseObservation:
        executed = dict(run.instead).get(0, "")
        values = (row("0", "'7'::integer"), row("0", "'9'::integer"))
        return seen(
            replace(ok(), rows=values) if "format(" in executed else ok("1") if "'7'" in executed else ok("1", "2")
        )

    found = finding(judged(Coddtest(), tested, respond)[:1])
    assert found.origin == "a subquery and its value differ"
    assert "= ANY(ARRAY[CAST('7' AS integer), CAST('9' AS integer)])" in found.actual


def test_a_single_arm_is_judged_on_every_case() -> None:
    cases = [case(query(f"SELECT a.x FROM a WHERE a.x > {number}")) for number in range(300)]
    assert 0 < sum(each in FOLDED for each in cases) < 30
    assert all(each in FOLDED.alone for each in cases)


def test_a_fault_of_one_arm_is_told_from_one_of_all_arms_at_another_query() -> None:
    tested = case(query(SQL), query(SQL), samples=Norec.samples)

    def respond(run: Run) -> CaseObservation:
        replaced = dict(run.instead)
        broken = [BROKEN["norec"] in replaced.get(step, "") for step in (0, 1)]
        return seen(
            *(ok("1") if broken[step] and (step == 0 or run.arm == "patched") else ok("1", "2") for step in (0, 1))
        )

    found = [(each.arms, each.step) for each in judged(Norec(), tested, respond) if isinstance(each, Finding)]
    assert found == [(("master", "master"), 0), (("master", "patched"), 1)]
