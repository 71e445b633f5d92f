"""Novelty: the new edges of random and of mutated inputs. They decide the origin of the next inputs.

At first, random inputs reach new edges sooner, because they have all that a generator can make. Later, they repeat what
was there, and mutations of inputs that reached rare edges may bring more. When that is depends on generators and
server, so each worker measures it.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

_DECAY: Final = 0.99  # so the last hundred inputs of a kind count, as both bring less in time
_LEAST: Final = 0.1  # the share of each kind, so that its evidence stays recent


class Origin(StrEnum):
    """Origins of a new input."""

    RANDOM = "random"
    MUTATED = "mutated"


@dataclass(slots=True)
class _Brought:
    """Inputs of one origin and their new edges, recent ones with more weight."""

    inputs: float = 0
    edges: float = 0

    @property
    def rate(self) -> float:
        """Return new edges for each input. One of each is added, so that both origins begin with the same rate."""
        return (self.edges + 1) / (self.inputs + 1)


@dataclass(slots=True)
class Novelty:
    """The new edges of inputs by origin."""

    _brought: dict[Origin, _Brought] = field(default_factory=lambda: {origin: _Brought() for origin in Origin})

    def note(self, origin: Origin, edges: int) -> None:
        """Count an executed input and the number of its new edges."""
        brought = self._brought[origin]
        brought.inputs = brought.inputs * _DECAY + 1
        brought.edges = brought.edges * _DECAY + edges

    @property
    def random_share(self) -> float:
        """Return the share of random inputs that is due: the origin with the higher rate has almost all."""
        random, mutated = (self._brought[origin].rate for origin in (Origin.RANDOM, Origin.MUTATED))
        return 1 - _LEAST if random >= mutated else _LEAST
