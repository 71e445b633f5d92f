"""Finding the patch that a finding begins with: its case is tried on builds of shorter and shorter series."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, log
from typing import Any

from fuzz.campaign.blame import Blame
from fuzz.campaign.known import Smallest
from fuzz.execution.stage import Stage
from fuzz.inquiry.asking import Asking
from fuzz.inquiry.bisection import first_to_begin_it, try_prefixes
from fuzz.servers import Report
from fuzz.servers.arm import Arm
from fuzz.servers.build import ensure_build, find_build
from fuzz.servers.cluster import Cluster

ALWAYS = 3  # tries of what always showed
MOST = 50  # tries of what hardly ever shows
RISK = 0.01  # that a prefix which shows it as often as the whole series is taken for one that does not


def tries_for(smallest: Smallest) -> int:
    """Return how often a prefix is tried before it is said not to show what the whole series shows."""
    if smallest.always or not smallest.shown:
        return ALWAYS
    return min(MOST, ceil(log(RISK) / log(1 - smallest.shown / smallest.runs)))


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A finding, on running arms whose series are to be shortened."""

    smallest: Smallest
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
        with Stage(arms, "blame") as stage:
            asking = Asking(stage, arms, self.smallest.finding)
            return any(asking.shown(self.smallest.case) for _ in range(tries_for(self.smallest)))


def suspicion(smallest: Smallest, arms: Sequence[Arm], report: Report, *, built_only: bool = False) -> Suspicion:
    """Return the suspicion that a finding is, among arms that have both of those it names."""
    named = {arm.name: arm for arm in arms}
    sound, suspect = (named[name] for name in smallest.finding.arms)
    return Suspicion(smallest, sound, suspect, report, built_only)
