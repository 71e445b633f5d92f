"""Seats: which arms each oracle judges. Some oracles are for arms of a kind only."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fuzz.servers.arm import Arm
from oracles.oracle import Oracle


@dataclass(frozen=True, slots=True)
class Seat:
    """An oracle and the arms that it judges: two at least, the first of which the others are held against."""

    oracle: Oracle
    arms: tuple[str, ...]


def seats(oracles: Sequence[Oracle], arms: Sequence[Arm]) -> tuple[Seat, ...]:
    """Return the seats of all oracles that have two arms to judge."""
    given = (Seat(oracle, tuple(arm.name for arm in _judged(oracle, arms))) for oracle in oracles)
    return tuple(seat for seat in given if len(seat.arms) > 1)


def absences(oracles: Sequence[Oracle], arms: Sequence[Arm]) -> Iterator[str]:
    """Yield a line for each arm that an oracle does not judge: which, and why."""
    for oracle in oracles:
        judged = _judged(oracle, arms)
        for arm in arms:
            if arm not in judged:
                why = f"{arm.name} has another base" if arm.plan_neutral else f"{arm.name} is not plan-neutral"
                yield f"{oracle.name}: not compared, {why}"


def _judged(oracle: Oracle, arms: Sequence[Arm]) -> list[Arm]:
    """Return the arms whose differences, if any, the oracle may blame on one of them."""
    if not oracle.needs_plan_neutral:
        return list(arms)
    neutral = [arm for arm in arms if arm.plan_neutral]
    return [arm for arm in neutral if arm.trees[:1] == neutral[0].trees[:1]]
