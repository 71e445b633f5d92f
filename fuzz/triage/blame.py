"""Finding the patch that a finding begins with: its case is tried on builds of shorter and shorter series.

Blame: with which patch a finding begins, as far as prefixes of a series were tried.

Bisection: the shortest prefix of a series that shows something, in few questions, as each may take a build.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, log
from typing import Any

from fuzz.execution.executor import Executor
from fuzz.servers import Report
from fuzz.servers.arm import Arm
from fuzz.servers.build import ensure_build, find_build
from fuzz.servers.cluster import Cluster
from fuzz.triage.interestingness import FindingCheck
from fuzz.triage.reduced_case import ReducedCase

UPSTREAM = "upstream"  # in the place of a patch


@dataclass(frozen=True, slots=True)
class Blame:
    """Which prefixes of an arm's series were tried, and whether they showed it.

    The arm is the suspect; or the one it is held against, where the suspect shows it without any patch.
    """

    arm: str
    series: tuple[str, ...]  # names of its patches
    tried: tuple[tuple[int, bool], ...]  # (how many patches, whether it showed), ascending

    @property
    def first(self) -> int | None:
        """Return the length of the shortest prefix from which on all showed it; None if the longest did not."""
        hiding = max((length for length, shows in self.tried if not shows), default=-1)
        return next((length for length, _ in self.tried if length > hiding), None)

    @property
    def patches(self) -> tuple[str, ...]:
        """Return the patches of which one is to blame: the fewer, the more prefixes were tried. None: no patch is."""
        if self.first is None:
            return ()
        return self.series[max((length for length, _ in self.tried if length < self.first), default=0) : self.first]

    @property
    def exceptions(self) -> tuple[int, ...]:
        """Return how many patches show it before it is gone again: then more than one patch has a part in it."""
        first = self.first
        return () if first is None else tuple(length for length, shows in self.tried if length < first and shows)

    @property
    def key(self) -> str:
        """Return what two findings have in common for which the same is to blame."""
        return UPSTREAM if self.first == 0 else ", ".join(self.patches)

    def __str__(self) -> str:
        """Say what is to blame, and how sure that is."""
        if self.first is None:
            return "not known, it did not show again"
        doubt = f"; but it shows with the first {_listed(self.exceptions)} alone, too" if self.exceptions else ""
        if self.first == 0:
            return f"{UPSTREAM}, {self.arm} shows it without any patch{doubt}"
        number = self.first - len(self.patches) + 1
        if len(self.patches) == 1:
            return f"{self.patches[0]}, number {number} of the {len(self.series)} patches of {self.arm}{doubt}"
        return f"one of the patches {number} to {self.first} of {self.arm}, pgduel blame finds which{doubt}"


def _listed(numbers: Sequence[int]) -> str:
    return " or ".join(map(str, numbers))


PROBES = 3  # prefixes at most that are tried though bisection left them out: does it stay once it is there?


def try_prefixes(shows: Callable[[int], bool], lengths: Sequence[int], sound: int | None = None) -> dict[int, bool]:
    """Return, for each length of a prefix that was asked about, whether it shows, ascending.

    `lengths` are those that may be asked about, ascending; `sound` is one that will hardly show it, if known. Where the
    longest does not show it, nothing else is asked.
    """
    tried = {lengths[-1]: shows(lengths[-1])}
    if tried[lengths[-1]]:
        low, high = -1, len(lengths) - 1
        middle = lengths.index(sound) if sound in lengths[:-1] else (low + high) // 2
        while high - low > 1:
            tried[lengths[middle]] = shows(lengths[middle])
            low, high = (low, middle) if tried[lengths[middle]] else (middle, high)
            middle = (low + high) // 2
        left = [length for length in lengths if length not in tried]
        if len(left) <= PROBES:
            tried |= {length: shows(length) for length in left}
    return dict(sorted(tried.items()))


def first_to_begin_it(
    suspect: Callable[[], dict[int, bool]], other: Callable[[], dict[int, bool]] | None
) -> tuple[int, dict[int, bool]]:
    """Return whose series it begins with, 0 for the suspect's or 1 for the other's, and what was tried of that.

    The other's is tried where the suspect shows it with each prefix, none included, and blamed where the other does not
    without its own. A suspect that hides it between is to blame itself: without its patches it may differ as well.
    """
    tried = suspect()
    if other is not None and tried.get(0) and all(tried.values()):
        others = other()
        if others.get(0) is False and any(others.values()):
            return 1, others
    return 0, tried


ALWAYS = 3  # tries of what always showed
MOST = 50  # tries of what hardly ever shows
RISK = 0.01  # that a prefix which shows it as often as the whole series is taken for one that does not


def tries_for(smallest: ReducedCase) -> int:
    """Return how often a prefix is tried before it is said not to show what the whole series shows."""
    if smallest.always or not smallest.shown:
        return ALWAYS
    return min(MOST, ceil(log(RISK) / log(1 - smallest.shown / smallest.runs)))


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A finding, on running arms whose series are to be shortened."""

    smallest: ReducedCase
    sound: Arm  # the one held against; the suspect itself where all arms show it
    suspect: Arm
    report: Report
    built_only: bool = False  # try no prefix that would have to be compiled

    def blame(self, facts: Mapping[str, Mapping[str, Any]]) -> Blame:
        """Try prefixes of the suspect's series, or of the other's where it is not that; `facts` has their names.

        Raises BuildError, ServerError.
        """
        alone = self.sound.name == self.suspect.name
        blamed, tried = first_to_begin_it(
            partial(self._tried, self.suspect, self._on_suspect),
            None if alone else partial(self._tried, self.sound, self._on_other),
        )
        arm = (self.suspect, self.sound)[blamed]
        return Blame(arm.name, tuple(facts[arm.name]["series"]), tuple(tried.items()))

    def _tried(self, arm: Arm, shows: Callable[[int], bool]) -> dict[int, bool]:
        lengths = [length for length in range(len(arm.trees)) if self._may_try(arm, length)]
        others = self.sound.trees[-1] if arm is self.suspect and arm is not self.sound else None
        return try_prefixes(shows, lengths, arm.trees.index(others) if others in arm.trees else None)

    def _may_try(self, arm: Arm, length: int) -> bool:
        return not self.built_only or find_build(arm.trees[length], arm.build.flavor) is not None

    def _on_suspect(self, length: int) -> bool:
        with self._shortened(self.suspect, length) as suspect:
            return self._shows([suspect] if self.sound.name == self.suspect.name else [self.sound, suspect])

    def _on_other(self, length: int) -> bool:
        with self._shortened(self.suspect, 0) as suspect, self._shortened(self.sound, length) as sound:
            return self._shows([sound, suspect])

    @contextmanager
    def _shortened(self, arm: Arm, length: int) -> Iterator[Arm]:
        """Yield the arm with so many of its patches, on a new server.

        The whole series gets one as well: what shows only on a server that has lived through a campaign would be
        blamed on the last patch, as the others have no such past.
        """
        self.report(f"trying {arm.name} with {length} of its {len(arm.trees) - 1} patches")
        build = ensure_build(arm.trees[length], arm.build.flavor, self.report, label=f"{arm.name}, {length} patches")
        with Cluster(build, arm.name) as cluster:
            yield replace(arm, build=build, cluster=cluster, trees=arm.trees[: length + 1])

    def _shows(self, arms: Sequence[Arm]) -> bool:
        with Executor(arms, "blame") as executor:
            check = FindingCheck(executor, arms, self.smallest.finding)
            return any(check.shown(self.smallest.case) for _ in range(tries_for(self.smallest)))


def suspicion(smallest: ReducedCase, arms: Sequence[Arm], report: Report, *, built_only: bool = False) -> Suspicion:
    """Return the suspicion that a finding is, among arms that have both of those it names."""
    named = {arm.name: arm for arm in arms}
    sound, suspect = (named[name] for name in smallest.finding.arms)
    return Suspicion(smallest, sound, suspect, report, built_only)
