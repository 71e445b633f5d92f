"""Tests of the oracle `result` on hand-made observations of whole cases: later steps and stored data."""

from dataclasses import replace

import pytest

from oracles.model.case import Step
from oracles.model.observation import CaseObservation, Message, Observation, Outcome, Run
from oracles.model.oracle import Agree, Inconclusive, Unstable, Verdict
from oracles.result import Result
from tests.oracles.observed import LOST, SKIPPED, case, error, finding, judged, ok, query, seen, timeout, variant

COMMAND = Step("INSERT INTO t VALUES (1)")


def cases(master: CaseObservation, patched: CaseObservation, *steps: Step) -> tuple[Verdict, ...]:
    return judged(Result(), case(*steps), lambda run: master if run.arm == "master" else patched)


def test_an_unstable_query_does_not_hide_later_steps() -> None:
    def respond(run: Run) -> CaseObservation:
        first = ok("x" if run.arm == "master" and variant(run) != "hashed" else "y")
        return seen(first, ok("1" if run.arm == "master" else "2"))

    verdicts = judged(Result(), case(query(), query()), respond)
    assert verdicts[0] == Unstable("rows: master differs from itself, hashed")
    assert finding(verdicts).step == 1


def test_nothing_is_compared_once_the_data_may_differ() -> None:
    master = seen(ok(tag="INSERT 0 2"), ok("1", "2"), digests={"t": "2 77"})
    patched = seen(ok(tag="INSERT 0 1"), ok("1"), digests={"t": "1 66"})
    verdicts = cases(master, patched, COMMAND, query())
    assert (len(verdicts), finding(verdicts).step) == (1, 0)
    assert finding(verdicts).origin == "command tags: INSERT"


def test_after_an_unstable_write_statements_on_other_tables_are_compared() -> None:
    steps = (
        *(Step(f"CREATE TABLE {name} (x int)") for name in "tu"),
        *(Step("INSERT INTO t SELECT 1"), query("SELECT x FROM t"), query("SELECT x FROM u")),
    )

    def respond(run: Run) -> CaseObservation:
        plain = run.arm == "master" and variant(run) != "hashed"
        written = ok(tag="INSERT 0 1" if plain else "INSERT 0 2")
        return seen(ok(), ok(), written, ok("1" if plain else "2"), ok("1" if run.arm == "master" else "2"))

    verdicts = judged(Result(), case(*steps), respond)
    assert verdicts[0] == Unstable("command tags: master differs from itself, hashed")
    assert finding(verdicts).step == 4


def test_an_error_whose_text_alone_differs_leaves_equal_data() -> None:
    def respond(run: Run) -> CaseObservation:
        other = run.arm == "patched" or variant(run) == "indexed"
        return seen(error("23505", "that" if other else "this"), ok("2" if run.arm == "patched" else "1"))

    verdicts = judged(Result(), case(COMMAND, query()), respond)
    assert isinstance(verdicts[0], Unstable)
    assert finding(verdicts).step == 1


@pytest.mark.parametrize("both", [False, True])
def test_after_a_query_timed_out_the_rest_is_compared(both: bool) -> None:  # noqa: FBT001
    master, patched = seen(timeout() if both else ok("1"), ok("1")), seen(timeout(), ok("1"))
    assert cases(master, patched, query(), query()) == (Inconclusive("timeout"), Agree(1))
    different = seen(timeout(), ok("2"))
    assert finding(cases(master, different, query(), query())).step == 1


def test_large_results_are_a_doubt_and_the_rest_is_compared() -> None:
    large = Observation(Outcome.TOO_LARGE, tags=("SELECT 9",), transaction="I")
    verdicts = cases(seen(large, ok("1")), seen(large, ok("1")), query(), query())
    assert verdicts == (Inconclusive("the result is too large"), Agree(1))


@pytest.mark.parametrize(
    ("step", "master", "patched"),
    [
        (COMMAND, ok(tag="INSERT 0 1"), timeout()),  # the row may be stored
        (COMMAND, timeout(), timeout()),  # sequences may have advanced differently
        (query(), ok("1", transaction="T"), timeout("E")),  # a later COMMIT may become a ROLLBACK
        (query(), ok("1", transaction=""), timeout("")),
        (query(), LOST, ok("1")),
    ],
)
def test_after_an_end_that_may_have_changed_the_data_nothing_is_compared(
    step: Step, master: Observation, patched: Observation
) -> None:
    verdicts = cases(seen(master, ok("1"), digests={"t": "1 1"}), seen(patched, ok("2"), digests={}), step, query())
    assert len(verdicts) == 1
    assert isinstance(verdicts[0], Inconclusive)


def test_a_lost_connection_is_inconclusive() -> None:
    lost = replace(seen(ok("1"), LOST, SKIPPED), residue=None)
    steps = (query(), query(), query())
    verdicts = cases(seen(ok("1"), ok("1"), ok("1")), lost, *steps)
    assert verdicts == (Inconclusive("connection lost"), Agree(1))


