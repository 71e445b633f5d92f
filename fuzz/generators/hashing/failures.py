"""Errors in the middle of a join: met where rows are joined, projected or hashed, and left to the client or caught.

Whether one is met depends on the rows alone, since all are read, and no row is sent before. Which row meets it first
does not matter: all would say the same.
"""

import random
from collections.abc import Callable

from fuzz.generators.choices import Weighted, between, pick
from fuzz.generators.hashing.levels import level
from fuzz.generators.hashing.scene import Scene
from fuzz.generators.relational.queries import Level
from fuzz.generators.relational.scope import Scope
from oracles.case import Kind, Step

_TIMEOUT = "150ms"
_SLEEP = "pg_sleep(2)"  # far more than the timeout; it ends with it


def failure(rng: random.Random, scene: Scene, kind: str, most: int, tags: tuple[str, ...]) -> tuple[Step, ...]:
    """Return the steps of a join that fails, unless it happens to have none of the rows that do."""
    inner = level(rng, scene, Scope(()), kind, most)
    return _WAYS.pick(rng)(rng, inner, tags)


def _numbers(inner: Level) -> list[str]:
    columns = [column for relation in inner.joined.relations for column in relation.columns]
    return [column.sql for column in columns if column.name in ("i2", "i3")]


def _dividing(rng: random.Random, inner: Level) -> str:
    """Return a query, without its first word, that divides by zero for some of the rows."""
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
    """Return a join that cancels itself at some of the rows."""
    cancel = (
        f"CASE WHEN {pick(rng, _numbers(inner))} = {between(rng, 0, 6)} THEN pg_cancel_backend(pg_backend_pid()) END"
    )
    return (_block(f"count({cancel}){inner.sql}", "query_canceled", (*tags, "error.cancelled")),)


def _timed_out(rng: random.Random, inner: Level, tags: tuple[str, ...]) -> tuple[Step, ...]:
    """Return a join that sleeps at some of the rows until its time is up.

    Without such rows, its time may be up all the same on a busy machine, so it does not say how it ended.
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
    """Return a step that runs a query, given without its first word, and says how it ended."""
    told = f"EXCEPTION WHEN {condition} THEN RAISE NOTICE 'ended by %', SQLSTATE"
    return Step(f"DO $run$BEGIN PERFORM {query}; RAISE NOTICE 'ended'; {told}; END$run$", tags=tags)


_WAYS: Weighted[Callable[[random.Random, Level, tuple[str, ...]], tuple[Step, ...]]] = Weighted(
    (60, _left_to_client), (25, _caught), (12, _cancelled), (8, _timed_out)
)
