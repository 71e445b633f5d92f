"""Tests of runs with replaced queries: in one shared scene, they give the observations of separate runs."""

from dataclasses import replace

import pytest

from fuzz.execution.executor import Executor, groups
from fuzz.execution.messages import values_of
from oracles.model.case import Case, Step
from oracles.model.mode import Mode, Protocol
from oracles.model.observation import CaseObservation, Outcome, Run
from tests.execution.conftest import PROTOCOLS, query

pytestmark = pytest.mark.servers

SCENE = (
    Step("CREATE TABLE numbers AS SELECT n FROM generate_series(1, 20) n"),
    Step("CREATE TABLE made AS SELECT pg_backend_pid() AS by"),
)
WHOLE = "SELECT n FROM numbers"


def variants(case: Case, *instead: tuple[tuple[int, str], ...]) -> list[Run]:
    return [Run("a", case.modes, instead=each) for each in instead]


def executed_separately(executor: Executor, case: Case, runs: list[Run]) -> dict[Run, CaseObservation]:
    return {run: seen for run in runs for seen in executor.observe(case, [run]).values()}


def shown(seen: CaseObservation) -> list[object]:
    return [replace(step, transaction="") for step in seen.steps]


@pytest.mark.parametrize("protocol", Protocol)
def test_shared_and_separate_runs_have_equal_observations(executor: Executor, protocol: Protocol) -> None:
    steps = (
        query(WHOLE),
        Step("DELETE FROM numbers WHERE n > 15"),
        query("SELECT count(*) FROM numbers WHERE n > $1", "3"),
    )
    case = Case("test", SCENE, steps, (PROTOCOLS[protocol],))
    runs = variants(
        case,
        (),
        ((2, "SELECT -n FROM numbers"), (4, "SELECT sum(n) FROM numbers WHERE n < $1")),
        ((2, "SELECT 1 / 0"), (4, "SELECT")),
        ((2, WHOLE + " LIMIT 3"),),
    )
    together = executor.observe(case, runs)
    assert {run: shown(seen) for run, seen in together.items()} == {
        run: shown(seen) for run, seen in executed_separately(executor, case, runs).items()
    }
    assert len({seen.digests for seen in together.values()}) == 1


def test_the_scene_is_made_once(executor: Executor) -> None:
    case = Case("test", SCENE, (query("SELECT by FROM made"), query("SELECT by, 1 FROM made")))
    seen = executor.observe(case, variants(case, (), ((2, "SELECT by, 2 FROM made"),)))
    assert len({values_of(each.steps[2].rows[0])[0] for each in seen.values()}) == 1


def test_an_aborted_transaction_does_not_affect_other_runs(executor: Executor) -> None:
    case = Case("test", SCENE, (Step("BEGIN"), query(WHOLE), query(WHOLE), Step("COMMIT")))
    runs = variants(case, (), ((3, "SELECT 1 / 0"),), ((4, "SELECT n + 1 FROM numbers"),))
    for run, seen in executor.observe(case, runs).items():
        failed = run == runs[1]
        assert [step.outcome for step in seen.steps[3:5]] == [Outcome.ERROR if failed else Outcome.OK] * 2


def test_the_end_of_a_session_does_not_affect_other_runs(executor: Executor) -> None:
    case = Case("test", SCENE, (query(WHOLE), query("SELECT count(*) FROM numbers")))
    runs = variants(case, (), ((2, "SELECT pg_terminate_backend(pg_backend_pid())"),))
    whole, ended = executor.observe(case, runs).values()
    assert [step.outcome for step in whole.steps] == [Outcome.OK] * 4
    assert [step.outcome for step in ended.steps[2:]] == [Outcome.LOST, Outcome.SKIPPED]


TOUCH = "SELECT set_config('duel.touched', 'yes', false)"
FAILS = """\
CREATE FUNCTION fails() RETURNS int LANGUAGE plpgsql AS $$BEGIN
    IF current_setting('duel.touched', true) = 'yes' THEN RAISE 'no' USING ERRCODE = 'XX000'; END IF;
    RETURN 1;
END$$"""


def test_an_internal_error_that_no_single_run_repeats_is_returned(executor: Executor) -> None:
    steps = (Step("BEGIN"), query(WHOLE), Step("ROLLBACK"))
    case = Case("test", (*SCENE, Step(FAILS)), steps)
    runs = variants(case, ((4, TOUCH),), ((4, "SELECT fails()"),))
    seen = executor.observe(case, runs)
    (shared,) = seen.keys() - runs
    assert shared == replace(runs[0], instead=((4, f"{TOUCH}\n;SELECT fails()"),))
    assert [step.outcome for step in seen[runs[1]].steps] == [Outcome.OK] * 6
    assert [step.sqlstate for step in seen[shared].steps] == ["", "", "", "", "XX000", ""]
    sound = replace(runs[0], arm="b", instead=shared.instead)
    both = executor.observe(case, [*runs, *(replace(run, arm="b") for run in runs)])
    assert both.keys() - runs >= {shared, sound}


def test_runs_that_change_data_or_are_measured_have_their_own_scene() -> None:
    case = Case("test", SCENE, (query(WHOLE), Step("ANALYZE numbers")))
    replaced, other = variants(case, ((2, "SELECT 1"),), ((2, "SELECT 2"),))
    others = [
        *variants(case, ((3, "ANALYZE made"),), ((3, "VACUUM made"),)),
        *(replace(replaced, repeats=2), replace(other, repeats=2)),
        *(replace(replaced, explain=True), replace(other, explain=True)),
        *(replace(replaced, plannings=5), replace(other, plannings=5)),
        replace(replaced, modes=(Mode("other"),)),
    ]
    assert groups(case, [replaced, *others, other]) == [[replaced, other], *([each] for each in others)]
