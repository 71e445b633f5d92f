"""Discoveries of each workload in the earlier runs of a continuous campaign, for its CPU time.

They distribute a part of the next run's time. The rest is distributed as without them, so that no workload starves. A
first run has none. It is better off so: in a simulation with the first finders of 83 injected bugs, and shapes of an
hour, 23 bugs are found earlier with discoveries and 60 later, by a median factor of 1.18. There are three kinds of
discoveries, with equal weight:

- plan shapes that only one statement of a run had. Divided by the explained statements, their number is the probability
  that the next statement has a new shape (Good and Turing). The idea is that of Böhme, "STADS: Software Testing as
  Species Discovery", TOSEM 2018. Those that came first in a run would depend on the order of the workloads instead.
- edges that only one case of a run reached, if the builds count edges.
- new bugs. A doubt is one if later tries of its case showed a finding.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final, Self

from fuzz.campaign.counters import Counters
from fuzz.campaign.direction.direction import Direction
from fuzz.sources.workloads import workload_named

LEARNED: Final = 1 / 3  # of the CPU time


@dataclass(frozen=True, slots=True)
class Discoveries:
    """Numbers of cases and of discoveries by workload."""

    cases: Counter[str] = field(default_factory=Counter)
    shapes: Counter[str] = field(default_factory=Counter)
    edges: Counter[str] = field(default_factory=Counter)
    bugs: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, counters: Counters, edges: Counter[str], bugs: Counter[str]) -> Self:
        """Return the discoveries of one run, from its edges of one case, and its new bugs."""
        once = Counter({name: plans.once for name, plans in counters.all_plans().items()})
        return cls(counters.cases, once, edges, bugs)

    def plus(self, other: Self) -> Self:
        """Return the sums of both."""
        return type(self)(
            self.cases + other.cases, self.shapes + other.shapes, self.edges + other.edges, self.bugs + other.bugs
        )

    def to_json(self) -> dict[str, dict[str, int]]:
        """Return the numbers by workload, for `--json`."""
        numbers = {"cases": self.cases, "plan_shapes": self.shapes, "edges": self.edges, "bugs": self.bugs}
        return {name: {what: of[name] for what, of in numbers.items()} for name in sorted(self.cases)}

    def shares(self, seconds: Mapping[str, float]) -> dict[str, float]:
        """Return the share of each workload in all rates, from the CPU seconds of a case; empty if there are none."""
        spent = {name: self.cases[name] * seconds[name] for name in seconds}
        if not any(spent.values()):  # the first run was killed before it stored any count
            return {}
        kinds = [kind for kind in (self.shapes, self.edges, self.bugs) if any(kind[name] for name in seconds)]
        rates = [_rates({name: kind[name] for name in seconds}, spent) for kind in kinds]
        return {name: fmean(of[name] / sum(of.values()) for of in rates) for name in seconds} if rates else {}


def _rates(found: Mapping[str, int], spent: Mapping[str, float]) -> dict[str, float]:
    """Return what each workload finds in a CPU second, as if it had had the mean time more, with the mean rate.

    So a workload that had little time has about the mean rate, and no rate is 0.
    """
    total = sum(spent.values())
    rate, more = sum(found.values()) / total, total / len(spent)
    return {name: (found[name] + rate * more) / (spent[name] + more) for name in spent}


def weighed(direction: Direction, found: Discoveries) -> Direction:
    """Return a direction that gives the share LEARNED of the CPU time by discoveries."""
    learned = found.shares({name: workload_named(name).cpu_seconds for name in direction.cases})
    if len(learned) < 2:
        return direction
    shares = {name: (1 - LEARNED) * share + LEARNED * learned[name] for name, share in direction.shares.items()}
    return Direction.of_shares(shares, (*direction.reasons, "a third by the discoveries of earlier runs"))