def test_a_connection_lost_after_the_last_step_leaves_no_digests_to_compare() -> None:
    lost = replace(seen(ok("1")), residue=None)
    assert cases(seen(ok("1"), digests={"t": "1 1"}), lost, query()) == (Inconclusive("connection lost"), Agree(1))


def test_tables_that_could_not_be_read_in_time_are_inconclusive() -> None:
    hasty = closing("57014", digested=False)
    assert cases(seen(ok("1"), digests={"t": "1 1"}), hasty, query()) == (Inconclusive("timeout"), Agree(1))


def closing(*sqlstates: str, digested: bool = True) -> CaseObservation:
    """Return a case of one step whose end raises these errors."""
    errors = tuple(Message("ERROR", sqlstate, "it failed") for sqlstate in sqlstates)
    return replace(seen(ok("1"), digests={"t": "1 1"} if digested else {}), digested=digested, closing=errors)


@pytest.mark.parametrize("digested", [False, True])
def test_other_errors_at_the_end_of_a_case_are_found(digested: bool) -> None:  # noqa: FBT001
    found = finding(cases(closing("2BP01"), closing("2BP01", "XX000", digested=digested), query()))
    assert (found.origin, found.step) == ("errors at the end: 2BP01 / 2BP01, XX000", None)
    assert (found.expected, found.actual) == (
        "ERROR 2BP01: it failed",
        "ERROR 2BP01: it failed\nERROR XX000: it failed",
    )


def test_errors_at_the_end_that_the_reference_raises_under_another_plan_are_unstable() -> None:
    def respond(run: Run) -> CaseObservation:
        return closing("XX000") if run.arm == "patched" or variant(run) == "workers" else closing()

    verdicts = judged(Result(), case(query()), respond)
    assert verdicts == (Unstable("errors at the end: master differs from itself, workers"), Agree(1))


def test_an_error_at_the_end_is_not_confirmed_by_a_repetition_whose_end_is_cut() -> None:
    def respond(run: Run) -> CaseObservation:
        if run.arm == "master":
            return closing("57014") if variant(run) == "again 1" else closing()
        return closing("XX000")

    assert judged(Result(), case(query()), respond) == (Inconclusive("repetition cut short"), Agree(1))


@pytest.mark.parametrize(("sqlstate", "reason"), [("57014", "timeout"), ("53200", "out of resources")])
def test_errors_at_the_end_that_depend_on_load_are_inconclusive(sqlstate: str, reason: str) -> None:
    assert cases(closing(), closing(sqlstate), query()) == (Inconclusive(reason), Agree(1))


def test_tables_that_no_arm_can_read_are_inconclusive() -> None:
    unread = closing("XX000", digested=False)
    assert cases(unread, unread, query()) == (Inconclusive("tables cannot be read"), Agree(1))


@pytest.mark.parametrize(
    ("name", "master", "patched", "origin"),
    [
        ("t", "2 77", "2 78", "stored: table"),
        ("t", "2 77", "1 77", "stored: table"),
        ("t", "0 0", None, "stored: table"),
        ("t_id_seq", "7", "8", "stored: sequence"),  # a failed statement took one more
        ("t_id_seq", "1 unused", "1", "stored: sequence"),
    ],
)
def test_stored_data_counts(name: str, master: str, patched: str | None, origin: str) -> None:
    failed = error("23505")
    gone = {} if patched is None else {name: patched}
    found = finding(cases(seen(failed, digests={name: master}), seen(failed, digests=gone), COMMAND))
    assert (found.origin, found.step) == (origin, None)
    assert name in found.summary


def stored(master: str, otherwise: str, patched: str) -> tuple[Verdict, ...]:
    """Judge a case with these contents of table t; the reference stores `otherwise` under another plan."""

    def respond(run: Run) -> CaseObservation:
        held = patched if run.arm == "patched" else otherwise if variant(run) == "workers" else master
        return seen(ok(tag="INSERT 0 2"), digests={"a": "1 1", "t": held})

    return judged(Result(), case(COMMAND), respond)


def test_ids_in_the_order_of_the_plan_are_unstable() -> None:
    assert stored("2 77", "2 55", "2 66")[0] == Unstable("contents stored: master differs from itself, workers")


def test_lost_rows_are_found_even_if_ids_depend_on_the_plan() -> None:
    assert finding(stored("2 77", "2 55", "1 66")).summary == "after the case: t differs in number of rows stored"


def test_an_unstable_sequence_does_not_hide_a_table() -> None:
    def respond(run: Run) -> CaseObservation:
        drawn = "9" if variant(run) == "workers" or run.arm == "patched" else "7"
        return seen(error("23505"), digests={"s": drawn, "t": "1 1" if run.arm == "master" else "1 2"})

    verdicts = judged(Result(), case(COMMAND), respond)
    assert isinstance(verdicts[0], Unstable)
    assert finding(verdicts).origin == "stored: table"
