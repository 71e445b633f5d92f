"""Tests of the oracle `lost_connection`: sessions that end on one arm only."""

from dataclasses import replace

import pytest

from oracles.lost_connection import LostConnection
from oracles.model.case import Step
from oracles.model.observation import CaseObservation, Message, Observation, Outcome, Run
from oracles.model.oracle import Agree, Inconclusive, NotApplicable, Verdict
from tests.oracles.observed import LOST, SKIPPED, case, finding, judged, ok, query, seen, timeout, variant

CASE = case(query(), query(), query())
SOUND = seen(ok("1"), ok("2"), ok("3"))
FATAL = Observation(Outcome.LOST, "53200", messages=(Message("FATAL", "53200", "out of memory"),))
GONE = replace(seen(ok("1"), FATAL, SKIPPED), residue=None)
BY_SIGNAL = "LOG:  server process (PID 7) was terminated by signal 9: Killed"
KILLED = replace(seen(ok("1"), LOST, SKIPPED), residue=None, crash=BY_SIGNAL)


def duel(suspect: CaseObservation, again: CaseObservation | None = None) -> tuple[Verdict, ...]:
    def respond(run: Run) -> CaseObservation:
        if run.arm == "master":
            return SOUND
        return again if again is not None and variant(run) == "again 2" else suspect

    return judged(LostConnection(), CASE, respond)


@pytest.mark.parametrize(("lost", "message"), [(GONE, "out of memory"), (KILLED, "Killed")])
def test_a_session_that_ends_each_time_is_a_finding_with_the_message(lost: CaseObservation, message: str) -> None:
    found = finding(duel(lost))
    assert (found.arms, found.step) == (("master", "patched"), 1)
    assert message in found.actual


def test_kills_of_different_processes_are_one_finding() -> None:
    other = replace(KILLED, crash=BY_SIGNAL.replace("PID 7", "PID 123"))
    assert finding(duel(KILLED)).origin == finding(duel(other)).origin == "connection lost: killed by SIGKILL"


def test_a_session_that_ends_once_is_inconclusive() -> None:
    assert duel(GONE, SOUND) == (Agree(1), Inconclusive("connection lost, but not each time"))


def test_a_session_that_deaths_of_other_processes_end_each_time_is_inconclusive() -> None:
    assert duel(replace(GONE, disturbed=True)) == (
        Agree(1),
        Inconclusive("the death of another process ended the session, several times"),
    )


def test_a_reference_that_loses_its_connection_too_is_inconclusive() -> None:
    def respond(run: Run) -> CaseObservation:
        return SOUND if run.arm == "master" and not variant(run) else GONE

    assert judged(LostConnection(), CASE, respond) == (Agree(1), Inconclusive("master loses the connection too"))


def test_crashes_are_left_to_another_oracle() -> None:
    crashed = replace(GONE, crash="server process was terminated by signal 11: Segmentation fault")
    assert duel(crashed) == (Agree(1),)


def test_after_a_command_that_timed_out_the_arms_are_not_compared() -> None:
    ours, theirs = seen(timeout(), ok("2"), ok("3")), replace(seen(timeout(), FATAL, SKIPPED), residue=None)

    def respond(run: Run) -> CaseObservation:
        return ours if run.arm == "master" else theirs

    changing = case(Step("UPDATE t SET n = 1"), query(), query())
    assert judged(LostConnection(), changing, respond) == (NotApplicable(),)
    assert finding(judged(LostConnection(), CASE, respond)).step == 1  # a query changes nothing
