"""Jobs and results that a campaign and its workers exchange. Ranges of cases are defined in schedule.py."""

from dataclasses import dataclass, field

from fuzz.campaign.counters import Counters
from fuzz.campaign.schedule import Range


@dataclass(frozen=True, slots=True)
class Reduction:
    """The job to reduce the stored finding of this fingerprint and write its reproducer."""

    fingerprint: str


@dataclass(frozen=True, slots=True)
class Retry:
    """Judge the case of the stored doubt of this name again, several times and alone."""

    doubt: str


@dataclass(slots=True)
class RangeResult:
    """Result of the first `done` cases of a range. Their findings are already in the store."""

    done: int = 0
    counters: Counters = field(default_factory=Counters)
    found: list[str] = field(default_factory=list)  # fingerprints that are new in the store
    failures: dict[str, str] = field(default_factory=dict)  # of pgduel: generator and kind of error → line about one
    outage: str | None = None  # reason for an early end: a server is down
    fatal: str | None = None  # reason why the campaign cannot continue: a finding could not be stored


@dataclass(frozen=True, slots=True)
class ReductionResult:
    """Result of a reduction: a line for the user. The reproducer's path is already in the store."""

    note: str


@dataclass(frozen=True, slots=True)
class RetryResult:
    """Result of a Retry: a line for the user, and fingerprints of new findings. The outcome is in the store."""

    note: str
    found: tuple[str, ...] = ()


Job = Range | Reduction | Retry
Result = RangeResult | ReductionResult | RetryResult
