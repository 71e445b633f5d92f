"""Outcome of the later tries of a doubt: its text in the store, and its state in reports."""

import re
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

SAME: Final = "same doubt"  # of a try: the oracle repeated its verdict
OTHER: Final = "decided"  # of a try: it did not
_FOUND: Final = "found: "
_ERROR: Final = "could not be tried: "
_REPEATED: Final = re.compile(rf"\b{SAME} \d+ times$")


class DoubtState(StrEnum):
    """The result of the later tries of a doubt."""

    FINDING = "became a finding"  # one of them showed a finding
    DECIDED = "decided"  # the oracle decided in each
    UNDECIDED = "still in doubt"  # at least one ended with the same doubt
    FAILED = "ended with an error"
    UNTRIED = "not tried yet"


def outcome_text(tries: Counter[str], found: Sequence[str], error: str) -> str:
    """Return the outcome of tries (SAME or OTHER → number), as the store has it.

    `found` are fingerprints of findings, and `error` is the reason why there are no more tries, or "".
    """
    if found:
        return f"{_FOUND}{', '.join(found)}"
    return f"{_ERROR}{error}" if error else ", ".join(f"{kind} {count} times" for kind, count in sorted(tries.items()))


def state_of(outcome: str) -> DoubtState:
    """Return the state of a doubt with this outcome."""
    if not outcome:
        return DoubtState.UNTRIED
    if outcome.startswith(_FOUND):
        return DoubtState.FINDING
    if outcome.startswith((OTHER, SAME)):
        return DoubtState.UNDECIDED if _REPEATED.search(outcome) else DoubtState.DECIDED
    return DoubtState.FAILED


def found_in(outcome: str) -> list[str]:
    """Return the fingerprints of the findings in an outcome."""
    return outcome.removeprefix(_FOUND).split(", ") if outcome.startswith(_FOUND) else []
