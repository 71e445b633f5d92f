"""Blame: the first patch of a series with which a finding occurs, by bisection over builds of prefixes of the series.

Bisection runs few prefixes, because each may need a build. A prefix that does not compile, or whose server does not
start, is left out: a patch may need the one after it.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, log
from typing import Any, Final

from fuzz.errors import CompileError, ServerError
from fuzz.execution.executor import Executor
from fuzz.servers import Report
from fuzz.servers.arm import Arm
from fuzz.servers.arm_settings import configuration, known_settings, texts
from fuzz.servers.build import ensure_build, find_build
from fuzz.servers.cluster import Cluster
from fuzz.triage.interestingness import FindingCheck, ReducedCase

UPSTREAM = "upstream"  # instead of a patch's name
SETTINGS = "settings"  # instead of a patch's name
_COMMIT: Final = re.compile(r"[0-9a-f]{12}-")  # begins the name of a patch of a git range


@dataclass(frozen=True, slots=True)
class Blame:
    """The tried prefixes of an arm's series, and whether they showed the finding.

    The arm is the suspect, or the reference if the suspect shows the finding without any patch. If the two differ in
    settings, `settings` has those of both as text. No prefix is tried if nothing else differs.
    """

    arm: str
    series: tuple[str, ...]  # names of its patches
    tried: tuple[tuple[int, bool], ...]  # (number of patches, whether they showed the finding), ascending
    settings: str = ""
    correction: str = ""  # name of the known fault's correction that hides the finding
    uncompiled: tuple[int, ...] = ()  # lengths of the prefixes that do not compile, ascending

    @property
    def first(self) -> int | None:
        """Return the shortest length from which on all tried prefixes showed it; None if the longest did not."""
        hiding = max((length for length, shows in self.tried if not shows), default=-1)
        return next((length for length, _ in self.tried if length > hiding), None)

    @property
    def patches(self) -> tuple[str, ...]:
        """Return the patches one of which is to blame, or () if none is. More tried prefixes leave fewer patches."""
        if self.first is None:
            return ()
        return self.series[max((length for length, _ in self.tried if length < self.first), default=0) : self.first]

    @property
    def may_be_upstream(self) -> bool:
        """Return whether the base itself may show it: it was not tried, and each tried prefix showed it."""
        return bool(self.first) and all(shows for _, shows in self.tried)

    @property
    def exceptions(self) -> tuple[int, ...]:
        """Return the lengths of shorter prefixes that showed it, although a longer one did not.

        If there are any, more than one patch is involved.
        """
        first = self.first
        return () if first is None else tuple(length for length, shows in self.tried if length < first and shows)

    @property
    def key(self) -> str:
        """Return a key that is equal for findings with the same cause to blame, also after a rebase."""
        if self.correction:
            return self.correction
        if self.settings and not self.patches:
            return SETTINGS
        if self.first == 0:
            return UPSTREAM
        return ", ".join(patch[match.end() :] if (match := _COMMIT.match(patch)) else patch for patch in self.patches)

    def __str__(self) -> str:
        """Return the patch to blame as text, with doubts."""
        if self.correction:
            return f"a known fault of all arms, which {self.correction} corrects"
        if self.settings and not self.tried:
            return f"no patch, both arms are one build and differ only in settings ({self.settings})"
        if self.first is None:
            return "unknown, the finding did not occur again"
        doubt = f"; but it also occurs with only the first {_listed(self.exceptions)}" if self.exceptions else ""
        if self.first == 0:
            cause = f"{UPSTREAM} or the settings ({self.settings})" if self.settings else UPSTREAM
            return f"{cause}, {self.arm} shows it without any patch{doubt}"
        number = self.first - len(self.patches) + 1
        if self.may_be_upstream:
            cause = self.patches[0] if self.first == 1 else f"one of the first {self.first} patches"
            return f"{UPSTREAM} or {cause} of {self.arm}, pgduel blame narrows it down"
        if len(self.patches) == 1:
            return f"{self.patches[0]}, number {number} of the {len(self.series)} patches of {self.arm}{doubt}"
        between = range(number, self.first)
        alone = f"which does not compile with only the first {_listed(between)}"
        reason = alone if set(between) <= set(self.uncompiled) else "pgduel blame narrows it down"
        return f"one of the patches {number} to {self.first} of {self.arm}, {reason}{doubt}"


def _listed(numbers: Sequence[int]) -> str:
    return " or ".join(map(str, numbers))


PROBES = 3  # limit of prefixes that bisection omits and that are tried nevertheless, to find exceptions


Tried = Mapping[int, bool | None]  # length of a prefix → whether it shows the finding; None: it does not compile


def try_prefixes(shows: Callable[[int], bool | None], lengths: Sequence[int], likely_good: int | None = None) -> Tried:
    """Return the lengths of the tried prefixes, ascending, with whether they show the finding.

    `lengths` may be tried, ascending; `likely_good` is one that most likely does not show it, if known. If the longest
    does not show it, no other is tried.
    """
    *possible, longest = lengths
    tried: dict[int, bool | None] = {longest: shows(longest)}
    if tried[longest]:
        left = possible  # those whose result does not follow from others
        while left:
            length = likely_good if likely_good in left else left[(len(left) - 1) // 2]
            shown = tried[length] = shows(length)
            left = [each for each in left if each != length and (shown is None or (each < length) == shown)]
        untried = [length for length in possible if length not in tried]
        if len(untried) <= PROBES:
            tried |= {length: shows(length) for length in untried}
    return dict(sorted(tried.items()))


def series_to_blame(suspect: Callable[[], Tried], other: Callable[[], Tried] | None) -> tuple[int, Tried]:
    """Return the number of the series to blame, 0 for the suspect's or 1 for the other arm's, and its tried prefixes.

    The other arm's series is tried if the suspect shows the finding with each prefix, including the empty one. It is
    blamed if the other arm without its patches does not show the finding. If some prefix of the suspect's series does
    not show it, that series is blamed, because without its patches the suspect may differ as well.
    """
    tried = suspect()
    if other is not None and tried.get(0) and False not in tried.values():
        others = other()
        if others.get(0) is False and any(others.values()):
            return 1, others
    return 0, tried


ALWAYS = 5  # tries of a finding that always occurred, in at least three runs
RISK = 0.01  # probability that a prefix that shows it as often as the whole series is taken for one that does not


def tries_for(smallest: ReducedCase) -> int:
    """Return the number of tries without the finding after which a prefix is taken not to show it."""
    if smallest.always or not smallest.shown:
        return ALWAYS
    return ceil(log(RISK) / log(1 - smallest.shown / smallest.runs))


@dataclass(frozen=True, slots=True)
class BlameSearch:
    """A search for the patch to blame: a finding, and the running arms whose series are shortened."""

    smallest: ReducedCase
    reference: Arm  # the suspect itself if all arms show the finding
    suspect: Arm
    report: Report
    built_only: bool = False  # try only prefixes that are already built

    def blame(self, facts: Mapping[str, Mapping[str, Any]]) -> Blame:
        """Return the patch to blame in the suspect's or the reference's series; `facts` has the names of patches.

        Raises BuildError, ServerError.
        """
        differing = self._differing_settings()
        if differing and self.reference.build.key == self.suspect.build.key:
            return Blame(self.suspect.name, tuple(facts[self.suspect.name]["series"]), (), differing)
        alone = self.reference.name == self.suspect.name
        blamed, tried = series_to_blame(
            partial(self._tried, self.suspect, self.shows_with),
            None if alone else partial(self._tried, self.reference, self._on_other),
        )
        arm = (self.suspect, self.reference)[blamed]
        decided = tuple((length, shows) for length, shows in tried.items() if shows is not None)
        uncompiled = tuple(length for length, shows in tried.items() if shows is None)
        return Blame(arm.name, tuple(facts[arm.name]["series"]), decided, differing, uncompiled=uncompiled)

    def _differing_settings(self) -> str:
        """Return the settings of both arms as text; "" if they are equal."""
        if self.reference.settings == self.suspect.settings:
            return ""
        both = (self.reference, self.suspect)
        return "; ".join(f"{arm.name}: {', '.join(texts(arm.settings)) or 'none'}" for arm in both)

    def _tried(self, arm: Arm, shows: Callable[[int], bool]) -> Tried:
        lengths = [length for length in range(len(arm.trees)) if self._may_try(arm, length)]
        others = self.reference.trees[-1] if arm is self.suspect and arm is not self.reference else None
        likely_good = arm.trees.index(others) if others in arm.trees else None
        return try_prefixes(partial(self._unless_uncompiled, shows), lengths, likely_good)

    def _unless_uncompiled(self, shows: Callable[[int], bool], length: int) -> bool | None:
        try:
            return shows(length)
        except CompileError as error:
            self.report(f"left out the first {length} patches: {error}")
            return None

    def _may_try(self, arm: Arm, length: int) -> bool:
        return not self.built_only or find_build(arm.trees[length], arm.build.flavor) is not None

    def shows_with(self, length: int) -> bool:
        """Return whether the suspect shows it with its first `length` patches. Raises BuildError, ServerError."""
        with self._shortened(self.suspect, length) as suspect:
            return self._shows([suspect] if self.reference.name == self.suspect.name else [self.reference, suspect])

    def _on_other(self, length: int) -> bool:
        with self._shortened(self.suspect, 0) as suspect, self._shortened(self.reference, length) as reference:
            return self._shows([reference, suspect])

    @contextmanager
    def _shortened(self, arm: Arm, length: int) -> Iterator[Arm]:
        """Yield the arm with `length` of its patches, on a new server.

        The whole series gets a new server, too. Otherwise, the last patch would be blamed for a finding that occurs
        only on a server that has run a campaign before.
        """
        self.report(f"trying {arm.name} with {length} of its {len(arm.trees) - 1} patches")
        build = ensure_build(arm.trees[length], arm.build.flavor, self.report, label=f"{arm.name}, {length} patches")
        settings = known_settings(build, arm.settings)
        with ExitStack() as stack:
            try:
                cluster = stack.enter_context(Cluster(build, arm.name, settings=configuration(settings)))
            except ServerError as error:
                if length in (0, len(arm.trees) - 1):  # it has run, so it may start later
                    raise
                raise CompileError(f"its server does not start: {error}") from error
            yield replace(arm, build=build, cluster=cluster, trees=arm.trees[: length + 1], settings=settings)

    def _shows(self, arms: Sequence[Arm]) -> bool:
        with Executor(arms, "blame") as executor:
            check = FindingCheck(executor, arms, self.smallest.finding)
            return any(check.shown(self.smallest.case) for _ in range(tries_for(self.smallest)))


def blame_search(
    smallest: ReducedCase, arms: Sequence[Arm], report: Report, *, built_only: bool = False
) -> BlameSearch:
    """Return the search for the patch to blame; `arms` include the two that the finding names."""
    named = {arm.name: arm for arm in arms}
    reference, suspect = (named[name] for name in smallest.finding.arms)
    return BlameSearch(smallest, reference, suspect, report, built_only)
