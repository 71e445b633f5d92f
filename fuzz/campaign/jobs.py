"""What a campaign asks of a worker, and what it gets back. A case range is the third kind of word: see schedule.py."""

from dataclasses import dataclass, field

from fuzz.campaign.counters import Counters
from fuzz.campaign.schedule import Range


@dataclass(frozen=True, slots=True)
class Reduction:
    """Reduce the stored finding of this fingerprint and write its reproducer."""

    fingerprint: str


@dataclass(slots=True)
class RangeResult:
    """The first `done` cases of a range, counted. Their findings are in the store by now."""

    done: int = 0
    counters: Counters = field(default_factory=Counters)
    found: list[str] = field(default_factory=list)  # fingerprints that the store did not know
    notes: list[str] = field(default_factory=list)  # lines for the user
    trouble: str | None = None  # why it ended before the range did: the servers are away
    fatal: str | None = None  # why the campaign cannot go on at all: a finding could not be kept


@dataclass(frozen=True, slots=True)
class ReductionResult:
    """Outcome of a Reduction: a line for the user. The reproducer's path is in the store by now."""

    note: str


Job = Range | Reduction
Result = RangeResult | ReductionResult
