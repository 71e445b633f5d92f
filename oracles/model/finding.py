"""Finding: an oracle's statement that arms differ, or that one misbehaved, on one case."""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

UNDER_PLAN: Final = " under plan "  # in an origin, before what the plans are made of


@dataclass(frozen=True, slots=True)
class Evidence:
    """A query to run where the step is: its rows, held against the step's or each other's, show the finding.

    Or its plan does, with what it did, or without having run.
    """

    sql: str
    settings: tuple[tuple[str, str], ...] = ()
    explained: bool = False
    planned: bool = False
    plainly: bool = False  # by no other protocol than psql's own, whatever the case's is


@dataclass(frozen=True, slots=True)
class Vote:
    """What most arms say of a finding, where there are at least three."""

    suspect: str  # the arm outvoted, which may be the one held against
    agreeing: tuple[str, ...]  # the others that do alike

    def __str__(self) -> str:
        return f"{self.suspect}, as {' and '.join(self.agreeing)} agree"


@dataclass(frozen=True, slots=True)
class Finding:
    """What differed, where. Its fingerprint is stable over literals and seeds, so equal bugs meet."""

    oracle: str
    arms: tuple[str, str]  # (the one held against, the suspect)
    origin: str  # SQLSTATEs, assertion site, or what a pair of plans is made of
    step: int | None  # position in case.all_steps; None: the case as a whole
    summary: str  # one line
    expected: str
    actual: str
    beside: tuple[Evidence, ...] = ()
    vote: Vote | None = None  # None: there is no majority

    @property
    def fingerprint(self) -> str:
        """Return 12 hexadecimal digits that identify oracle, arms and origin."""
        text = "\0".join((self.oracle, *self.arms, self.origin))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def shown_by_all(self) -> bool:
        """Tell whether the fault is the base's own: no arm is without it."""
        return _are_alike(self.arms)

    def sides(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Return what was expected and what came, each below a title that says which arm did so where they differ."""
        who = ("", "") if self.shown_by_all else tuple(f", as {arm} did" for arm in self.arms)
        return (f"expected{who[0]}", self.expected), (f"actual{who[1]}", self.actual)

    @property
    def symptom(self) -> str:
        """Return the origin without the plan, which changes with the data."""
        return self.origin.partition(UNDER_PLAN)[0]

    def resembles(self, other: "Finding") -> bool:
        """Tell whether both may well be one bug, on cases of different size."""
        return (self.oracle, self.arms, self.symptom) == (other.oracle, other.arms, other.symptom)


def pairs_of(arms: Sequence[str], showing: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Pair each arm that shows a fault, as the suspect, with the first that does not.

    A fault of all arms is the base's own: the first arm is then held against itself.
    """
    sound = [arm for arm in arms if arm not in showing]
    if not sound:
        return ((arms[0], arms[0]),)
    return tuple((sound[0], arm) for arm in arms if arm in showing)


def as_all_do(pair: tuple[str, str]) -> str:
    """Return what a summary adds where the pair says that no arm is without the fault."""
    return " (as all arms do)" if _are_alike(pair) else ""


def _are_alike(pair: tuple[str, str]) -> bool:
    return pair[0] == pair[1]
