"""Tests of the timeout of interestingness tests, which depends on the time of the whole case."""

import pytest

from fuzz.triage import interestingness
from fuzz.triage.interestingness import TIMEOUT_FACTOR, TIMEOUT_LEAST, QuestionTimeout

WHOLE = 3.0  # seconds


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
