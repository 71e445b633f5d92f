"""Scene of `concurrent_changes`: a target with triggers, sources, and a function that another session executes.

The function commits in a session of its own, by dblink. A trigger of the target calls it once, at the start of a
statement: its snapshot was taken, but no row has been read or locked. So the changes of the other session do not depend
on the plan, and no session waits for another one.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from fuzz.generators import loopback
from fuzz.generators.choices import Weighted, between, chance, pick, shuffled, some
from fuzz.generators.generator import Scale
from fuzz.generators.loopback import PENDING
from fuzz.generators.sql.partitions import attached
from oracles.model.case import Step

TARGET, VIEW, INSTEAD, LOG = "t", "t_view", "t_instead", "log"
ALSO: Final = "duel.also"  # setting: what this session's trigger executes after the other session
SOURCES: Final = ("s1", "s2")
COLUMNS: Final = "k, a, b, c"
GROUPS: Final = 6  # values of a
MOVED: Final = 1000  # added to keys that a session moves away
_MOST_ROWS: Final = 60

_TYPES: Final = ("k int4", "a int4", "b int4", "c text")
_SHAPES: Final = Weighted((36, "plain"), (34, "LIST (a)"), (10, "HASH (k)"), (10, "RANGE (k)"), (10, "inherited"))
_TEXTS: Final = ("'c' || g", "CASE WHEN g % 4 <> 0 THEN 'c' || g END", "repeat('c' || g, 1 + g % 3 * 400)")
_INDEXES: Final = ("(b)", "(a)", "(b, k)", "(a) WHERE b > 5")


@dataclass(frozen=True, slots=True)
class Scene:
    """The steps of a scene, and its properties on which statements depend."""

    steps: tuple[Step, ...]
    shape: str
    rows: int  # of the target, with the keys 1 to `rows`
    key: str  # columns of the primary key
    sources: tuple[str, ...]  # relations with the columns k (unique), v and w


def draw_scene(rng: random.Random, scale: Scale) -> Scene:
    """Return a random scene. The simplest one has a plain table without row triggers."""
    shape, rows = _SHAPES.pick(rng), between(rng, 1, min(scale.rows, _MOST_ROWS))
    key = "k, a" if shape == "LIST (a)" else "k"
    foreign = tuple(f"f{source}" for source in SOURCES) if chance(rng, 40) else ()
    steps = [
        *loopback.ELSEWHERE,
        *_TABLES[shape](rng),
        f"ALTER TABLE {TARGET} ADD PRIMARY KEY ({key})",
        *(f"CREATE INDEX ON {TARGET} {columns}" for columns in some(rng, _INDEXES, between(rng, 0, 2))),
        f"INSERT INTO {TARGET} ({COLUMNS}) SELECT g, g % {GROUPS}, g * 7 % 20, {pick(rng, _TEXTS)}"
        f" FROM generate_series(1, {rows}) AS g WHERE NOT EXISTS (SELECT FROM {TARGET} WHERE k = g)",
        *_sources(rng, rows),
        *(_foreign_sources() if foreign else ()),
        f"CREATE VIEW {VIEW} AS SELECT {COLUMNS} FROM {TARGET} WHERE b < 1000 WITH CHECK OPTION",
        *_triggers(rng),
        *_INSTEAD,
    ]
    steps += [f"ANALYZE {TARGET}, {', '.join(SOURCES)}"] if chance(rng, 50) else []
    sources = foreign if foreign and chance(rng, 50) else SOURCES + foreign
    return Scene(tuple(map(Step, steps)), shape, rows, key, sources)


def _plain(rng: random.Random) -> Iterator[str]:
    yield f"CREATE TABLE {TARGET} ({', '.join(_TYPES)}{_generated(rng)})"


def _inherited(rng: random.Random) -> Iterator[str]:
    """Yield a table with children that other sessions and the target's statements change, too."""
    yield f"CREATE TABLE {TARGET} ({', '.join(_TYPES)})"
    for number in range(between(rng, 1, 2)):
        child = f"{TARGET}_{number}"
        yield f"CREATE TABLE {child} (own int4 DEFAULT 7) INHERITS ({TARGET})"
        keys = f"generate_series({9 * number + 1}, {9 * number + 9})"
        yield f"INSERT INTO {child} ({COLUMNS}) SELECT g, g % {GROUPS}, g * 3 % 20, 'i' || g FROM {keys} AS g"


def _listed(rng: random.Random) -> Iterator[str]:
    groups = tuple(map(str, shuffled(rng, range(GROUPS))))
    count = between(rng, 2, 4)
    bounds = [f"FOR VALUES IN ({', '.join(groups[n::count])})" for n in range(count)]
    yield from _partitioned(rng, "LIST (a)", [*bounds[:-1], "DEFAULT"])


def _hashed(rng: random.Random) -> Iterator[str]:
    count = between(rng, 2, 4)
    yield from _partitioned(
        rng, "HASH (k)", [f"FOR VALUES WITH (MODULUS {count}, REMAINDER {n})" for n in range(count)]
    )


def _ranged(rng: random.Random) -> Iterator[str]:
    edge = between(rng, 2, 30)
    low, high = f"FROM (MINVALUE) TO ({edge})", f"FROM ({edge}) TO ({MOVED})"
    yield from _partitioned(rng, "RANGE (k)", [f"FOR VALUES {low}", f"FOR VALUES {high}", "DEFAULT"])


