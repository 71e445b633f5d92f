"""Health of a campaign: whether it compared enough statements for its result to be trusted."""

from collections import Counter
from collections.abc import Mapping

from fuzz.campaign.counters import HARNESS, Counters

VALID_SHARE = 0.97  # minimal share of the statements meant to succeed
# maximal shares of the verdicts of one oracle on one generator
LIMITS = {"inconclusive": 0.20, "unstable": 0.50}
RETRIED_SHARE = 0.10  # maximal share of canaries that were found only in a later try
ENOUGH = 20  # minimal number of verdicts, cases or canaries, for a share


def complaints(counters: Counters, canaries: Mapping[str, int]) -> tuple[str, ...]:
    """Return the defects of a campaign, one line each; empty if its result can be trusted.

    `canaries` has the form of `canaries.counts`.
    """
    if not counters.statements_judged:
        return ("no statement was compared",)
    return (*_retried(canaries), *_failed(counters), *_invalid(counters), *_undecided(counters))


def _retried(canaries: Mapping[str, int]) -> list[str]:
    planted, retried = canaries["planted"], canaries["retried"]
    if planted < ENOUGH or retried <= RETRIED_SHARE * planted:
        return []
    return [f"{retried} of {planted} planted bugs were found only when planted again, at most {RETRIED_SHARE:.0%} may"]


def _failed(counters: Counters) -> list[str]:
    counts = {generator: count for (oracle, generator, _), count in counters.verdicts.items() if oracle == HARNESS}
    return [f"pgduel itself failed on {count} cases of {name}" for name, count in sorted(counts.items())]


def _invalid(counters: Counters) -> list[str]:
    shares = {
        name: counters.valid[name] / steps for name, steps in counters.steps.items() if counters.cases[name] >= ENOUGH
    }
    return [
        f"{name}: only {share:.1%} of the statements succeeded, at least {VALID_SHARE:.0%} should"
        for name, share in sorted(shares.items())
        if share < VALID_SHARE
    ]


def _undecided(counters: Counters) -> list[str]:
    verdicts: Counter[tuple[str, str]] = Counter()
    undecided: Counter[tuple[str, str, str]] = Counter()
    for (oracle, generator, kind), count in counters.verdicts.items():
        if oracle != HARNESS and kind != "not_applicable":
            verdicts[oracle, generator] += count
            undecided[oracle, generator, kind] += count
    return [
        f"{oracle} on {generator}: {undecided[oracle, generator, kind] / count:.0%} of the verdicts were {kind}"
        for (oracle, generator), count in sorted(verdicts.items())
        for kind, limit in LIMITS.items()
        if count >= ENOUGH and undecided[oracle, generator, kind] / count > limit
    ]
