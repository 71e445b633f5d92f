"""Finding: an oracle's report that arms differ, or that one arm misbehaves, on one case."""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

UNDER_PLAN: Final = " under plan "  # separates symptom and plan in an origin


@dataclass(frozen=True, slots=True)
class Evidence:
    """A query that shows a finding when it runs at the finding's step.

    Its rows are compared with the step's rows, or with those of the other evidence. With `explained` its EXPLAIN
    ANALYZE is the evidence, with `planned` its plan alone.
    """

    sql: str
    settings: tuple[tuple[str, str], ...] = ()
    explained: bool = False
    planned: bool = False
    simple_protocol: bool = False  # psql sends it over the simple protocol, also if the case has another one


@dataclass(frozen=True, slots=True)
class Vote:
    """The majority's judgement on a finding, where there are at least three arms."""

    suspect: str  # the outvoted arm, which may be the reference
    agreeing: tuple[str, ...]  # the other arms, which behave alike

    def __str__(self) -> str:
        return f"{self.suspect}, as {' and '.join(self.agreeing)} agree"


@dataclass(frozen=True, slots=True)
class Finding:
    """A difference or fault, and its step.

    The fingerprint depends on neither literals nor seeds, so that repeated findings of one bug have one fingerprint.
    """

    oracle: str
    arms: tuple[str, str]  # (reference, suspect)
    origin: str  # SQLSTATEs, assertion site, or the node types of a pair of plans
    step: int | None  # position in case.all_steps; None: the case as a whole
    summary: str  # one line
    expected: str
    actual: str
    evidence: tuple[Evidence, ...] = ()
    vote: Vote | None = None  # None: no majority

    @property
    def fingerprint(self) -> str:
        """Return 12 hexadecimal digits that identify oracle, arms and origin."""
        text = "\0".join((self.oracle, *self.arms, self.origin))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def shown_by_all(self) -> bool:
        """Return whether all arms have the fault, so that it is a fault of the base."""
        return _are_alike(self.arms)

    def sides(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Return expected and actual behaviour, each with a title. The titles name the arms where these differ."""
        who = ("", "") if self.shown_by_all else tuple(f", as {arm} did" for arm in self.arms)
        return (f"expected{who[0]}", self.expected), (f"actual{who[1]}", self.actual)

    @property
    def symptom(self) -> str:
        """Return the origin without the plan, because reduction of the data changes the plan."""
        return self.origin.partition(UNDER_PLAN)[0]

    def resembles(self, other: "Finding") -> bool:
        """Return whether both findings are probably one bug, on cases of different size."""
        return (self.oracle, self.arms, self.symptom) == (other.oracle, other.arms, other.symptom)


def pairs_of(arms: Sequence[str], showing: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Return a pair (first arm without the fault, suspect) for each arm that has a fault.

    If all arms have it, it is a fault of the base, and the only pair has the first arm twice.
    """
    sound = [arm for arm in arms if arm not in showing]
    if not sound:
        return ((arms[0], arms[0]),)
    return tuple((sound[0], arm) for arm in arms if arm in showing)


def first_of_each(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the first finding of each fingerprint."""
    first: dict[str, Finding] = {}
    for finding in findings:
        first.setdefault(finding.fingerprint, finding)
    return tuple(first.values())


def as_all_do(pair: tuple[str, str]) -> str:
    """Return the addition to a summary if the pair marks a fault of all arms, else the empty string."""
    return " (as all arms do)" if _are_alike(pair) else ""


def _are_alike(pair: tuple[str, str]) -> bool:
    return pair[0] == pair[1]
