"""Cursors over joins: left in the middle of a batch, read to and fro, kept beyond their transaction, or cut off."""

import random

from fuzz.generators.choices import Weighted, between, chance, shuffled
from fuzz.generators.relational.queries import Select
from oracles.case import Step

_NAME = "walk"


def cursor(rng: random.Random, select: Select, tags: tuple[str, ...]) -> tuple[Step, ...]:
    """Return the steps of a transaction with a cursor over the query.

    Rows are fetched where they come in a total order. Otherwise a move tells how many there are, and all are fetched.
    """
    if select.sortable and chance(rng, 40):
        order = ", ".join(map(str, shuffled(rng, range(1, select.width + 1))))
        moves = [Step(f"FETCH {_FETCHES.pick(rng).format(between(rng, 1, 9))} FROM {_NAME}", ordered=True)]
        while len(moves) < 6 and rng.randrange(100):
            moves.append(Step(f"FETCH {_FETCHES.pick(rng).format(between(rng, 1, 9))} FROM {_NAME}", ordered=True))
        return _walked(rng, f"{select.sql} ORDER BY {order}", "SCROLL ", moves, tags)
    if chance(rng, 50):
        moves = [Step(f"MOVE {between(rng, 1, 200)} IN {_NAME}") for _ in range(between(rng, 1, 2))]
        return _walked(rng, select.sql, "NO SCROLL ", moves, tags)
    moves = [
        Step(f"MOVE {_MOVES.pick(rng).format(between(rng, 1, 200))} IN {_NAME}") for _ in range(between(rng, 1, 4))
    ]
    back = [Step(f"MOVE ABSOLUTE 0 IN {_NAME}"), Step(f"FETCH ALL FROM {_NAME}")]
    return _walked(rng, f"SELECT count(*) FROM ({select.sql}) AS q GROUP BY q", "SCROLL ", moves + back, tags)


_FETCHES = Weighted(
    (25, "FORWARD {}"), (25, "BACKWARD {}"), (15, "ABSOLUTE {}"), (10, "RELATIVE -{}"), (10, "LAST"), (10, "PRIOR"),
    (5, "ABSOLUTE -{}"),
)  # fmt: skip
_MOVES = Weighted((30, "FORWARD {}"), (30, "BACKWARD {}"), (15, "ALL"), (10, "ABSOLUTE {}"), (15, "RELATIVE -{}"))


def _walked(rng: random.Random, sql: str, how: str, moves: list[Step], tags: tuple[str, ...]) -> tuple[Step, ...]:
    declared = f"DECLARE {_NAME} {how}CURSOR{{}} FOR {sql}"
    begin, close = Step("BEGIN", tags=tags), Step(f"CLOSE {_NAME}")
    end = _ENDS.pick(rng)
    if end == "hold":  # its rows are stored when the transaction commits
        first, rest = moves[:1], moves[1:]
        return begin, Step(declared.format(" WITH HOLD")), *first, Step("COMMIT"), *rest, close
    steps = (Step(declared.format("")), *moves)
    if end == "savepoint":
        return begin, Step("SAVEPOINT s"), *steps, Step("ROLLBACK TO s"), Step("COMMIT")
    return begin, *steps, *((close,) if end == "close" else ()), Step("ROLLBACK" if end == "rollback" else "COMMIT")


_ENDS = Weighted((40, "close"), (15, "commit"), (15, "rollback"), (15, "savepoint"), (15, "hold"))
