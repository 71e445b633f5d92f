"""Corrections: patches of known faults. A finding that all arms show, and that a correction hides, is its fault.

Different oracles find one fault in different queries, so that no origin and no statement identifies it. Its correction
does. The corrections are compiled only if there is such a finding: first all of them, then the prefixes of a bisection.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

from fuzz.errors import BuildError, SourceError
from fuzz.servers import Report
from fuzz.servers.arm import Arm
from fuzz.servers.series import Patch, Series, apply_series
from fuzz.triage.blame import Blame, BlameSearch
from fuzz.triage.interestingness import ReducedCase


def with_correction(
    blame: Blame,
    smallest: ReducedCase,
    arms: Sequence[Arm],
    corrections: Sequence[Patch],
    report: Report = lambda _: None,
) -> Blame:
    """Return the blame with the correction that hides a finding of all arms; unchanged if none does.

    Raises ServerError.
    """
    if not smallest.finding.shown_by_all or not smallest.shown:
        return blame
    arm = next(arm for arm in arms if arm.name == smallest.finding.arms[0])
    applied, trees = _applied(arm.trees[-1], corrections)
    corrected = replace(arm, trees=trees)
    search = BlameSearch(smallest, corrected, corrected, report)
    try:
        if not applied or search.shows_with(len(applied)):
            return blame
        first = bisect_left(range(1, len(applied)), 1, key=lambda length: int(not search.shows_with(length)))
    except BuildError:  # then it counts as a new finding
        return blame
    return replace(blame, correction=applied[first].name)


def _applied(tree: str, corrections: Sequence[Patch]) -> tuple[list[Patch], tuple[str, ...]]:
    """Return the corrections that apply, and the tree after each prefix of them. Others are for other versions."""
    applied, trees = [], [tree]
    for patch in corrections:
        try:
            trees += apply_series(trees[-1], Series(patch.name, (patch,)))[1:]
        except SourceError:
            continue
        applied.append(patch)
    return applied, tuple(trees)
