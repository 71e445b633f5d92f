"""Tests of the outcomes of doubts: each text of the store has a state."""

from collections import Counter

import pytest

from fuzz.campaign.doubt_outcome import OTHER, SAME, DoubtState, found_in, outcome_text, state_of


@pytest.mark.parametrize(
    ("tries", "found", "error", "text", "state"),
    [
        ({OTHER: 20}, [], "", "decided 20 times", DoubtState.DECIDED),
        ({SAME: 20}, [], "", "same doubt 20 times", DoubtState.UNDECIDED),
        ({SAME: 1, OTHER: 19}, [], "", "decided 19 times, same doubt 1 times", DoubtState.UNDECIDED),
        ({SAME: 3}, ["ab", "cd"], "", "found: ab, cd", DoubtState.FINDING),
        ({SAME: 3}, [], "same doubt 3 times", "could not be tried: same doubt 3 times", DoubtState.FAILED),
    ],
)
def test_an_outcome_has_a_text_and_a_state(
    tries: dict[str, int], found: list[str], error: str, text: str, state: DoubtState
) -> None:
    assert outcome_text(Counter(tries), found, error) == text
    assert (state_of(text), found_in(text)) == (state, found)


def test_a_doubt_without_tries_and_one_that_killed_a_worker() -> None:
    assert state_of("") is DoubtState.UNTRIED
    assert state_of("killed a worker") is DoubtState.FAILED
