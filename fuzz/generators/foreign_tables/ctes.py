"""Statements with changes in WITH, before which batches are sent and asynchronous scans completed."""

import random

from fuzz.generators.choices import chance, pick
from fuzz.generators.foreign_tables.conditions import condition
from fuzz.generators.foreign_tables.scene import COLUMNS, FRESH, NEAR, Relation, Scene, draw_target, values
from fuzz.generators.sql.digest import digest
from fuzz.generators.sql.predicates import where


def by_cte(rng: random.Random, scene: Scene, number: int) -> str:
    """Return a statement that changes a relation, and inserts the rows into another one or returns them."""
    make = pick(rng, (_moved, _batched, _batched, _united))
    return make(rng, scene, number)


def _moved(rng: random.Random, scene: Scene, number: int) -> str:
    """Return a statement that moves rows from one relation to another, and returns or counts them."""
    source = draw_target(rng, scene)
    target = pick(rng, [each for each in scene.relations if each.name != source.name])
    added = f"INSERT INTO {target.name} AS x ({COLUMNS}) SELECT {_fresh(number)} FROM w RETURNING x.k, x.b"
    return f"WITH w AS ({_changed(rng, scene, source, deletes=True)}), i AS ({added}) {digest('TABLE i')}"


def _batched(rng: random.Random, scene: Scene, number: int) -> str:
    """Return an INSERT whose rows are those that another change returns, mostly one with triggers of rows.

    PostgreSQL sends the rows that wait for a batch before a trigger of the other relation.
    """
    source = _near(scene) if chance(rng, 60) else draw_target(rng, scene)
    target = pick(rng, [each for each in scene.foreign if each.name != source.name] or [_near(scene)])
    if chance(rng, 25):
        rows = f"SELECT {values(rng, f'{FRESH * number} + g', scene.repeat)} FROM generate_series(1, 9) AS g"
        change, fresh = f"INSERT INTO {source.name} AS x ({COLUMNS}) {rows} RETURNING x.*", COLUMNS
    else:
        change, fresh = _changed(rng, scene, source, deletes=chance(rng, 40)), _fresh(number)
    return f"WITH w AS ({change}) INSERT INTO {target.name} ({COLUMNS}) SELECT {fresh} FROM w"


def _united(rng: random.Random, scene: Scene, _number: int) -> str:
    """Return a union with the rows of a change. The scans of the same server may be asynchronous."""
    target = draw_target(rng, scene)
    others = [each for each in scene.readable if each.name != target.name]
    same = [each for each in others if each.server and each.server == target.server] or others
    scans = [f"SELECT k, a, b FROM {pick(rng, relations).name}" for relations in (same, others)]
    change = _changed(rng, scene, target, deletes=chance(rng, 40))
    return f"WITH w AS ({change}) {digest(' UNION ALL '.join((*scans, 'SELECT k, a, b FROM w')))}"


def _near(scene: Scene) -> Relation:
    return next(each for each in scene.relations if each.name == NEAR)


def _fresh(number: int) -> str:
    return f"k + {FRESH * number}, a, b, c, d, e"


def _changed(rng: random.Random, scene: Scene, source: Relation, *, deletes: bool) -> str:
    conditions = where([f"x.k <= {scene.keys}", condition(rng, scene, "x")])
    if deletes:
        return f"DELETE FROM {source.name} AS x{conditions} RETURNING x.*"
    return f"UPDATE {source.name} AS x SET {pick(rng, ('c = x.c + 1', 'b = upper(x.b)'))}{conditions} RETURNING x.*"
