"""Generator `outer_joins`: hash joins of all kinds in several batches, with and without a filter.

An action on a join is a query, a cursor, or an error in the middle of the join. A cursor stops within a batch, moves in
both directions, outlives its transaction (WITH HOLD), or is closed by a rollback to a savepoint.

Errors occur in joining, projection or hashing. The client receives them, or a block catches them. Whether an error
occurs depends on the rows alone, because all rows are read before the first is sent. The row that raises the error does
not matter, because the message is the same for all.
"""

import random
from collections.abc import Callable
from typing import ClassVar

from fuzz.generators.choices import Stream, Weighted, another, begin, between, chance, pick, shuffled
from fuzz.generators.generator import Generator, Scale
from fuzz.generators.outer_joins.levels import draw_kind, level
from fuzz.generators.outer_joins.scene import Scene, draw_scene
from fuzz.generators.outer_joins.shapes import SHAPES, draw_rescan, keyed
from fuzz.generators.sql.queries import Level, Select, ended, query
from fuzz.generators.sql.scope import Scope
from oracles.model.case import Case, Kind, Step

_NAME = "walk"


def cursor(rng: random.Random, select: Select, tags: tuple[str, ...]) -> tuple[Step, ...]:
    """Return a transaction with a cursor over the query.

    With a total order, it FETCHes rows. Otherwise it MOVEs, which returns numbers of rows, and may finally FETCH ALL.
    """
    if select.sortable and chance(rng, 40):
        order = ", ".join(map(str, shuffled(rng, range(1, len(select.columns) + 1))))
        moves = [Step(f"FETCH {_FETCHES.pick(rng).format(between(rng, 1, 9))} FROM {_NAME}", ordered=True)]
        while len(moves) < 6 and rng.randrange(100):
            moves.append(Step(f"FETCH {_FETCHES.pick(rng).format(between(rng, 1, 9))} FROM {_NAME}", ordered=True))
        return _cursor_steps(rng, f"{select.sql} ORDER BY {order}", "SCROLL ", moves, tags)
    if chance(rng, 50):
        moves = [Step(f"MOVE {between(rng, 1, 200)} IN {_NAME}") for _ in range(between(rng, 1, 2))]
        return _cursor_steps(rng, select.sql, "NO SCROLL ", moves, tags)
    moves = [
        Step(f"MOVE {_MOVES.pick(rng).format(between(rng, 1, 200))} IN {_NAME}") for _ in range(between(rng, 1, 4))
    ]
    back = [Step(f"MOVE ABSOLUTE 0 IN {_NAME}"), Step(f"FETCH ALL FROM {_NAME}")]
    return _cursor_steps(rng, f"SELECT count(*) FROM ({select.sql}) AS q GROUP BY q", "SCROLL ", moves + back, tags)


_FETCHES = Weighted(
    (25, "FORWARD {}"), (25, "BACKWARD {}"), (15, "ABSOLUTE {}"), (10, "RELATIVE -{}"), (10, "LAST"), (10, "PRIOR"),
    (5, "ABSOLUTE -{}"),
)  # fmt: skip
_MOVES = Weighted((30, "FORWARD {}"), (30, "BACKWARD {}"), (15, "ALL"), (10, "ABSOLUTE {}"), (15, "RELATIVE -{}"))


def _cursor_steps(rng: random.Random, sql: str, how: str, moves: list[Step], tags: tuple[str, ...]) -> tuple[Step, ...]:
    declared = f"DECLARE {_NAME} {how}CURSOR{{}} FOR {sql}"
    begin, close = Step("BEGIN", tags=tags), Step(f"CLOSE {_NAME}")
    end = _ENDS.pick(rng)
    if end == "hold":  # the commit stores the remaining rows
        first, rest = moves[:1], moves[1:]
        return begin, Step(declared.format(" WITH HOLD")), *first, Step("COMMIT"), *rest, close
    steps = (Step(declared.format("")), *moves)
    if end == "savepoint":
        return begin, Step("SAVEPOINT s"), *steps, Step("ROLLBACK TO s"), Step("COMMIT")
    return begin, *steps, *((close,) if end == "close" else ()), Step("ROLLBACK" if end == "rollback" else "COMMIT")


