"""Bandit: which of several arms to pull, by what each brought so far; all are tried again now and then."""

import random
from collections.abc import Iterable
from fractions import Fraction
from typing import Final

from fuzz.generators.choices import chance, pick

_EXPLORED: Final = 30  # percent of the pulls: any
_NEWEST: Final = Fraction(1, 4)  # weight of what an arm brought last, against all that it brought before


class Bandit:
    """Arms by name, each with the average of what it brought, the newest weighing most."""

    def __init__(self, names: Iterable[str]) -> None:
        self._rewards = dict.fromkeys(names, Fraction(1))  # hopeful: each is worth a try

    def pull(self, rng: random.Random) -> str:
        """Return the arm to try next."""
        best = max(self._rewards.values())
        names = list(self._rewards) if chance(rng, _EXPLORED) else [n for n, r in self._rewards.items() if r == best]
        return pick(rng, names)

    def reward(self, name: str, amount: int) -> None:
        """Take note of what an arm brought."""
        self._rewards[name] += (amount - self._rewards[name]) * _NEWEST
