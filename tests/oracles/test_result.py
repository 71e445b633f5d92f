"""Result equality, on observations made by hand: what must be found, and what must not be taken for a bug."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from fuzz.execution.modes import MODES
from oracles.model.case import Kind, Step
from oracles.model.finding import Finding
from oracles.model.observation import CaseObservation, Column, Message, Observation, Outcome, Run
from oracles.model.oracle import Agree, Inconclusive, Unstable, Verdict
from oracles.result import Result
from tests.oracles.observed import (
    ARMS,
    ByHand,
    case,
    error,
    finding,
    judged,
    ok,
    query,
    row,
    seen,
    timeout,
    warning,
    way,
)

COMMAND = Step("INSERT")
CLOSED_EARLY = (MODES["closed_early"],)
AGREE = (Agree(1),)


def duel(
    step: Step, master: Observation, patched: Observation, *names: str, otherwise: Observation | None = None
) -> tuple[Verdict, ...]:
    """Judge a case of one step; under the named ways (or plans) the reference does `otherwise`."""
    modes = CLOSED_EARLY if "closed_early" in names else ()

    def respond(run: Run) -> CaseObservation:
        if run.arm == "patched":
            return seen(patched)
        return seen(otherwise if otherwise is not None and way(run) in names else master)

    return judged(Result(), case(step, modes=modes), respond)


def test_rows_without_an_order_are_a_multiset() -> None:
    assert duel(query(), ok("a", "b", "a"), ok("b", "a", "a")) == AGREE


def test_how_often_a_row_occurs_counts() -> None:
    found = finding(duel(query(), ok("a", "a", "b"), ok("a", "b", "b")))
    assert found.summary == "step 0: 1 row missing, 1 surplus, of 3"
    assert "a" in found.expected
    assert "b" in found.actual


def test_all_columns_of_a_row_count() -> None:
    same_first_column = replace(ok("1"), rows=(row("1", "x"),)), replace(ok("1"), rows=(row("1", None),))
    assert "1 | NULL" in finding(duel(query(), *same_first_column)).actual


@pytest.mark.parametrize(("master", "patched"), [("0", "-0"), ("1.0", "1.00"), ("NaN", None), ("", None)])
def test_values_are_bytes(master: str, patched: str | None) -> None:
    assert finding(duel(query(), ok(master), ok(patched))).origin.startswith("rows under plan ")


def test_nan_equals_nan() -> None:
    assert duel(query(), ok("NaN", None), ok(None, "NaN")) == AGREE


def test_a_total_order_counts() -> None:
    found = finding(duel(query(ordered=True), ok("a", "b", "c"), ok("a", "c", "b")))
    assert found.summary == "step 0: same rows in another order, from row 1 of 3"


def test_a_cursor_closed_early_promises_a_number_of_rows_only() -> None:
    assert duel(query(), ok("a", "b"), ok("c", "d"), "closed_early") == AGREE
    assert finding(duel(query(), ok("a", "b"), ok("c"), "closed_early"))


def test_a_cursor_closed_early_on_ordered_rows_promises_them() -> None:
    assert finding(duel(query(ordered=True), ok("a", "b"), ok("a", "c"), "closed_early"))


def test_commands_are_compared_in_full_where_cursors_are_closed_early() -> None:
    returning = (ok("a", tag="INSERT 0 1"), ok("b", tag="INSERT 0 1"))
    assert finding(duel(COMMAND, *returning, "closed_early")).origin == "rows: INSERT"


def test_the_header_of_a_binary_copy_belongs_to_no_row() -> None:
    header = b"PGCOPY\n\xff\r\n\0" + bytes(8)
    one_way, other_way, short = (
        Observation(Outcome.OK, tags=("COPY 2",), rows=rows)
        for rows in ((header + b"1", b"2"), (header + b"2", b"1"), (header + b"2", b"2"))
    )
    copy = Step("COPY", Kind.COPY_OUT)
    assert duel(copy, one_way, other_way) == AGREE
    assert finding(duel(copy, one_way, short)).origin == "rows: COPY"


@pytest.mark.parametrize(
    ("patched", "origin"),
    [
        (error("22012"), "outcome: ok / 22012"),
        (replace(ok("1"), tags=("UPDATE 2",)), "command tags: SELECT / UPDATE"),
        (replace(ok("1"), columns=(Column("a", "20"),)), "columns: SELECT"),
        (replace(ok("1"), messages=(warning("careful"),)), "messages: none / WARNING 01000"),
        (replace(ok("1"), transaction="T"), "transaction status: I / T"),
    ],
)
def test_all_that_a_client_sees_counts(patched: Observation, origin: str) -> None:
    assert finding(duel(query(), ok("1"), patched)).origin == origin


def test_messages_may_come_in_any_order() -> None:
    first, second = warning("from one worker"), warning("from another")
    assert duel(query(), ok(messages=[first, second]), ok(messages=[second, first])) == AGREE


def test_an_error_made_on_purpose_must_still_be_the_same_error() -> None:
    step = query(may_fail=True)
    assert duel(step, error("22012"), error("22012")) == AGREE
    assert finding(duel(step, error("22012"), error("22003"))).origin == "outcome: 22012 / 22003"
    assert finding(duel(step, error("22012"), ok("1")))


def test_another_row_may_fail_first_only_where_the_reference_does_so_too() -> None:
    this, that = error("23505", "Key (1) already exists."), error("23505", "Key (2) already exists.")
    assert finding(duel(COMMAND, this, that)).origin == "message texts: ERROR 23505"
    (verdict,) = duel(COMMAND, this, that, "sorted", otherwise=that)
    assert verdict == Unstable("message texts: master differs from itself, sorted")


def test_what_changes_whenever_it_runs_says_nothing() -> None:
    times = iter(range(100))
    (verdict,) = judged(Result(), case(query()), lambda run: seen(ok(f"now {next(times)}")))
    assert verdict == Unstable("rows: master differs from itself, repeated")


def test_a_plan_that_times_out_does_not_vote() -> None:
    assert finding(duel(query(), ok("1"), ok("2"), "looped", otherwise=timeout()))


def test_no_finding_without_a_repetition() -> None:
    assert duel(query(), ok("1"), ok("2"), "again 1", otherwise=timeout()) == (Inconclusive("repetition cut short"),)


def deviating(*ways: str) -> Callable[[Run], CaseObservation]:
    return lambda run: seen(ok("2" if run.arm == "patched" and way(run) in ways else "1"))


def test_a_difference_seen_once_is_not_a_finding() -> None:
    verdicts = judged(Result(), case(query()), deviating(""))
    assert verdicts == (Unstable("rows: differed once and never again"),)


def test_a_race_in_the_suspect_is_a_finding() -> None:
    found = finding(judged(Result(), case(query()), deviating("", "again 3", "again 5")))
    assert found.summary.endswith("(in 3 of 7 runs)")


def test_a_reference_that_wavers_in_the_series_is_not_held_against_the_suspect() -> None:
    def respond(run: Run) -> CaseObservation:
        odd = ("patched", "") if run.arm == "patched" else ("master", "again 4")
        return seen(ok("2" if (run.arm, way(run)) == odd else "1"))

    assert judged(Result(), case(query()), respond) == (Unstable("rows: master differs from itself, repeated"),)


def scan(*partitions: str) -> dict[str, object]:
    parts = [{"Node Type": "Seq Scan", "Relation Name": name} for name in partitions]
    inner = {"Node Type": "Hash", "Plans": [{"Node Type": "Seq Scan", "Relation Name": "s"}]}
    join = {"Node Type": "Hash Join", "Join Type": "Left", "Plans": [{"Node Type": "Append", "Plans": parts}, inner]}
    return {"Plan": join, "Execution Time": 1.5}


def test_the_origin_of_wrong_rows_is_what_both_plans_are_made_of() -> None:
    def respond(run: Run) -> CaseObservation:
        if run.explain:
            plan = scan("p1", "p2", "p3") if run.arm == "master" else {"Plan": {"Node Type": "Seq Scan"}}
            return seen(Observation(Outcome.OK, plan=plan))
        return seen(ok("1" if run.arm == "master" else "2"))

    found = finding(judged(Result(), case(query()), respond))
    assert found.origin == "rows under plan Append, Left Hash Join, Seq Scan / Seq Scan"
    assert found.expected.endswith("plan: Left Hash Join(Append(Seq Scan), Hash(Seq Scan))")


def found_under(*partitions: str) -> Finding:
    def respond(run: Run) -> CaseObservation:
        plain = ok(partitions[0] if run.arm == "master" else "x")
        return seen(Observation(Outcome.OK, plan=scan(*partitions)) if run.explain else plain)

    return finding(judged(Result(), case(query()), respond))


def test_literals_and_partitions_do_not_change_the_fingerprint() -> None:
    assert found_under("p1").fingerprint == found_under("q1", "q2").fingerprint


def test_a_finding_resembles_itself_under_another_plan_but_not_another_kind_of_finding() -> None:
    rows, other_plan = found_under("p1"), replace(found_under("p1"), origin="rows under plan Nested Loop")
    assert rows.fingerprint != other_plan.fingerprint
    assert rows.resembles(other_plan)
    assert not rows.resembles(finding(duel(query(), ok("1"), error("XX000"))))


def test_each_arm_is_held_against_the_first() -> None:
    def respond(run: Run) -> CaseObservation:
        return seen(ok("2" if run.arm == "third" else "1"))

    verdicts = judged(Result(), case(query()), respond, ("first", "second", "third"))
    assert verdicts[0] == Agree(1)
    assert finding(verdicts).arms == ("first", "third")


def test_equal_arms_cost_one_run_each() -> None:
    executor = ByHand(lambda run: seen(ok("1")))
    executor.observe(case(), Result().runs(case(query()), ARMS))
    assert executor.asked == [Run("master", ()), Run("patched", ())]


def test_only_a_few_of_many_differing_rows_are_shown() -> None:
    found = finding(duel(query(), ok(*map(str, range(100))), ok()))
    assert found.summary == "step 0: 100 rows missing, 0 surplus, of 100"
    assert "... and 95 more" in found.expected
    assert found.actual.startswith("no others\n")


def test_a_message_only_one_arm_sends_is_shown_without_those_both_send() -> None:
    both = Message("NOTICE", "00000", "usual")
    found = finding(duel(query(), ok(messages=[both]), ok(messages=[both, warning("unusual")])))
    assert (found.expected, found.actual) == ("no others", "WARNING 01000: unusual")


@pytest.mark.parametrize(
    "sides", [(ok("1"), error("53100")), (error("53100"), ok("1")), (error("53100"), error("53100"))]
)
def test_what_finds_no_room_on_a_disk_says_nothing_of_the_arms(sides: tuple[Observation, Observation]) -> None:
    assert duel(query(), *sides) == (Inconclusive("disk full"),)