_TABLES: Final = {
    "plain": _plain, "LIST (a)": _listed, "HASH (k)": _hashed, "RANGE (k)": _ranged, "inherited": _inherited
}  # fmt: skip


def _partitioned(rng: random.Random, method: str, bounds: list[str]) -> Iterator[str]:
    yield f"CREATE TABLE {TARGET} ({', '.join(_TYPES)}) PARTITION BY {method}"
    for number, bound in enumerate(bounds):
        name = f"{TARGET}_{number}"
        if chance(rng, 40):  # with other numbers of columns
            own = ", ".join(shuffled(rng, [*_TYPES, "gone int4"]))
            yield from attached(f"CREATE TABLE {name} ({own})", name, TARGET, bound)
        else:
            yield f"CREATE TABLE {name} PARTITION OF {TARGET} {bound}"


def _generated(rng: random.Random) -> str:
    return ", g int4 GENERATED ALWAYS AS (b * 2) STORED" if chance(rng, 25) else ""


def _sources(rng: random.Random, rows: int) -> Iterator[str]:
    for number, name in enumerate(SOURCES):
        columns = "(k int4 PRIMARY KEY, v int4, w text)" if chance(rng, 70) else "(k int4 NOT NULL, v int4, w text)"
        first, every = between(rng, 1, 3), between(rng, 1, 3)
        yield f"CREATE TABLE {name} {columns}"
        yield (
            f"INSERT INTO {name} SELECT g, g * {3 + number} % 20, 'w' || g % 5"
            f" FROM generate_series({first}, {rows + 5}, {every}) AS g"
        )


def _foreign_sources() -> Iterator[str]:
    yield from loopback.PROLOGUE
    for source in SOURCES:
        yield loopback.foreign_table(f"f{source}", "(k int4 NOT NULL, v int4, w text)", source)


def _triggers(rng: random.Random) -> Iterator[str]:
    """Yield the trigger that lets the other session act, and often triggers of rows before and after the change."""
    yield (
        f"CREATE FUNCTION meanwhile() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE"
        f" own text := current_setting('{ALSO}', true); BEGIN PERFORM elsewhere_pending();"
        f" IF own <> '' THEN PERFORM set_config('{ALSO}', '', false); EXECUTE own; END IF; RETURN NULL; END $$"
    )
    yield (
        f"CREATE TRIGGER meanwhile BEFORE INSERT OR UPDATE OR DELETE ON {TARGET} FOR EACH STATEMENT"
        " EXECUTE FUNCTION meanwhile()"
    )
    yield f"CREATE TABLE {LOG} (op text, content jsonb)"
    if chance(rng, 35):
        yield _TOUCH
        event = pick(rng, ("UPDATE", "INSERT OR UPDATE", "DELETE", "INSERT OR UPDATE OR DELETE"))
        yield f"CREATE TRIGGER touch BEFORE {event} ON {TARGET} FOR EACH ROW EXECUTE FUNCTION touch()"
    if chance(rng, 40):
        yield _NOTE
        yield (
            f"CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON {TARGET} FOR EACH ROW"
            f" WHEN (current_setting('{PENDING}', true) = '') EXECUTE FUNCTION note()"
        )


# A view whose changes a trigger executes.
_INSTEAD: Final = (
    f"CREATE VIEW {INSTEAD} AS SELECT {COLUMNS} FROM {TARGET} WHERE b >= 0",
    "CREATE FUNCTION instead() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    " IF coalesce(NEW.b, OLD.b) % 7 = 3 THEN RETURN NULL; END IF;"
    f" IF TG_OP = 'DELETE' THEN DELETE FROM {TARGET} WHERE k = OLD.k; RETURN OLD; END IF;"
    f" IF TG_OP = 'INSERT' THEN INSERT INTO {TARGET} ({COLUMNS}) VALUES (NEW.*) ON CONFLICT DO NOTHING;"
    f" ELSE UPDATE {TARGET} SET a = NEW.a, b = NEW.b, c = NEW.c WHERE k = OLD.k; END IF; RETURN NEW; END $$",
    f"CREATE TRIGGER meanwhile BEFORE INSERT OR UPDATE OR DELETE ON {INSTEAD} FOR EACH STATEMENT"
    " EXECUTE FUNCTION meanwhile()",
    f"CREATE TRIGGER instead INSTEAD OF INSERT OR UPDATE OR DELETE ON {INSTEAD} FOR EACH ROW"
    " EXECUTE FUNCTION instead()",
)
# It acts in this session only, where the setting is empty after the other session has acted.
_TOUCH: Final = (
    f"CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    f" IF current_setting('{PENDING}', true) IS DISTINCT FROM '' THEN RETURN coalesce(NEW, OLD); END IF;"
    " IF TG_OP = 'DELETE' THEN RETURN CASE WHEN OLD.b % 7 <> 3 THEN OLD END; END IF;"
    " IF NEW.b % 7 = 3 THEN RETURN NULL; END IF; NEW.c := NEW.c || '+'; RETURN NEW; END $$"
)
_NOTE: Final = (
    "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    f" INSERT INTO {LOG} SELECT TG_OP, to_jsonb(OLD) WHERE TG_OP <> 'INSERT';"
    f" INSERT INTO {LOG} SELECT TG_OP, to_jsonb(NEW) WHERE TG_OP <> 'DELETE'; RETURN NULL; END $$"
)
