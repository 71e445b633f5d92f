"""Corrections: patches of known faults. A finding that all arms show, and that a correction hides, is its fault.

Different oracles find one fault in different queries, so that no origin and no statement identifies it. Its correction
does. The corrections are compiled only if there is such a finding: first all of them, then the prefixes of a bisection.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

from fuzz.errors import BuildError, SourceError, TransientError
from fuzz.servers import Report
from fuzz.servers.arm import Arm
from fuzz.servers.series import Patch, Series, apply_series
from fuzz.triage.blame import Blame, BlameSearch
from fuzz.triage.interestingness import ReducedCase


def with_correction(
    blame: Blame,
    cases: Sequence[ReducedCase],
    arms: Sequence[Arm],
    corrections: Sequence[Patch],
    report: Report = lambda _: None,
) -> Blame:
    """Return the blame with the correction that hides a finding of all arms; unchanged if none does.

    `cases` show the finding, the smallest one first. All corrections together must hide it in each of them, because the
    whole case may have another fault. Raises ServerError.
    """
    smallest = cases[0]
    if not smallest.finding.shown_by_all or not smallest.shown:
        return blame
    applied, corrected = _corrected(smallest, arms, corrections)
    search = BlameSearch(smallest, corrected, corrected, report)
    try:
        if not all(_hides(each, corrected, report) for each in cases):
            return blame
        first = bisect_left(range(1, len(applied)), 1, key=lambda length: int(not search.shows_with(length)))
    except BuildError:  # then it counts as a new finding
        return blame
    return replace(blame, correction=applied[first].name)


def is_corrected(shown: ReducedCase, arms: Sequence[Arm], corrections: Sequence[Patch]) -> bool:
    """Return whether all corrections together hide a finding of all arms in this case.

    It is False if that cannot be tried. Raises TransientError if it can be tried later.
    """
    try:
        return _hides(shown, _corrected(shown, arms, corrections)[1], lambda _: None)
    except TransientError:
        raise
    except Exception:  # an oracle may fail, too
        return False


def _corrected(shown: ReducedCase, arms: Sequence[Arm], corrections: Sequence[Patch]) -> tuple[list[Patch], Arm]:
    """Return the corrections that apply to the arm that shows a finding, and the arm with them."""
    arm = next(arm for arm in arms if arm.name == shown.finding.arms[0])
    applied, trees = _applied(arm.trees[-1], corrections)
    return applied, replace(arm, trees=trees)


def _hides(shown: ReducedCase, corrected: Arm, report: Report) -> bool:
    """Return whether an arm has corrections and does not show the finding with them, but without.

    A finding that does not occur each time would be any known fault. Raises BuildError, ServerError.
    """
    search, length = BlameSearch(shown, corrected, corrected, report), len(corrected.trees) - 1
    return length > 0 and search.shows_with(0) and not search.shows_with(length)


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
