"""The health check: a campaign that proved little must not look like one that found nothing."""

from collections import Counter
from typing import Any

from fuzz.campaign.counters import HARNESS, Counters
from fuzz.campaign.health import complaints


def _counters(**counters: Counter[Any]) -> Counters:
    sound = {
        "cases": Counter(joins=100),
        "judged": Counter(joins=1000),
        "steps": Counter(joins=1000),
        "valid": Counter(joins=1000),
        "verdicts": Counter({("result", "joins", "agree"): 100}),
    }
    return Counters(**{**sound, **counters})  # type: ignore[arg-type]


def test_a_sound_campaign_has_nothing_to_complain_about() -> None:
    assert complaints(_counters()) == ()


def test_no_statement_compared() -> None:
    assert complaints(_counters(judged=Counter())) == ("no statement was compared",)


def test_too_many_statements_failed() -> None:
    (line,) = complaints(_counters(valid=Counter(joins=960)))
    assert line.startswith("joins: only 96.0% of the statements succeeded")
    assert complaints(_counters(valid=Counter(joins=970))) == ()


def test_an_oracle_that_could_not_judge() -> None:
    verdicts: Counter[Any] = Counter({("leak", "joins", "agree"): 79, ("leak", "joins", "inconclusive"): 21})
    assert complaints(_counters(verdicts=verdicts)) == ("leak on joins: 21% of the verdicts were inconclusive",)


def test_an_oracle_that_is_mostly_in_doubt() -> None:
    verdicts: Counter[Any] = Counter({("plan", "joins", "agree"): 40, ("plan", "joins", "unstable"): 60})
    assert complaints(_counters(verdicts=verdicts)) == ("plan on joins: 60% of the verdicts were unstable",)
    assert complaints(_counters(verdicts=Counter({**verdicts, ("plan", "joins", "agree"): 60}))) == ()


def test_failures_of_pgduel_itself() -> None:
    counters = _counters()
    counters.failed("joins", "KeyError")
    assert complaints(counters) == ("pgduel itself failed on 1 cases of joins",)
    assert counters.reasons[HARNESS, "joins", "inconclusive", "KeyError"] == 1
