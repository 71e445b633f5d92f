"""Sample: the progress of a campaign after a number of cases. Samples are the data of plots over time."""

from dataclasses import dataclass

from fuzz.campaign.counters import Counters

EVERY = 5  # cases between two samples


@dataclass(frozen=True, slots=True)
class Sample:
    """The state of a campaign after its first `cases` cases."""

    cases: int
    at: float  # seconds since the epoch; displayed only
    seconds: float  # elapsed in all parts of a resumed campaign
    statements: int  # compared
    shapes: int  # distinct plan shapes
    findings: int  # distinct fingerprints
    unstable: int  # verdicts
    inconclusive: int  # verdicts


def sample_of(counters: Counters, findings: int, at: float) -> Sample:
    """Return the sample of a campaign's counters and its number of findings."""
    return Sample(
        cases=counters.cases.total(),
        at=at,
        seconds=counters.seconds,
        statements=counters.statements_judged,
        shapes=len(counters.shapes),
        findings=findings,
        unstable=counters.of_kind("unstable"),
        inconclusive=counters.of_kind("inconclusive"),
    )


def is_due(before: int, now: int) -> bool:
    """Return whether a sample is due at `now` cases, if the last one was at `before`."""
    return now // EVERY > before // EVERY
