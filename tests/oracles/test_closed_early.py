"""Tests of the oracle `closed_early` on hand-made rows of cursors that were closed early."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from oracles.closed_early import ClosedEarly
from oracles.model.case import Case
from oracles.model.mode import Mode, Protocol, protocol_of, settings_of
from oracles.model.observation import CaseObservation, Observation, Outcome, Run
from oracles.model.oracle import Agree, Inconclusive, NotApplicable, Unstable, Verdict
from tests.oracles.observed import case, error, finding, judged, ok, query, seen

EARLY = Mode("closed_early", protocol=Protocol.CLOSED_EARLY, changes_results=True)
CASE = case(query("SELECT n FROM t"), modes=(EARLY,))
WHOLE = ok("1", "2", "2", "3")


def is_whole(run: Run) -> bool:
    return protocol_of(run.modes) is not Protocol.CLOSED_EARLY


def verdicts(
    patched: Observation, master: Observation | None = None, whole: Callable[[Run], Observation] = lambda _: WHOLE
) -> tuple[Verdict, ...]:
    """Judge the first rows of both arms by the whole result of the reference."""

    def respond(run: Run) -> CaseObservation:
        if is_whole(run):
            assert run.arm == "master"
            return seen(whole(run))
        return seen(patched if run.arm == "patched" else master or ok("1", "2"))

    return judged(ClosedEarly(), CASE, respond)


@pytest.mark.parametrize("rows", [("3", "2"), ("2", "2"), ("1", "2"), ()])
def test_any_rows_of_the_whole_result_agree(rows: tuple[str, ...]) -> None:
    assert verdicts(ok(*rows)) == (Agree(1),)


@pytest.mark.parametrize("rows", [("4", "2"), ("1", "1"), ("1", None)])
def test_rows_that_the_whole_result_lacks_are_found(rows: tuple[str, ...]) -> None:
    found = finding(verdicts(ok(*rows)))
    assert found.step == 0
    assert found.summary.startswith("step 0: 1 of 2 rows of a closed cursor")
    assert found.evidence[0].sql == "SELECT n FROM t"


def test_a_fault_of_the_reference_too_is_unstable() -> None:
    assert verdicts(ok("4", "2"), master=ok("4", "1")) == (Unstable("master does so, too"),)


def test_a_whole_result_that_depends_on_the_plan_is_unstable() -> None:
    by_plan = verdicts(ok("4", "2"), whole=lambda run: ok("4", "2") if len(run.modes) > 2 else WHOLE)
    assert by_plan == (Unstable("master differs from itself"),)


def test_rows_that_occur_once_are_unstable() -> None:
    def respond(run: Run) -> CaseObservation:
        odd = run.arm == "patched" and not run.repetition
        return seen(WHOLE if is_whole(run) else ok("4", "2") if odd else ok("1", "2"))

    assert judged(ClosedEarly(), CASE, respond) == (Unstable("rows of a closed cursor: not each time"),)


def test_a_doubt_about_one_query_hides_no_fault_of_another() -> None:
    two = case(query("SELECT n FROM t"), query("SELECT n FROM u"), modes=(EARLY,))

    def respond(run: Run) -> CaseObservation:
        by_plan = ok("4", "2") if len(run.modes) > 2 else WHOLE
        return seen(by_plan, WHOLE) if is_whole(run) else seen(*[ok("4" if run.arm == "patched" else "1", "2")] * 2)

    assert finding(judged(ClosedEarly(), two, respond)).step == 1


@pytest.mark.parametrize("outcome", [Outcome.TIMEOUT, Outcome.TOO_LARGE])
def test_a_query_that_is_not_read_to_its_end_is_inconclusive(outcome: Outcome) -> None:
    cut = Observation(outcome)
    assert verdicts(ok("1", "2"), whole=lambda _: cut) == (Inconclusive("the whole query was not read"),)


def test_other_contents_of_tables_are_inconclusive() -> None:
    def respond(run: Run) -> CaseObservation:
        return seen(WHOLE, digests={"t": "4 7" if is_whole(run) else "5 7"})

    assert judged(ClosedEarly(), CASE, respond) == (Inconclusive("tables differ after the case"),)


@pytest.mark.parametrize(
    "of",
    [
        case(query("SELECT n FROM t")),  # no cursor
        case(query("SELECT n FROM t ORDER BY n", ordered=True), modes=(EARLY,)),
    ],
)
def test_other_cases_are_not_judged(of: Case) -> None:
    assert judged(ClosedEarly(), of, lambda _: seen(WHOLE)) == (NotApplicable(),)


def test_a_failed_query_is_not_judged() -> None:
    assert judged(ClosedEarly(), CASE, lambda _: seen(error("22012"))) == (NotApplicable(),)


def test_the_whole_result_is_read_without_the_limit_and_with_all_other_settings() -> None:
    small = Mode("small", (("work_mem", "64kB"),))
    runs = ClosedEarly().own_runs(replace(CASE, modes=(small, EARLY)), ("master", "patched"))
    assert [run.arm for run in runs] == ["master"]
    assert is_whole(runs[0])
    assert settings_of(runs[0].modes) == dict(small.settings)
