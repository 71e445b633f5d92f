"""Generator `foreign_analyze`: ANALYZE of foreign tables with all sampling methods.

Remote relations are of all kinds. Their catalog entries are correct, outdated or wrong. A DO block sets each option,
and catches the error of a postgres_fdw that does not support it.
"""

import random
from collections.abc import Iterator
from typing import ClassVar

from fuzz.generators import loopback
from fuzz.generators.choices import Weighted, chance, pick
from fuzz.generators.foreign_analyze.actions import (
    ACTIONS,
    Far,
    analyzed,
    changed,
    method_chosen,
    stale,
    target,
    unknown_column,
)
from fuzz.generators.foreign_analyze.remote import METHODS, Remote, Sort, draw_remote, filled, made
from fuzz.generators.generator import Generator, Scale
from oracles.model.case import Case, Step


class ForeignAnalyze(Generator):
    """Repeated ANALYZE of foreign tables, and of inheritance trees with foreign children."""

    name: ClassVar[str] = "foreign_analyze"
    cpu_seconds: ClassVar[float] = 2.9
    modes: ClassVar[tuple[str, ...]] = ("plain", "extended", "prepared_generic", "cursor")
    scene_weight: ClassVar[int] = 1

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case: up to three remote relations with their foreign tables, then actions on them."""
        count = min(_RELATIONS.pick(rng), max(1, scale.relations // 2))
        far = [_far(rng, draw_remote(rng, f"r{number + 1}", scale)) for number in range(count)]
        scene = [Step(sql) for sql in loopback.GUEST_PROLOGUE]
        if chance(rng, 25):
            scene.append(Step(loopback.server_option("analyze_sampling", pick(rng, METHODS))))
        for each in far:
            scene += _made(rng, each)
        steps = [*target(rng), *(step for each in far for step in analyzed(each))]
        actions = 0
        while actions < max(1, scale.queries // 4) and rng.randrange(100):  # a shrinking rng ends the loop
            steps += ACTIONS.pick(rng)(rng, pick(rng, far))
            actions += 1
        if chance(rng, 25):
            steps += unknown_column(pick(rng, far))
        return Case(self.name, tuple(scene), tuple(steps))


_RELATIONS = Weighted((55, 1), (35, 2), (10, 3))
_KNOWN = Weighted((50, "right"), (15, "old"), (15, "wrong"), (20, "unknown"))


def _far(rng: random.Random, remote: Remote) -> Far:
    name = f"f{remote.name[1:]}"
    if remote.children == 0 and chance(rng, 18):
        return Far(name, remote, f"{name}_far", is_tree=True)
    return Far(name, remote, name)


def _made(rng: random.Random, far: Far) -> Iterator[Step]:
    """Yield the steps that create and fill a remote relation, analyze it or not, and create its foreign table."""
    remote = far.remote
    known = _KNOWN.pick(rng)
    yield from made(rng, remote)
    half = remote.table.rows // 2 if known == "old" else remote.table.rows
    yield from filled(remote, 1, half)
    if known != "unknown":
        yield Step(f"ANALYZE {remote.table.name}")
    if known == "old":
        yield from filled(remote, half + 1, remote.table.rows)
    if chance(rng, 70):  # otherwise the cumulative statistics receive the counts a second later
        yield Step("SELECT pg_stat_force_next_flush()", tags=("counted",))
    if chance(rng, 15):
        yield from changed(rng, remote)
        known = "old" if known == "right" else known
    if remote.sort is Sort.MATERIALIZED:
        yield Step(f"REFRESH MATERIALIZED VIEW {remote.name}")
    if known in ("right", "wrong") and remote.name != remote.table.name and remote.sort is not Sort.VIEW:
        yield Step(f"ANALYZE {remote.name}")
    if known == "wrong":
        yield from stale(rng, remote)
    yield Step(f"GRANT SELECT ON {remote.name} TO {loopback.GUEST}")
    yield from _foreign(rng, far)


def _foreign(rng: random.Random, far: Far) -> Iterator[Step]:
    """Yield the steps that create the foreign table, sometimes as a child of a local table.

    That table then has a local child, too.
    """
    remote, shape = far.remote, far.remote.shape
    if far.is_tree:
        yield Step(f"CREATE TABLE {far.name} {shape}")
        yield Step(f"CREATE TABLE {far.name}_near () INHERITS ({far.name})")
        shape = f"() INHERITS ({far.name})"
    fetched = pick(rng, (1000, 100, 10000, 37))
    yield Step(loopback.foreign_table(far.foreign, shape, remote.name, f"fetch_size '{fetched}'"))
    if far.is_tree:
        near = f"SELECT * FROM {remote.table.name} WHERE i1 % 3 = 0"
        yield Step(f"INSERT INTO {far.name}_near {near}")
    if remote.sort is Sort.FOREIGN or chance(rng, 80):
        yield from method_chosen(rng, far)