_ENDS = Weighted((40, "close"), (15, "commit"), (15, "rollback"), (15, "savepoint"), (15, "hold"))


_TIMEOUT = "150ms"
_SLEEP = "pg_sleep(2)"  # much longer than the timeout, which interrupts it


def failure(rng: random.Random, scene: Scene, kind: str, most: int, tags: tuple[str, ...]) -> tuple[Step, ...]:
    """Return the steps of a join that fails on some rows. It succeeds if there are none of them."""
    inner = level(rng, scene, Scope(()), kind, most)
    return _FAILURES.pick(rng)(rng, inner, tags)


def _numbers(inner: Level) -> list[str]:
    columns = [column for relation in inner.joined.relations for column in relation.columns]
    return [column.sql for column in columns if column.name in ("i2", "i3")]


def _dividing(rng: random.Random, inner: Level) -> str:
    """Return a query, without its first word SELECT, that divides by zero for some of the rows."""
    numbers = _numbers(inner)
    divisor = pick(rng, (f"{pick(rng, numbers)} - {between(rng, 0, 25)}", f"{pick(rng, numbers)} - {numbers[-1]} - 3"))
    aggregate = pick(
        rng, ("count(*), sum(100 / ({}))", "count(*), max(100 % ({}))", "count(*) FILTER (WHERE 7 / ({}) > 1)")
    )
    wide = [column.sql for relation in inner.joined.relations for column in relation.columns if column.wide]
    lengths = "".join(f", sum(length({column}))" for column in wide)
    return f"{aggregate.format(divisor)}{lengths}{inner.sql}"


def _left_to_client(rng: random.Random, inner: Level, tags: tuple[str, ...]) -> tuple[Step, ...]:
    return (Step(f"SELECT {_dividing(rng, inner)}", Kind.QUERY, may_fail=True, tags=(*tags, "error.uncaught")),)


def _caught(rng: random.Random, inner: Level, tags: tuple[str, ...]) -> tuple[Step, ...]:
    return (_block(_dividing(rng, inner), "division_by_zero", (*tags, "error.caught")),)


def _cancelled(rng: random.Random, inner: Level, tags: tuple[str, ...]) -> tuple[Step, ...]:
    """Return a join that cancels its own backend on some of the rows."""
    cancel = (
        f"CASE WHEN {pick(rng, _numbers(inner))} = {between(rng, 0, 6)} THEN pg_cancel_backend(pg_backend_pid()) END"
    )
    return (_block(f"count({cancel}){inner.sql}", "query_canceled", (*tags, "error.cancelled")),)


def _timed_out(rng: random.Random, inner: Level, tags: tuple[str, ...]) -> tuple[Step, ...]:
    """Return a join that sleeps on some of the rows until statement_timeout.

    Without such rows, a busy machine may still exceed the timeout. So the step does not report how the join ended.
    """
    sleep = f"CASE WHEN {pick(rng, _numbers(inner))} = {between(rng, 0, 4)} THEN {_SLEEP}::text END"
    return (
        Step(f"SET statement_timeout = '{_TIMEOUT}'"),
        Step(
            f"DO $run$BEGIN PERFORM count({sleep}){inner.sql}; EXCEPTION WHEN query_canceled THEN NULL; END$run$",
            tags=(*tags, "error.timeout"),
        ),
        Step("RESET statement_timeout"),
    )


def _block(query: str, condition: str, tags: tuple[str, ...]) -> Step:
    """Return a step that runs a query, given without its first word SELECT, and reports its outcome in a notice."""
    handler = f"EXCEPTION WHEN {condition} THEN RAISE NOTICE 'ended by %', SQLSTATE"
    return Step(f"DO $run$BEGIN PERFORM {query}; RAISE NOTICE 'ended'; {handler}; END$run$", tags=tags)


