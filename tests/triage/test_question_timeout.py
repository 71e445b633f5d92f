"""A question about a smaller case is given up where it takes much longer than the whole case did."""

import pytest

from fuzz.triage import question_timeout as limit
from fuzz.triage.question_timeout import FACTOR, LEAST, QuestionTimeout

WHOLE = 3.0  # seconds


class _Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    clock = _Clock()
    monkeypatch.setattr(limit, "time", clock)
    return clock


def test_the_whole_case_has_all_the_time(clock: _Clock) -> None:
    limit = QuestionTimeout()
    with limit.question(whole=True):
        clock.now += 1000 * WHOLE
        assert not limit.passed()


def test_a_smaller_case_has_time_in_proportion(clock: _Clock) -> None:
    limit = QuestionTimeout()
    with limit.question(whole=True):
        clock.now += WHOLE
    with limit.question(whole=False):
        clock.now += FACTOR * WHOLE
        assert not limit.passed()
        clock.now += LEAST + 0.1
        assert limit.passed()
    with limit.question(whole=False):
        assert not limit.passed()


def test_what_is_done_between_questions_has_all_the_time(clock: _Clock) -> None:
    limit = QuestionTimeout()
    with pytest.raises(RuntimeError), limit.question(whole=False):
        raise RuntimeError
    clock.now += 1000 * WHOLE
    assert not limit.passed()
