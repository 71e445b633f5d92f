"""Reach of a feature: how many statements took each of its branches, by type of join."""

from collections.abc import Mapping
from dataclasses import dataclass

from oracles.model.feature import Feature, snake


@dataclass(frozen=True, slots=True)
class FeatureReach:
    """Numbers of statements that took the branches of a feature: rows are types of join, or one row."""

    feature: Feature
    statements: int  # whose plans show the feature
    branches: tuple[str, ...]  # the columns
    rows: tuple[tuple[str, tuple[int | None, ...]], ...]  # None: impossible
    counters: tuple[tuple[str, int], ...]

    @property
    def unreached(self) -> int:
        """Return the number of expected branches and counters that no statement reached."""
        cells = [count for _, counts in self.rows for count in counts]
        return cells.count(0) + [count for _, count in self.counters].count(0)

    @property
    def most(self) -> int:
        """Return the highest number."""
        return max((count for _, counts in self.rows for count in counts if count is not None), default=0)


def feature_reach(counts: Mapping[str, int], feature: Feature) -> FeatureReach:
    """Return a feature's reach according to a campaign's counters."""
    branches = tuple(branch.name for branch in feature.branches if branch.expected)
    rows = []
    for join in feature.joins or ("",):
        prefix = f"{feature.name}.{snake(join)}" if join else feature.name
        names = [f"{prefix}.{branch}" for branch in branches]
        rows.append((snake(join), tuple(counts.get(n, 0) if n in feature.expected else None for n in names)))
    counters = tuple((name, counts.get(name, 0)) for name in feature.counters)
    return FeatureReach(feature, counts.get(feature.name, 0), branches, tuple(rows) if branches else (), counters)
