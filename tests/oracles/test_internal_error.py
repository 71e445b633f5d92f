"""Tests of the oracle `internal_error` on messages in the form of servers'."""

from dataclasses import replace

import pytest

from oracles.internal_error import LEGAL, InternalError, Legal
from oracles.model.finding import Finding
from oracles.model.mode import Mode
from oracles.model.observation import CaseObservation, Message, Observation, Outcome, Run
from oracles.model.oracle import Agree, Inconclusive, More, Verdict
from tests.oracles.observed import ARMS, case, error, finding, judged, ok, query, seen

CASE = case(query(), query(may_fail=True))
SOUND = seen(ok("1"), error("22012"))


def raised(text: str, routine: str = "make_sort", sqlstate: str = "XX000") -> Observation:
    return replace(error(sqlstate), messages=(Message("ERROR", sqlstate, text, routine),))


PATHKEY = raised("could not find pathkey item to sort")


def duel(master: CaseObservation, patched: CaseObservation) -> tuple[Verdict, ...]:
    return judged(InternalError(), CASE, lambda run: master if run.arm == "master" else patched)


def test_an_internal_error_is_a_finding_also_where_a_step_may_fail() -> None:
    found = finding(duel(SOUND, seen(ok("1"), PATHKEY)))
    assert (found.arms, found.step) == (("master", "patched"), 1)
    assert found.origin == "XX000 could not find pathkey item to sort in make_sort"


def test_an_internal_error_of_all_arms_is_about_the_base() -> None:
    assert finding(duel(seen(PATHKEY, ok("1")), seen(PATHKEY, ok("1")))).arms == ("master", "master")


def test_an_internal_error_of_the_reference_is_its_own() -> None:
    assert finding(duel(seen(PATHKEY, ok("1")), SOUND)).arms == ("patched", "master")


def test_an_internal_error_at_the_end_of_a_case_is_a_finding() -> None:
    found = finding(duel(SOUND, replace(SOUND, closing=PATHKEY.messages)))
    assert (found.arms, found.step) == (("master", "patched"), None)
    assert found.summary.startswith("after the case: patched raises an internal error: XX000 could not find")


def test_an_internal_error_of_any_repetition_is_a_finding() -> None:
    repeated = replace(SOUND, earlier=(SOUND.steps, (ok("1"), PATHKEY)))
    assert finding(duel(SOUND, repeated)).step == 1


def test_an_internal_error_when_rows_are_read_back_is_a_finding() -> None:
    assert finding(duel(SOUND, seen(replace(ok("1"), read_back=PATHKEY), error("22012")))).step == 0


@pytest.mark.parametrize(
    ("text", "other", "same"),
    [
        ("cache lookup failed for type 16390", "cache lookup failed for type 16411", True),
        ('type "a" is gone', 'type "b" is gone', True),
        ("cache lookup failed for type 16390", "cache lookup failed for relation 16390", False),
    ],
)
def test_names_and_numbers_do_not_distinguish_errors(text: str, other: str, same: bool) -> None:  # noqa: FBT001
    one, another = (finding(duel(SOUND, seen(raised(each), ok("1")))) for each in (text, other))
    assert (one.fingerprint == another.fingerprint) is same


def test_the_routine_distinguishes_errors() -> None:
    verdicts = duel(SOUND, seen(raised("no such thing", "one"), raised("no such thing", "other")))
    assert len({verdict.fingerprint for verdict in verdicts if isinstance(verdict, Finding)}) == 2


@pytest.mark.parametrize("legal", LEGAL, ids=lambda legal: legal.routine)
def test_a_legal_error_is_counted_with_its_reason(legal: Legal) -> None:
    verdicts = duel(SOUND, seen(ok("1"), raised(f"{legal.message}: 1", legal.routine)))
    assert verdicts == (Agree(2), Inconclusive(f"legal internal error in {legal.routine}: {legal.reason}"))
    finding(duel(SOUND, seen(ok("1"), raised("something else", legal.routine))))


def test_an_error_that_a_replayed_test_raises_without_modes_is_no_finding() -> None:
    other = raised("cache lookup failed for type 16390")
    replayed = replace(CASE, part="src/test/regress/tid", modes=(Mode("merge_only"),))

    def verdicts(without_modes: CaseObservation) -> tuple[Verdict, ...]:
        seen_in = {(): without_modes, replayed.modes: seen(PATHKEY, other)}
        return judged(InternalError(), replayed, lambda run: seen_in[run.modes])

    assert verdicts(seen(PATHKEY, other)) == (Agree(2),)
    assert finding(verdicts(seen(PATHKEY, ok("1")))).origin.endswith("failed for type N in make_sort")


def test_other_errors_and_notices_are_no_findings() -> None:
    notice = ok("1", messages=(Message("WARNING", "XX000", "it looks odd"),))
    assert duel(SOUND, seen(notice, error("42P01"))) == (Agree(2),)


def test_a_connection_lost_to_an_internal_error_is_a_finding() -> None:
    message = Message("FATAL", "XX000", "unexpected state", "ProcessStartupPacket")
    fatal = Observation(Outcome.LOST, "XX000", messages=(message,))
    assert finding(duel(SOUND, seen(ok("1"), fatal))).step == 1


def test_an_error_of_one_arm_is_told_from_one_of_all_arms_at_another_step() -> None:
    verdicts = duel(seen(PATHKEY, ok("1")), seen(PATHKEY, PATHKEY))
    found = [(each.arms, each.step) for each in verdicts if isinstance(each, Finding)]
    assert found == [(("master", "master"), 0), (("master", "patched"), 1)]


@pytest.mark.parametrize(("master", "arms"), [(SOUND, ("master", "patched")), (seen(PATHKEY), ("master", "master"))])
def test_a_run_of_one_arm_is_requested_on_the_others(master: CaseObservation, arms: tuple[str, str]) -> None:
    """Its error is one of all arms only if they raise it, too."""
    replaced = Run("patched", (), instead=((0, "SELECT 1"),))
    observed = {Run("master", ()): SOUND, Run("patched", ()): SOUND, replaced: seen(PATHKEY, ok("1"))}
    wanted = InternalError().judge(CASE, ARMS, observed)
    there = replace(replaced, arm="master")
    assert isinstance(wanted, More)
    assert wanted.runs == (there,)
    verdicts = InternalError().judge(CASE, ARMS, observed | {there: master})
    assert not isinstance(verdicts, More)
    assert finding([each for each in verdicts if isinstance(each, Finding)]).arms == arms
