"""Tests of the oracle `binary_format` on hand-made rows in both formats."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from oracles.binary_format import READ_BACK, BinaryFormat
from oracles.framework.pairwise import REPETITIONS
from oracles.model.case import Kind, Step
from oracles.model.finding import Finding
from oracles.model.mode import Protocol, protocol_of
from oracles.model.observation import CaseObservation, Message, Observation, Outcome, ResultColumn, Run
from oracles.model.oracle import Agree, Inconclusive, NotApplicable, Unstable, Verdict
from tests.oracles.observed import LOST, case, error, finding, judged, ok, query, seen

NUMERIC, REGCLASS, MINE = ResultColumn("a", "1700"), ResultColumn("a", "2205"), ResultColumn("a", "mood")
ANYARRAY = ResultColumn("a", "2277")  # as in pg_stats; its bytes have the OID of its elements' type
Respond = Callable[[Run], Observation]


def returned(*values: str | None, back: Observation | None = None, column: ResultColumn = NUMERIC) -> Observation:
    """Return a query with its rows read back, by default unchanged."""
    rows = replace(ok(*values), columns=(column,))
    return replace(rows, read_back=back or ok(*values))


def raised(sqlstate: str, routine: str) -> Observation:
    return replace(error(sqlstate), messages=(Message("ERROR", sqlstate, "it failed", routine),))


TEXT = returned("1.50", "2")


def verdicts(
    binary: Respond, text: Respond = lambda _: TEXT, arms: tuple[str, ...] = ("master",)
) -> tuple[Verdict, ...]:
    def respond(run: Run) -> CaseObservation:
        protocol = protocol_of(run.modes)
        return seen({Protocol.TEXT: text, Protocol.BINARY: binary}.get(protocol, text)(run))

    return judged(BinaryFormat(), case(query("SELECT a FROM t"), samples=(READ_BACK,)), respond, arms)


def by_one_arm(binary: Observation, text: Observation = TEXT) -> tuple[Verdict, ...]:
    return verdicts(lambda _: binary, lambda _: text)


def in_binary(*values: str | None, back: Observation | None = None, column: ResultColumn = NUMERIC) -> Observation:
    return returned(*values, back=back or ok("2", "1.50"), column=column)


def test_rows_read_back_from_binary_are_the_rows_in_text_in_any_order() -> None:
    assert by_one_arm(in_binary("x", "y")) == (Agree(1),)


def test_rows_that_differ_after_reading_back_are_found() -> None:
    found = finding(by_one_arm(in_binary("x", "y", back=ok("1.5", "2"))))
    assert (found.origin, found.step, found.arms) == ("binary form of type 1700", 0, ("master", "master"))
    assert "1.50" in found.expected
    assert "record_send" in found.evidence[0].sql


@pytest.mark.parametrize(
    ("binary", "origin"),
    [
        (in_binary("x", back=error("22P03")), "binary input: 22P03"),
        (in_binary("x", back=raised("22P03", "int4recv")), "binary input: 22P03 in int4recv"),
        (error("XX000"), "binary output: XX000"),
    ],
)
def test_errors_of_the_binary_format_alone_are_found(binary: Observation, origin: str) -> None:
    assert finding(by_one_arm(replace(binary, read_back=binary.read_back or ok()))).origin == origin


@pytest.mark.parametrize(
    ("binary", "text", "reason"),
    [
        (error("42883"), TEXT, "a type has no binary output"),
        (in_binary("x", back=error("42883")), TEXT, "a type has no binary input"),
        (in_binary("x", back=Observation(Outcome.TIMEOUT, "57014")), TEXT, "binary run cut short"),
        (in_binary("x", back=ok("3")), returned("(1)", back=error("0A000")), "text is not read back"),
        (in_binary("x", back=ok("3")), returned("{0,0,1}", back=ok("{1}")), "text is not read back"),
    ],
)
def test_other_errors_are_inconclusive(binary: Observation, text: Observation, reason: str) -> None:
    assert by_one_arm(binary, text) == (Inconclusive(reason), NotApplicable())


def test_a_fault_must_occur_again() -> None:
    once = verdicts(lambda run: in_binary("x", back=None if run.repetition else ok("3")))
    assert Unstable("binary form of type 1700: not in each run") in once


def test_a_fault_must_occur_in_each_repetition() -> None:
    mostly = verdicts(lambda run: in_binary("x", back=None if run.repetition == REPETITIONS[-1] else ok("3")))
    assert Unstable("binary form of type 1700: not in each run") in mostly


def test_a_session_that_is_lost_in_both_formats_is_inconclusive() -> None:
    cut = replace(seen(TEXT, LOST), residue=None)
    steps = (query("SELECT a FROM t"), query("SELECT a FROM t"))
    found = judged(BinaryFormat(), case(*steps, samples=(READ_BACK,)), lambda _: cut, ("master",))
    assert Inconclusive("connection lost") in found


def test_rows_that_change_with_each_run_are_unstable() -> None:
    changing = verdicts(
        lambda run: in_binary("x", back=ok("3")), lambda run: returned("1") if run.repetition else returned("2")
    )
    assert Unstable("binary form of type 1700: not in each run") in changing


def test_nothing_is_judged_after_a_statement_with_another_outcome() -> None:
    def respond(run: Run) -> CaseObservation:
        binary = protocol_of(run.modes) is Protocol.BINARY
        first = replace(error("42883", transaction="E"), read_back=ok()) if binary else TEXT
        return seen(first, in_binary("x", back=ok("3")) if binary else TEXT)

    steps = (query("SELECT a FROM t"), query("SELECT a FROM t"))
    found = judged(BinaryFormat(), case(*steps, samples=(READ_BACK,)), respond, ("master",))
    assert found == (Inconclusive("a type has no binary output"), NotApplicable())


def in_order(*steps: tuple[Step, Observation, Observation]) -> tuple[Verdict, ...]:
    """Judge a case of these steps, each with its observation in text and in binary format."""

    def respond(run: Run) -> CaseObservation:
        in_text = protocol_of(run.modes) is not Protocol.BINARY
        return seen(*(text if in_text else binary for _, text, binary in steps))

    tested = case(*(step for step, *_ in steps), samples=(READ_BACK,))
    return judged(BinaryFormat(), tested, respond, ("master",))


WRONG = (query("SELECT a FROM t"), TEXT, in_binary("x", back=ok("3")))


def test_queries_after_a_query_with_another_outcome_are_judged() -> None:
    without_output = (query("SELECT a FROM t"), TEXT, replace(error("42883"), read_back=ok()))
    judgement = in_order(without_output, WRONG)
    assert finding(judgement).step == 1
    assert Inconclusive("a type has no binary output") in judgement


@pytest.mark.parametrize(
    "step", [(Step("DELETE FROM t"), ok(), error("57014")), (query("SELECT a FROM t"), error("22012"), ok())]
)
def test_a_statement_that_ends_otherwise_in_binary_format_is_inconclusive(
    step: tuple[Step, Observation, Observation],
) -> None:
    doubts = [each for each in in_order(step, WRONG) if isinstance(each, Inconclusive)]
    assert [(doubt.reason, doubt.step) for doubt in doubts] == [("a statement ends otherwise in binary format", 0)]
    assert all(doubts[0].sides)


def test_nothing_is_judged_after_a_change_with_another_outcome() -> None:
    assert not any(isinstance(each, Finding) for each in in_order((Step("DELETE FROM t"), ok(), error("57014")), WRONG))


def other_bytes(column: ResultColumn) -> Respond:
    return lambda run: in_binary("y" if run.arm == "patched" else "x", column=column)


def test_other_bytes_for_the_same_text_are_found() -> None:
    found = finding(verdicts(other_bytes(NUMERIC), arms=("master", "patched")))
    assert (found.origin, found.arms) == ("bytes of type 1700", ("master", "patched"))


@pytest.mark.parametrize("column", [REGCLASS, MINE, ResultColumn("a", "701"), ANYARRAY])
def test_bytes_of_types_with_several_forms_may_differ(column: ResultColumn) -> None:
    assert verdicts(other_bytes(column), arms=("master", "patched")) == (Agree(1),)


def test_bytes_are_not_compared_if_text_differs() -> None:
    def text(run: Run) -> Observation:
        return TEXT if run.arm == "master" else returned("3")

    def binary(run: Run) -> Observation:
        return in_binary(run.arm, back=None if run.arm == "master" else ok("3"))

    assert verdicts(binary, text, ("master", "patched")) == (Agree(1),)


def test_bytes_that_change_with_each_run_are_unstable() -> None:
    def changing(run: Run) -> Observation:
        return in_binary(f"{run.arm} {run.repetition}")

    (doubt,) = (each for each in verdicts(changing, arms=("master", "patched")) if isinstance(each, Unstable))
    assert doubt.reason == "bytes of type 1700: master differs from itself"


def test_cases_outside_of_the_sample_are_not_judged() -> None:
    plain = replace(case(Step("SELECT a FROM t", Kind.QUERY)), sampled_by_content=False)
    assert judged(BinaryFormat(), plain, lambda _: seen(TEXT)) == (NotApplicable(),)
