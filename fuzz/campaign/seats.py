"""Seats: which arms each oracle judges. Some oracles are for arms of a kind only."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fuzz.servers.arm import Arm
from oracles.oracle import Oracle


@dataclass(frozen=True, slots=True)
class Seat:
    """An oracle and the arms that it judges: the first is the one the others are held against, or is judged alone."""

    oracle: Oracle
    arms: tuple[str, ...]


def seats(oracles: Sequence[Oracle], arms: Sequence[Arm]) -> tuple[Seat, ...]:
    """Return the seats of all oracles that have arms to judge: two, or a single one if they can do with that."""
    given = (Seat(oracle, tuple(arm.name for arm in _judged(oracle, arms))) for oracle in oracles)
    return tuple(seat for seat in given if len(seat.arms) > seat.oracle.needs_another_arm)


def absences(oracles: Sequence[Oracle], arms: Sequence[Arm]) -> Iterator[str]:
    """Yield a line for each arm that an oracle does not judge: which, and why."""
    if len(arms) == 1:
        idle = ", ".join(oracle.name for oracle in oracles if oracle.needs_another_arm)
        yield f"{idle}: not asked, there is no other arm to hold {arms[0].name} against"
        return
    for oracle in oracles:
        judged = _judged(oracle, arms)
        for arm in arms:
            if arm not in judged:
                yield f"{oracle.name}: not compared, plans of {arm.name} may be others than those of {arms[0].name}"


def _judged(oracle: Oracle, arms: Sequence[Arm]) -> list[Arm]:
    """Return the arms whose differences, if any, the oracle may blame on one of them."""
    if not oracle.needs_equal_plans:
        return list(arms)
    return [arm for arm in arms if arm.planner == arms[0].planner]
