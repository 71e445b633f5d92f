"""Bisection: the shortest prefix of a series that shows something, in few questions, as each may take a build."""

from collections.abc import Callable, Sequence

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
