"""Tests of the oracle `result` on hand-made observations."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from fuzz.execution.modes import MODES
from oracles.framework.shared_runs import OTHER_PLANS
from oracles.model.case import Kind, Step
from oracles.model.finding import Finding
from oracles.model.observation import UNKNOWN_TYPE, CaseObservation, Message, Observation, Outcome, ResultColumn, Run
from oracles.model.oracle import Agree, Inconclusive, Unstable, Verdict
from oracles.result import Result
from tests.oracles.observed import (
    ARMS,
    StubExecutor,
    case,
    error,
    finding,
    judged,
    ok,
    query,
    row,
    seen,
    timeout,
    variant,
    warning,
)

COMMAND = Step("INSERT INTO t VALUES (1)")
NOTICE = Message("NOTICE", "00000", "usual", fields=(("table", "t"), ("position", "8")))
TEXT = ResultColumn("a", "1043")
WITH_NOTICE = replace(ok("1", messages=[NOTICE]), columns=(TEXT,))
COPY_OUT = "CopyOutResponse: format 0, of columns 0"
CLOSED_EARLY = (MODES["closed_early"],)
AGREE = (Agree(1),)


def by_arm(master: Observation, patched: Observation) -> Callable[[Run], CaseObservation]:
    return lambda run: seen(patched if run.arm == "patched" else master)


def duel(
    step: Step, master: Observation, patched: Observation, *names: str, otherwise: Observation | None = None
) -> tuple[Verdict, ...]:
    """Judge a case of one step; in the additional runs of these names, the reference returns `otherwise`."""
    modes = CLOSED_EARLY if "closed_early" in names else ()

    def respond(run: Run) -> CaseObservation:
        if run.arm == "patched":
            return seen(patched)
        return seen(otherwise if otherwise is not None and variant(run) in names else master)

    return judged(Result(), case(step, modes=modes), respond)


def test_rows_without_an_order_are_a_multiset() -> None:
    assert duel(query(), ok("a", "b", "a"), ok("b", "a", "a")) == AGREE


UNPARSED = Step("SELECT a FROM t QUALIFY a > 1")


def test_commands_that_cannot_be_parsed_are_compared_by_their_number_of_rows() -> None:
    assert duel(UNPARSED, ok("a", "b"), ok("b", "c")) == AGREE
    assert finding(duel(UNPARSED, ok("a", "b"), ok("a"))).origin == "rows: SELECT"
    assert finding(duel(query(UNPARSED.sql), ok("a", "b"), ok("b", "c"))).origin.startswith("rows")


def test_syntax_that_only_the_reference_refuses_is_inconclusive() -> None:
    refused = error("42601", transaction="E")
    assert duel(UNPARSED, refused, ok("a")) == (Inconclusive("syntax that the reference lacks"),)
    assert finding(duel(UNPARSED, ok("a"), refused)).origin == "outcome: ok / 42601"
    assert finding(duel(Step("EXECUTE p"), refused, ok("a"))).origin == "outcome: 42601 / ok"


def test_errors_of_syntax_are_compared() -> None:
    assert duel(UNPARSED, error("42601"), error("42601")) == AGREE
    assert finding(duel(UNPARSED, error("42601"), error("42601", "otherwise"))).origin.startswith("message texts")
    assert duel(UNPARSED, error("42601"), error("42704")) == (Inconclusive("syntax that the reference lacks"),)


def test_the_multiplicity_of_rows_counts() -> None:
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


def test_a_cursor_closed_early_determines_only_the_number_of_rows() -> None:
    assert duel(query(), ok("a", "b"), ok("c", "d"), "closed_early") == AGREE
    assert finding(duel(query(), ok("a", "b"), ok("c"), "closed_early"))


def test_a_cursor_closed_early_on_ordered_rows_determines_them() -> None:
    assert finding(duel(query(ordered=True), ok("a", "b"), ok("a", "c"), "closed_early"))


def test_commands_are_compared_in_full_where_cursors_are_closed_early() -> None:
    returning = (ok("a", tag="INSERT 0 1"), ok("b", tag="INSERT 0 1"))
    assert finding(duel(COMMAND, *returning, "closed_early")).origin == "rows: INSERT"


def test_the_header_of_a_binary_copy_belongs_to_no_row() -> None:
    header = b"PGCOPY\n\xff\r\n\0" + bytes(8)
    first, second, short = (
        Observation(Outcome.OK, tags=("COPY 2",), rows=rows)
        for rows in ((header + b"1", b"2"), (header + b"2", b"1"), (header + b"2", b"2"))
    )
    copy = Step("COPY t TO STDOUT", Kind.COPY_OUT)
    assert duel(copy, first, second) == AGREE
    assert finding(duel(copy, first, short)).origin == "rows: COPY"


@pytest.mark.parametrize(
    ("patched", "origin"),
    [
        (error("22012"), "outcome: ok / 22012"),
        (replace(WITH_NOTICE, tags=("UPDATE 2",)), "command tags: SELECT / UPDATE"),
        (replace(WITH_NOTICE, columns=(ResultColumn("a", "20"),)), "columns: SELECT"),
        (replace(WITH_NOTICE, columns=(replace(TEXT, modifier=13),)), "columns: SELECT"),
        (replace(WITH_NOTICE, messages=(warning("careful"),)), "messages: NOTICE 00000 / WARNING 01000"),
        (replace(WITH_NOTICE, messages=(replace(NOTICE, text="other"),)), "message texts: NOTICE 00000"),
        (replace(WITH_NOTICE, messages=(replace(NOTICE, fields=(("table", "t"),)),)), "message fields: NOTICE 00000"),
        (replace(WITH_NOTICE, earlier_columns=((TEXT,),)), "columns: SELECT"),
        (replace(WITH_NOTICE, protocol=(COPY_OUT,)), "protocol messages: none / CopyOutResponse"),
        (replace(WITH_NOTICE, transaction="T"), "transaction status: I / T"),
    ],
)
def test_all_that_a_client_sees_counts(patched: Observation, origin: str) -> None:
    assert finding(duel(query(), WITH_NOTICE, patched)).origin == origin


def test_messages_may_come_in_any_order() -> None:
    first, second = warning("from one worker"), warning("from another")
    assert duel(query(), ok(messages=[first, second]), ok(messages=[second, first])) == AGREE


def test_notifications_may_come_in_any_order() -> None:
    both = tuple(f"NotificationResponse: a = {number}" for number in range(2))
    assert duel(query(), replace(ok(), protocol=both), replace(ok(), protocol=both[::-1])) == AGREE
    found = finding(duel(query(), replace(ok(), protocol=both), replace(ok(), protocol=both[:1] * 2)))
    assert found.origin == "protocol messages: NotificationResponse"
    assert found.actual == "NotificationResponse: a = 0\nNotificationResponse: a = 0"


def test_the_formats_of_copy_count_beside_equal_rows() -> None:
    copy = Step("COPY t TO STDOUT", Kind.COPY_OUT)
    master, patched = (replace(ok("1", tag="COPY 1"), protocol=(each,)) for each in (COPY_OUT, "Copy: 1"))
    found = finding(duel(copy, master, patched))
    assert (found.expected, found.actual) == (COPY_OUT, "Copy: 1")


def test_an_earlier_description_is_shown_beside_the_last_one() -> None:
    last = replace(ok("1"), columns=(TEXT,))
    master, patched = (replace(last, earlier_columns=(each,)) for each in ((TEXT,), ()))
    found = finding(duel(query(), master, patched))
    assert found.expected.count("a: type 1043") == 2
    assert found.actual.startswith("none\n\na: type 1043")


def test_an_expected_error_must_be_the_same_error() -> None:
    step = query(may_fail=True)
    assert duel(step, error("22012"), error("22012")) == AGREE
    assert finding(duel(step, error("22012"), error("22003"))).origin == "outcome: 22012 / 22003"
    assert finding(duel(step, error("22012"), ok("1")))


def test_another_row_may_fail_first_only_if_the_reference_varies_too() -> None:
    this, that = error("23505", "Key (1) already exists."), error("23505", "Key (2) already exists.")
    assert finding(duel(COMMAND, this, that)).origin == "message texts: ERROR 23505"
    (verdict,) = duel(COMMAND, this, that, "sorted", otherwise=that)
    assert verdict == Unstable("message texts: master differs from itself, sorted")


def test_rows_that_change_with_each_run_are_unstable() -> None:
    times = iter(range(100))
    (verdict,) = judged(Result(), case(query()), lambda run: seen(ok(f"now {next(times)}")))
    assert verdict == Unstable("rows: master differs from itself, repeated")


def test_types_of_a_lost_session_may_be_unknown() -> None:
    named, other = (replace(ok("1"), columns=(ResultColumn("a", name),)) for name in ("pair", "1043"))
    unknown = replace(ok("1"), columns=(ResultColumn("a", UNKNOWN_TYPE),))
    assert judged(Result(), case(query()), by_arm(unknown, named)) == AGREE
    assert finding(judged(Result(), case(query()), by_arm(unknown, other))).origin.startswith("columns")


def test_a_plan_that_times_out_is_ignored() -> None:
    assert finding(duel(query(), ok("1"), ok("2"), "looped", otherwise=timeout()))


@pytest.mark.parametrize("cut", [None, "looped"])
def test_rows_that_no_other_plan_confirms_are_unstable(cut: str | None) -> None:
    def respond(run: Run) -> CaseObservation:
        if run.arm == "master" and any(mode in OTHER_PLANS for mode in run.modes):
            return seen(timeout() if run.modes[-1].name == cut else error("22012"))
        return seen(ok("2" if run.arm == "patched" else "1"))

    (verdict,) = judged(Result(), case(query()), respond)
    assert isinstance(verdict, Unstable)


def test_no_finding_without_a_repetition() -> None:
    assert duel(query(), ok("1"), ok("2"), "again 1", otherwise=timeout()) == (Inconclusive("repetition cut short"),)


def deviating(*variants: str) -> Callable[[Run], CaseObservation]:
    return lambda run: seen(ok("2" if run.arm == "patched" and variant(run) in variants else "1"))


def summary_of_race(repetitions: range) -> str:
    respond = deviating("", *(f"again {number}" for number in repetitions))
    return finding(judged(Result(), case(query()), respond)).summary


def test_a_difference_seen_once_is_not_a_finding() -> None:
    verdicts = judged(Result(), case(query()), deviating(""))
    assert verdicts == (Unstable("rows: differed once and never again"),)


def test_a_race_in_the_suspect_is_a_finding() -> None:
    assert summary_of_race(range(2, 7)).endswith("(in 6 of 7 runs)")
    assert summary_of_race(range(2, 31, 4)).endswith("(in 9 of 31 runs)")
    assert summary_of_race(range(30, 121, 10)).endswith("(in 11 of 121 runs)")


def test_a_rare_difference_that_may_be_chance_is_unstable() -> None:
    (verdict,) = judged(Result(), case(query()), deviating("", "again 3", "again 80"))
    assert verdict == Unstable("rows: differs in 3 of 121 runs, which may be chance")


@pytest.mark.parametrize(("sqlstate", "kind"), [("55P03", Unstable), ("22012", Finding)])
def test_a_rare_error_that_depends_on_the_load_is_unstable(sqlstate: str, kind: type[Verdict]) -> None:
    def respond(run: Run) -> CaseObservation:
        fails = run.arm == "patched" and run.repetition != 1
        return seen(error(sqlstate) if fails else ok("1"))

    assert isinstance(judged(Result(), case(query()), respond)[0], kind)


@pytest.mark.parametrize("varying", ["again 4", "again 30"])
def test_a_reference_that_varies_in_repetitions_is_unstable(varying: str) -> None:
    def respond(run: Run) -> CaseObservation:
        odd = ("patched", "") if run.arm == "patched" else ("master", varying)
        return seen(ok("2" if (run.arm, variant(run)) == odd else "1"))

    assert judged(Result(), case(query()), respond) == (Unstable("rows: master differs from itself, repeated"),)


def scan(*partitions: str) -> dict[str, object]:
    parts = [{"Node Type": "Seq Scan", "Relation Name": name} for name in partitions]
    inner = {"Node Type": "Hash", "Plans": [{"Node Type": "Seq Scan", "Relation Name": "s"}]}
    join = {"Node Type": "Hash Join", "Join Type": "Left", "Plans": [{"Node Type": "Append", "Plans": parts}, inner]}
    return {"Plan": join, "Execution Time": 1.5}


def test_the_origin_of_wrong_rows_has_the_nodes_of_both_plans() -> None:
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


def test_each_arm_is_compared_with_the_first() -> None:
    def respond(run: Run) -> CaseObservation:
        return seen(ok("2" if run.arm == "third" else "1"))

    verdicts = judged(Result(), case(query()), respond, ("first", "second", "third"))
    assert verdicts[0] == Agree(1)
    assert finding(verdicts).arms == ("first", "third")


def test_equal_arms_cost_one_run_each() -> None:
    executor = StubExecutor(lambda run: seen(ok("1")))
    executor.observe(case(), Result().runs(case(query()), ARMS))
    assert executor.requested == [Run("master", ()), Run("patched", ())]


def test_only_a_few_of_many_differing_rows_are_shown() -> None:
    found = finding(duel(query(), ok(*map(str, range(100))), ok()))
    assert found.summary == "step 0: 100 rows missing, 0 surplus, of 100"
    assert "... and 95 more" in found.expected
    assert found.actual.startswith("no others\n")


def test_a_message_only_one_arm_sends_is_shown_without_those_both_send() -> None:
    both = Message("NOTICE", "00000", "usual")
    found = finding(duel(query(), ok(messages=[both]), ok(messages=[both, warning("unusual")])))
    assert (found.expected, found.actual) == ("no others", "WARNING 01000: unusual")


def test_fields_of_a_message_are_shown() -> None:
    found = finding(
        duel(query(), WITH_NOTICE, replace(WITH_NOTICE, messages=(replace(NOTICE, fields=(("position", "9"),)),)))
    )
    assert found.summary == "step 0: differs in message fields"
    assert found.expected == "NOTICE 00000: usual (table t, position 8)"
    assert found.actual == "NOTICE 00000: usual (position 9)"


@pytest.mark.parametrize(
    "sides", [(ok("1"), error("53100")), (error("53100"), ok("1")), (error("53100"), error("53100"))]
)
def test_a_full_disk_is_inconclusive(sides: tuple[Observation, Observation]) -> None:
    assert duel(query(), *sides) == (Inconclusive("disk full"),)


PLANS = tuple(mode.name for mode in OTHER_PLANS)


@pytest.mark.parametrize("setting", dict(MODES["partitionwise"].settings))
def test_partition_wise_plans_are_on_in_one_plan_and_off_in_another(setting: str) -> None:
    assert {dict(mode.settings).get(setting) for mode in OTHER_PLANS} >= {"on", "off"}


def test_an_error_of_the_reference_under_another_plan_does_not_explain_other_rows() -> None:
    assert finding(duel(query(), ok("1"), ok("2"), "hashed", otherwise=error("22012")))
    assert isinstance(duel(query(), ok("1"), ok("2"), *PLANS, otherwise=error("22012"))[0], Unstable)
    assert isinstance(duel(query(), ok("1"), ok("2"), "again 1", otherwise=error("22012"))[0], Unstable)


@pytest.mark.parametrize(
    ("master", "patched", "otherwise"),
    [
        (ok("1"), error("22012"), error("22012")),
        (ok("1"), error("21000"), error("22003")),
        (error("22012"), ok("1"), error("22003")),
        (error("22012"), error("P0001"), ok("1")),
    ],
)
def test_errors_that_depend_on_values_explain_each_other(
    master: Observation, patched: Observation, otherwise: Observation
) -> None:
    assert isinstance(duel(query(), master, patched, "workers", otherwise=otherwise)[0], Unstable)


@pytest.mark.parametrize("sqlstate", ["42883", "0A000", "XX000"])
def test_they_do_not_explain_any_other_error(sqlstate: str) -> None:
    assert finding(duel(query(), ok("1"), error(sqlstate), "workers", otherwise=error("22012")))
    assert isinstance(duel(query(), ok("1"), error(sqlstate), "workers", otherwise=error(sqlstate))[0], Unstable)


def test_messages_of_another_kind_than_those_that_vary_are_a_finding() -> None:
    notice = Message("NOTICE", "00000", "usual")
    twice, warned = ok("1", messages=[notice, notice]), ok("1", messages=[notice, warning("unwell")])
    assert finding(duel(query(), ok("1", messages=[notice]), warned, "hashed", otherwise=twice))
    assert isinstance(duel(query(), ok("1", messages=[notice]), ok("1"), "hashed", otherwise=twice)[0], Unstable)


def test_messages_that_vary_do_not_explain_other_rows() -> None:
    otherwise = ok("1", messages=[warning("unwell")])
    assert finding(duel(query(), ok("1"), ok("2"), "hashed", otherwise=otherwise))


def test_a_reference_that_varies_is_a_doubt_with_both_of_its_results() -> None:
    (first, *_) = duel(query(), ok("1"), ok("3"), "hashed", otherwise=ok("2"))
    assert isinstance(first, Unstable)
    assert first.step == 0
    assert [side.splitlines()[-1].strip() for side in first.sides] == ["1", "2"]
