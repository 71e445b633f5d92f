"""What the mail on planning with many partitions says; its figures 1 to 4 are pictures, and are not repeated."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from fuzz.bench.bench import Mail, Point

VARIANTS = ("v5", "v6", "v7")


def planning_mail(ratios: Mapping[str, Mapping[Point, float]] = MappingProxyType({})) -> Mail:
    """Return the mail with a table of it, by variant. An arm of another name stands beside v7, which it prefers."""
    return Mail(
        "Reducing planning time when tables have many partitions",
        "CAJ2pMkYohJofeEvu7N_QmbGncjQ+4H4e1cL+Crii9z9x2=b3Sg@mail.gmail.com",
        ratios.get("v7", {}),
        ratios,
    )


def ratios(table: Mapping[Point, tuple[float, Sequence[float]]]) -> dict[str, dict[Point, float]]:
    """Return variant / master by variant, of a table that has master's figure and the variants' at each point."""
    return {
        variant: {point: figures[place] / master for point, (master, figures) in table.items()}
        for place, variant in enumerate(VARIANTS)
    }
