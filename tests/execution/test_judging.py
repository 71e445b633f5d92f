"""The loop that one case goes through: runs, observations, verdicts, and more runs where an oracle asks for them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import pytest

from fuzz.campaign.canaries import SabotagedExecutor
from fuzz.execution.exchanges import Abandoned
from fuzz.execution.judging import JudgedCase, judge_case
from oracles.model.case import Case
from oracles.model.mode import Mode
from oracles.model.observation import CaseObservation, Run
from oracles.model.oracle import Agree, Canary, Inconclusive, More, Observations, Oracle, Verdict
from tests.oracles.observed import ARMS, ByHand, case, ok, query, seated, seen

CASE = case(query())


class Curious(Oracle):
    """Asks for one more run at a time until it has seen enough."""

    name: ClassVar[str] = "curious"
    canaries: ClassVar[tuple[Canary, ...]] = ()

    def __init__(self, enough: int) -> None:
        self.enough = enough
        self.judged: list[int] = []

    def judge(self, case: Case, arms: Sequence[str], observations: Observations) -> tuple[Verdict, ...] | More:
        self.judged.append(len(observations))
        mine = sum(run.arm == arms[0] for run in observations)
        return More((Run(arms[0], (Mode(f"look {mine}"),)),)) if mine < self.enough else (Agree(mine),)


class Stuck(Curious):
    """Asks for what it was given."""

    def judge(self, case: Case, arms: Sequence[str], observations: Observations) -> More:
        return More((Run(arms[0], case.modes),))


def executor() -> ByHand:
    return ByHand(lambda run: seen(ok("1")))


def test_runs_go_on_until_no_oracle_asks_for_more() -> None:
    played = executor()
    judged = judge_case(played, seated((Curious(1), Curious(3)), ARMS), CASE)
    assert judged.verdicts == (("curious", Agree(3)), ("curious", Agree(3)))
    assert set(judged.observations) == set(played.asked)


def test_what_was_certain_when_a_trial_was_abandoned_stands() -> None:
    def respond(run: Run) -> CaseObservation:
        if run.modes:
            raise Abandoned
        return seen(ok("1"))

    judged = judge_case(ByHand(respond), seated((Curious(1), Curious(3)), ARMS), CASE)
    assert (judged.verdicts, judged.complete) == ((("curious", Agree(1)),), False)
    assert judge_case(executor(), seated((Curious(3),), ARMS), CASE).complete


def test_equal_runs_are_executed_once() -> None:
    played = executor()
    judge_case(played, seated((Curious(3), Curious(3)), ARMS), CASE)
    assert len(played.asked) == len(set(played.asked)) == 4


def test_what_is_known_is_judged_but_not_executed_again() -> None:
    known = {run: seen(ok("1")) for run in (Run(ARMS[0], CASE.modes), Run(ARMS[0], (Mode("look 1"),)))}
    played = executor()
    judged = judge_case(played, seated((Curious(3),), ARMS), CASE, known)
    assert judged.verdicts == (("curious", Agree(3)),)
    assert set(played.asked) == {Run(ARMS[1], CASE.modes), Run(ARMS[0], (Mode("look 2"),))}


def test_every_oracle_sees_all_in_the_end() -> None:
    content = Curious(1)
    judge_case(executor(), seated((content, Curious(3)), ARMS), CASE)
    assert content.judged == [2, 3, 4]


def test_an_oracle_that_asks_for_what_it_has_is_an_error() -> None:
    with pytest.raises(ValueError, match="curious asks for runs that it was given"):
        judge_case(executor(), seated((Stuck(1),), ARMS), CASE)


def test_statements_compared_by_several_oracles_count_once() -> None:
    verdicts = (("a", Agree(3)), ("a", Agree(4)), ("a", Inconclusive("timeout")), ("b", Agree(5)))
    assert JudgedCase(verdicts, {}).statements == 7


def test_sabotage_is_hidden_from_whoever_judges() -> None:
    played = executor()
    runs = [Run(arm, (), repeats) for arm in ARMS for repeats in (1, 6)]
    observed = SabotagedExecutor(played, "patched", "drop_row").observe(CASE, runs)
    assert list(observed) == runs
    assert [run for run in played.asked if run.sabotage] == [replace(run, sabotage="drop_row") for run in runs[2:]]
