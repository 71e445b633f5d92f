"""What breaks the claims of the logic oracles, and what only seems to; on observations made by hand."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from fuzz.execution.judging import judge_case
from oracles.coddtest import FOLDED, Coddtest
from oracles.dqp import Dqp
from oracles.eet import Eet
from oracles.framework.metamorphic import Metamorphic
from oracles.model.case import Case
from oracles.model.mode import Mode, Protocol
from oracles.model.observation import CaseObservation, Column, Observation, Run
from oracles.model.oracle import Agree, Inconclusive, NotApplicable, Unstable, Verdict
from oracles.norec import Norec
from oracles.tlp import Tlp
from tests.oracles.observed import ByHand, agreed, case, error, finding, judged, ok, query, row, seated, seen, timeout

SQL = "SELECT a.x FROM a WHERE a.x > 1"
ORACLES = (Tlp(), Norec(), Dqp(), Eet(), Coddtest())
BROKEN = {  # oracle -> what marks the queries of one side
    "tlp": "IS NULL",
    "norec": "CASE WHEN",
    "dqp": "SET enable_hashjoin",
    "eet": "NULL",
    "coddtest": "(SELECT 1)",
}
CLOSED_EARLY = Mode("closed_early", protocol=Protocol.CLOSED_EARLY, changes_results=True)

each_oracle = pytest.mark.parametrize("oracle", ORACLES, ids=[oracle.name for oracle in ORACLES])
Answer = Callable[[str, Run], Observation]


def asked_of(oracle: Metamorphic, *modes: Mode) -> Case:
    return case(query(SQL), modes=modes, samples=oracle.samples)


def duel(oracle: Metamorphic, played: Case, answer: Answer) -> tuple[Verdict, ...]:
    """Judge answers by what is asked in the place of the first query, and run."""
    return judged(oracle, played, lambda run: seen(*(answer(dict(run.instead).get(0, ""), run) for _ in played.steps)))


def wrong_on(arm: str, oracle: Metamorphic, wrong: Observation) -> Answer:
    """Return what answers `wrong` to one side of the claims on an arm, and one and the same otherwise."""
    return lambda sql, run: wrong if run.arm == arm and BROKEN[oracle.name] in sql else ok("1", "2")


@each_oracle
def test_equal_answers_agree(oracle: Metamorphic) -> None:
    assert duel(oracle, asked_of(oracle), lambda sql, run: ok("1", "2")) == (Agree(1),)


@each_oracle
def test_rows_in_another_order_agree(oracle: Metamorphic) -> None:
    played = case(query(SQL, ordered=True), samples=oracle.samples)
    assert duel(oracle, played, wrong_on("patched", oracle, ok("2", "1"))) == (Agree(1),)


@each_oracle
def test_a_broken_claim_is_a_finding_with_its_queries(oracle: Metamorphic) -> None:
    verdicts = duel(oracle, asked_of(oracle), wrong_on("patched", oracle, ok("1")))
    found = finding([verdict for verdict in verdicts if not isinstance(verdict, Unstable)][:1])
    assert (found.oracle, found.arms, found.step) == (oracle.name, ("master", "patched"), 0)
    assert found.beside
    assert all(each.sql in f"{found.expected}\n{found.actual}" for each in found.beside)


@each_oracle
def test_an_arm_is_judged_alone(oracle: Metamorphic) -> None:
    answer = wrong_on("only", oracle, ok("1"))
    executor = ByHand(lambda run: seen(answer(dict(run.instead).get(0, ""), run)))
    judged = judge_case(executor, seated((oracle,), ("only",)), asked_of(oracle))
    assert {found.arms for found in judged.findings} == {("only", "only")}
    assert not any("as all arms do" in found.summary for found in judged.findings)


@each_oracle
@pytest.mark.parametrize("cut", [timeout(), error("22012")], ids=["timeout", "error"])
def test_a_query_that_does_not_end_says_nothing(oracle: Metamorphic, cut: Observation) -> None:
    first, *_, last = duel(oracle, asked_of(oracle), wrong_on("patched", oracle, cut))
    assert isinstance(first, Inconclusive)
    assert isinstance(last, Agree | NotApplicable)


def test_sums_of_floating_point_numbers_in_conditions_are_left_alone() -> None:
    for value, count in (("y::float8", 0), ("y", 1)):
        played = case(query(f"SELECT x FROM a WHERE (SELECT sum({value}) FROM b) > a.x"), samples=Norec.samples)
        assert duel(Norec(), played, lambda sql, run: ok("1")) == (agreed(count),)


@each_oracle
def test_what_differs_once_is_no_finding(oracle: Metamorphic) -> None:
    def answer(sql: str, run: Run) -> Observation:
        return ok("1") if BROKEN[oracle.name] in sql and not run.repetition else ok("1", "2")

    assert isinstance(duel(oracle, asked_of(oracle), answer)[0], Unstable)


@each_oracle
def test_a_query_that_fails_by_itself_is_not_asked_about(oracle: Metamorphic) -> None:
    assert duel(oracle, asked_of(oracle), lambda sql, run: error("22012")) == (NotApplicable(),)


def test_sums_of_floating_point_numbers_are_not_asked_about() -> None:
    def answer(_: str, run: Run) -> Observation:
        return replace(ok("0.1" if run.instead else "0.2"), columns=(Column("sum", "701"),))

    for oracle in (Tlp(), Dqp(), Eet(), Coddtest()):
        assert duel(oracle, asked_of(oracle), answer) == (NotApplicable(),)


@pytest.mark.parametrize("oracle", [Tlp(), Norec(), Dqp()], ids=lambda oracle: oracle.name)
def test_a_protocol_that_cuts_rows_hides_nothing_where_both_sides_are_asked_anew(oracle: Metamorphic) -> None:
    played = asked_of(oracle, CLOSED_EARLY)
    assert finding(duel(oracle, played, wrong_on("patched", oracle, ok("1", "3")))[:1])
    executor = ByHand(lambda run: seen(ok("1")))
    judge_case(executor, seated((oracle,), ("a", "b")), played)
    anew = [run.modes[-1].protocol for run in executor.asked if run.instead]
    assert set(anew) == {Protocol.SIMPLE}


def test_parameters_are_all_used_or_the_query_is_not_asked() -> None:
    given = replace(query("SELECT a.x FROM a WHERE a.x > $1::int AND a.y > 0"), params=("1",))
    for oracle in ORACLES:
        executor = ByHand(lambda run: seen(ok("1")))
        judge_case(executor, seated((oracle,), ("a", "b")), case(given, samples=oracle.samples))
        asked = [dict(run.instead)[0] for run in executor.asked if 0 in dict(run.instead)]
        assert all("$1" in sql and "SET" not in sql for sql in asked)


def test_settings_hold_for_the_query_alone() -> None:
    executor = ByHand(lambda run: seen(ok("1")))
    judge_case(executor, seated((Dqp(),), ("a", "b")), asked_of(Dqp()))
    asked = [dict(run.instead)[0] for run in executor.asked if run.instead]
    assert SQL in asked
    for sql in asked:
        before, _, after = sql.partition(SQL)
        assert before.count("SET ") == after.count("RESET ")
    assert all("enable_hashjoin" not in dict(mode.settings) for run in executor.asked for mode in run.modes)


def test_a_subquery_is_asked_for_before_it_is_folded() -> None:
    sql = "SELECT a.x FROM a WHERE a.x IN (SELECT b.y FROM b)"
    played = case(query(sql), samples=(FOLDED,))

    def respond(run: Run) -> CaseObservation:
        asked = dict(run.instead).get(0, "")
        answers = (row("0", "'7'::integer"), row("0", "'9'::integer"))
        return seen(replace(ok(), rows=answers) if "format(" in asked else ok("1") if "'7'" in asked else ok("1", "2"))

    found = finding(judged(Coddtest(), played, respond)[:1])
    assert found.origin == "a subquery and its value differ"
    assert "= ANY(ARRAY[CAST('7' AS integer), CAST('9' AS integer)])" in found.actual


def test_each_case_is_looked_at_where_an_arm_is_alone() -> None:
    cases = [case(query(f"SELECT a.x FROM a WHERE a.x > {number}")) for number in range(300)]
    assert 0 < sum(each in FOLDED for each in cases) < 30
    assert all(each in FOLDED.alone for each in cases)
