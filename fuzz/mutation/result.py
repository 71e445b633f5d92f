"""The result of a mutant, and its outcome."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from fuzz.mutation.mutants import Mutant

SERVER: Final = "server"  # in place of an oracle, if a mutant's server does not start, or goes away again and again
_SLOWER: Final = 10  # times as long as without the mutation, and _LEAST seconds more, until a mutant counts as hanging
_LEAST: Final = 300.0


def seconds_allowed(sound: float) -> float:
    """Return the time limit of a mutant for what takes `sound` seconds without the mutation."""
    return _LEAST + _SLOWER * sound


@dataclass(frozen=True, slots=True)
class Kill:
    """The first finding of a duel."""

    oracle: str
    summary: str
    case: str  # identity; empty if no case was needed
    again: bool  # whether the same oracle reported a finding on the same case again


@dataclass(frozen=True, slots=True)
class DuelResult:
    """The number of judged cases, that of cases on which pgduel itself failed, and the finding that ended the duel.

    `seconds` are those of the cases, or of all tries to start a server that does not start. Results of earlier
    versions have neither `seconds` nor `limit`: their duels had no limit.
    """

    cases: int
    failures: int = 0
    kill: Kill | None = None
    seconds: float | None = None
    limit: float | None = None  # seconds after which no further case began

    def holds(self, limit: float) -> bool:
        """Return whether a duel with this limit would have the same outcome."""
        if self.seconds is None or self.limit is None:
            return True
        if self.kill is not None:
            return min(self.seconds, self.limit) <= limit
        return self.seconds < self.limit or limit <= self.limit


class MutantOutcome(StrEnum):
    """All outcomes of a mutant. The last four are those of judged mutants."""

    INVALID = "invalid"
    EQUIVALENT = "equivalent"
    DUEL = "killed by the duel only"
    TESTS = "killed by the tests only"
    BOTH = "killed by both"
    NOBODY = "killed by nobody"


JUDGED = (MutantOutcome.DUEL, MutantOutcome.TESTS, MutantOutcome.BOTH, MutantOutcome.NOBODY)


@dataclass(frozen=True, slots=True)
class MutantResult:
    """All that is known of a mutant."""

    mutant: Mutant
    invalid: str = ""  # the reason why it does not compile
    duel: DuelResult | None = None  # None: not judged
    failed_tests: tuple[str, ...] = field(default=())

    @property
    def outcome(self) -> MutantOutcome:
        """Return the outcome."""
        if self.invalid:
            return MutantOutcome.INVALID
        if self.duel is None:
            return MutantOutcome.EQUIVALENT
        if self.duel.kill is None:
            return MutantOutcome.TESTS if self.failed_tests else MutantOutcome.NOBODY
        return MutantOutcome.BOTH if self.failed_tests else MutantOutcome.DUEL

    @property
    def judged(self) -> bool:
        """Return whether it was held against the duel and the tests."""
        return self.outcome in JUDGED

    def holds(self, limit: float) -> bool:
        """Return whether the result is that of a duel with this limit, in seconds."""
        return self.duel is None or self.duel.holds(limit)
