"""Tests of the health check, which fails for campaigns that prove too little."""

from collections import Counter
from typing import Any

from fuzz.campaign.counters import HARNESS, Counters, complaints

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
    assert complaints(_counters(), CANARIES) == ()


def test_no_statement_compared() -> None:
    assert complaints(_counters(judged=Counter()), CANARIES) == ("no statement was compared",)


def test_too_many_canaries_were_retried() -> None:
    (line,) = complaints(_counters(), {**CANARIES, "retried": 6})
    assert line == "6 of 50 planted bugs were found only when planted again, at most 10% may"


def test_too_many_statements_failed() -> None:
    (line,) = complaints(_counters(valid=Counter(joins=960)), CANARIES)
    assert line.startswith("joins: only 96.0% of the statements succeeded")
    assert complaints(_counters(valid=Counter(joins=970)), CANARIES) == ()


def test_an_oracle_that_could_not_judge() -> None:
    verdicts: Counter[Any] = Counter({("leak", "joins", "agree"): 79, ("leak", "joins", "inconclusive"): 21})
    assert complaints(_counters(verdicts=verdicts), CANARIES) == (
        "leak on joins: 21% of the verdicts were inconclusive",
    )


def test_an_oracle_with_mostly_doubts() -> None:
    verdicts: Counter[Any] = Counter({("plan", "joins", "agree"): 40, ("plan", "joins", "unstable"): 60})
    assert complaints(_counters(verdicts=verdicts), CANARIES) == ("plan on joins: 60% of the verdicts were unstable",)
    assert complaints(_counters(verdicts=Counter({**verdicts, ("plan", "joins", "agree"): 60})), CANARIES) == ()


def test_failures_of_pgduel_itself() -> None:
    counters = _counters()
    counters.failed("joins", "KeyError")
    assert complaints(counters, CANARIES) == ("pgduel itself failed on 1 cases of joins",)
    assert counters.reasons[HARNESS, "joins", "inconclusive", "KeyError"] == 1
