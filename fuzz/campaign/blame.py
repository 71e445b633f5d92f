"""Blame: with which patch a finding begins, as far as prefixes of a series were tried."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads, and what programs want to know."""
        return {
            "arm": self.arm,
            "series": list(self.series),
            "tried": [list(each) for each in self.tried],
            "patches": list(self.patches),
            "says": str(self),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Blame":
        """Return the blame that `to_json` wrote."""
        return cls(data["arm"], tuple(data["series"]), tuple((length, shows) for length, shows in data["tried"]))


def _listed(numbers: Sequence[int]) -> str:
    return " or ".join(map(str, numbers))
