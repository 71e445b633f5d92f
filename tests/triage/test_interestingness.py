"""Tests of interestingness tests: their timeout depends on the time of the whole case, and oracles may fail."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from fuzz.campaign.store import Store
from fuzz.servers.arm import Arm
from fuzz.servers.build import Build
from fuzz.servers.cluster import Cluster
from fuzz.triage import interestingness
from fuzz.triage.interestingness import TIMEOUT_FACTOR, TIMEOUT_LEAST, QuestionTimeout
from fuzz.triage.triage import Triage
from oracles.model.case import Case, Kind, Step
from oracles.model.finding import Finding
from oracles.model.oracle import More, Observations, Verdict
from oracles.result import Result

WHOLE = 3.0  # seconds
FINDING = Finding("result", ("a", "b"), "rows", 2, "rows", "", "")
KEPT = Step("SELECT 7", Kind.QUERY)
DIFFERENT = Step("SELECT 1 WHERE current_setting('data_directory') LIKE '%/b-%'", Kind.QUERY)
CASE = Case("by_hand", (), (Step("SELECT 2", Kind.QUERY), KEPT, DIFFERENT))


class _Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    clock = _Clock()
    monkeypatch.setattr(interestingness, "time", clock)
    return clock


def test_the_whole_case_has_no_timeout(clock: _Clock) -> None:
    limit = QuestionTimeout()
    with limit.applied(whole=True):
        clock.now += 1000 * WHOLE
        assert not limit.passed()


def test_the_timeout_of_a_smaller_case_is_proportional(clock: _Clock) -> None:
    limit = QuestionTimeout()
    with limit.applied(whole=True):
        clock.now += WHOLE
    with limit.applied(whole=False):
        clock.now += TIMEOUT_FACTOR * WHOLE
        assert not limit.passed()
        clock.now += TIMEOUT_LEAST + 0.1
        assert limit.passed()
    with limit.applied(whole=False):
        assert not limit.passed()


def test_there_is_no_timeout_between_tests(clock: _Clock) -> None:
    limit = QuestionTimeout()
    with pytest.raises(RuntimeError), limit.applied(whole=False):
        raise RuntimeError
    clock.now += 1000 * WHOLE
    assert not limit.passed()


@pytest.fixture
def two(build: Build) -> Iterator[tuple[Arm, ...]]:
    with Cluster(build, "a") as a, Cluster(build, "b") as b:
        yield Arm("a", build, a, ()), Arm("b", build, b, ())


def fail_without(step: Step, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an oracle fail on cases without a step."""
    judge = Result.judge

    def judge_or_fail(
        oracle: Result, case: Case, arms: Sequence[str], observations: Observations
    ) -> tuple[Verdict, ...] | More:
        if step not in case.steps:
            raise KeyError("Plan Rows")
        return judge(oracle, case, arms, observations)

    monkeypatch.setattr(Result, "judge", judge_or_fail)


@pytest.mark.servers
def test_a_smaller_case_on_which_the_oracle_fails_is_not_interesting(
    two: tuple[Arm, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_without(KEPT, monkeypatch)
    with closing(Store(tmp_path)) as store:
        store.add_finding(FINDING, "1/by_hand/0", CASE)
        (found,) = store.findings()
        smallest = Triage("", {}, store).reduce(found, two)
    assert smallest.always
    assert smallest.case.steps == (KEPT, DIFFERENT)


@pytest.mark.servers
def test_an_oracle_that_fails_on_the_whole_case_is_an_error(
    two: tuple[Arm, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_without(Step("SELECT 8"), monkeypatch)
    with closing(Store(tmp_path)) as store:
        store.add_finding(FINDING, "1/by_hand/0", CASE)
        (found,) = store.findings()
        with pytest.raises(KeyError, match="Plan Rows"):
            Triage("", {}, store).reduce(found, two)
