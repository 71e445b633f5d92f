"""Tests of the requirement that statements succeed, by observations."""

import pytest

from fuzz.execution.judging import Assignment, JudgedCase
from fuzz.pytest_plugin.checks import GENERATOR, _disagreement, _failed_statement
from oracles.framework.shared_runs import REPEATED, REPEATS
from oracles.leak import Leak
from oracles.model.case import Case, Kind, Step
from oracles.model.observation import CaseObservation, Observation, Outcome, Run
from oracles.model.oracle import Agree, Inconclusive, NotApplicable, Verdict

ARMS = ("master", "patched")
CASE = Case(GENERATOR, (Step("CREATE TABLE t ()"),), (Step("TABLE t", Kind.QUERY),), samples=(REPEATED.name,))
JUDGES = (Assignment(Leak(), ARMS),)
OK = Observation(Outcome.OK)


def judged(plain: Outcome, repetition: Outcome = Outcome.OK, *verdicts: Verdict) -> JudgedCase:
    """Return a judged case whose query ends so on the second arm."""
    runs = {run: CaseObservation(run.arm, (OK, OK)) for run in Leak().runs(CASE, ARMS)}
    runs[Run(ARMS[1], ())] = CaseObservation(ARMS[1], (OK, Observation(plain)))
    earlier = ((OK, Observation(repetition)),)
    runs[Run(ARMS[1], (), REPEATS)] = CaseObservation(ARMS[1], (OK, OK), earlier=earlier)
    return JudgedCase(tuple((Leak.name, verdict) for verdict in verdicts), runs)


@pytest.mark.parametrize("outcome", Outcome)
def test_only_an_error_is_excused(outcome: Outcome) -> None:
    strict = _failed_statement(CASE, JUDGES, judged(outcome), 2)
    lenient = _failed_statement(CASE, JUDGES, judged(outcome), 2, may_fail=True)
    assert bool(strict) == (outcome not in (Outcome.OK, Outcome.TOO_LARGE))
    assert bool(lenient) == (bool(strict) and outcome is not Outcome.ERROR)


def test_repetitions_reach_no_time_limit() -> None:
    text = _failed_statement(CASE, JUDGES, judged(Outcome.OK, Outcome.TIMEOUT), 2)
    assert text.startswith("a statement reaches the time limit on patched; ")
    assert "\nstatement: TABLE t\n" in text
    assert not _failed_statement(CASE, JUDGES, judged(Outcome.OK, Outcome.ERROR), 2)


def test_only_the_first_steps_are_required() -> None:
    assert not _failed_statement(CASE, JUDGES, judged(Outcome.ERROR), 1)


def test_the_oracle_of_the_assertion_agrees_on_a_statement() -> None:
    assert not _disagreement(CASE, JUDGES, judged(Outcome.OK, Outcome.OK, NotApplicable(), Agree(1)))
    nothing = judged(Outcome.OK, Outcome.OK, NotApplicable())
    assert _disagreement(CASE, JUDGES, nothing) == "leak: no statement could be judged"
    doubtful = judged(Outcome.OK, Outcome.OK, Inconclusive("connection lost"))
    assert _disagreement(CASE, JUDGES, doubtful) == "leak: the arms cannot be compared: connection lost"