_FAILURES: Weighted[Callable[[random.Random, Level, tuple[str, ...]], tuple[Step, ...]]] = Weighted(
    (60, _left_to_client), (25, _caught), (12, _cancelled), (8, _timed_out)
)


# The arguments are randomness, scene and an upper bound of relations.
Action = Callable[[random.Random, Scene, int], tuple[Step, ...]]


def joined(rng: random.Random, scene: Scene, most: int) -> tuple[Step, ...]:
    """Return a query over joins, with a random kind of rescan."""
    kind, rescan = draw_kind(rng, scene.axes), draw_rescan(rng, scene)
    select = SHAPES[rescan](rng, scene, kind, most)
    if select is None:
        rescan, select = "none", SHAPES["none"](rng, scene, kind, most)
        assert select is not None
    sql, ordered = ended(rng, select)
    return (Step(sql, Kind.QUERY, ordered=ordered, tags=_tags(scene, kind, f"rescan.{rescan}")),)


def _cursor_action(rng: random.Random, scene: Scene, most: int) -> tuple[Step, ...]:
    kind = draw_kind(rng, scene.axes)
    select = keyed(rng, level(rng, scene, Scope(()), kind, most))
    return cursor(rng, select, _tags(scene, kind, "cursor"))


def _failure_action(rng: random.Random, scene: Scene, most: int) -> tuple[Step, ...]:
    kind = draw_kind(rng, scene.axes)
    return failure(rng, scene, kind, most, _tags(scene, kind))


def _random_query(rng: random.Random, scene: Scene, most: int) -> tuple[Step, ...]:
    """Return a random query over the scene; if equal keys may be distinguishable, a join query."""
    if not scene.axes.key.mixes:
        return joined(rng, scene, most)
    return (query(rng, scene.sources, most),)


def _tags(scene: Scene, kind: str, *others: str) -> tuple[str, ...]:
    return (*scene.axes.tags, f"join.{kind}", *others)


ACTIONS: Weighted[Action] = Weighted((74, joined), (8, _cursor_action), (9, _failure_action), (9, _random_query))


class OuterJoins(Generator):
    """Joins of a large, a medium and a small table over one kind of key; most exceed the memory of a hash table."""

    name: ClassVar[str] = "outer_joins"
    cpu_seconds: ClassVar[float] = 1.1
    modes: ClassVar[tuple[str, ...]] = (
        "hash_only",
        "hash_only+partitionwise",
        "no_loops",
        "no_loops+partitionwise",
        "hash_only+no_pruning+partitionwise",
        "hash_only+indexes",
        "hash_only+parallel+one_worker",
        "hash_only+parallel+two_workers+partitionwise",
        "hash_only+parallel+four_workers",
        "no_loops+parallel+two_workers+partitionwise",
        "parallel+two_workers+partitionwise",
        "hash_only+features_forced",
        "hash_only+parallel+one_worker+features_forced",
        "hash_only+parallel+two_workers+features_forced",
        "hash_only+parallel+four_workers+features_forced",
        "extended",
        "prepared_generic",
        "prepared_custom",
        "cursor",
        "closed_early",
    )
    scene_weight: ClassVar[int] = 1
    query_weight: ClassVar[int] = 4

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case: a scene of three tables, and perhaps a function, then actions on joins of them."""
        scene = draw_scene(rng, scale)
        most = max(2, scale.relations // 2)
        begin(rng, Stream.ACTION)
        actions = [joined(rng, scene, most)]
        while another(rng, len(actions), scale.actions(7)):
            actions.append(ACTIONS.pick(rng)(rng, scene, most))
        return Case(self.name, scene.steps, tuple(step for steps in actions for step in steps))
