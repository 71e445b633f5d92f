"""Growth: what a session holds more of after every repetition of a case, while another arm's session does not."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from oracles.observation import Resources

# Times the other arm's growth. What both do is the base's way (PL/pgSQL keeps each function ever called), and equal
# within two percent on equal builds; a patch may well make a structure a little larger.
FASTER: Final = 1.25


def outgrown(suspect: Sequence[Resources], other: Sequence[Resources]) -> Iterator[str]:
    """Yield each quantity in which the suspect outgrows the other arm."""
    others = _held(other)
    for quantity, values in _held(suspect).items():
        later = _settled(values)
        gained, others_gain = _gain(later), _gain(_settled(others.get(quantity, ())))
        steadily = len(later) > 1 and all(before < after for before, after in pairwise(later))
        if steadily and gained > FASTER * others_gain:
            yield quantity


def series(resources: Sequence[Resources], quantity: str) -> str:
    """Return the values of a quantity after each repetition, as text."""
    return ", ".join(map(str, _held(resources).get(quantity, ())))


def _held(resources: Sequence[Resources]) -> dict[str, tuple[int, ...]]:
    contexts = sorted({name for each in resources for name in each.contexts})
    return {
        "open files": tuple(each.open_files for each in resources),
        "shared memory mappings": tuple(each.shared_memory for each in resources),
    } | {f"memory context {name}": tuple(each.contexts.get(name, (0, 0))[1] for each in resources) for name in contexts}


def _settled(values: Sequence[int]) -> Sequence[int]:
    """Leave out the first third, in which caches fill."""
    return values[len(values) // 3 :]


def _gain(values: Sequence[int]) -> int:
    return max(0, values[-1] - values[0]) if values else 0
