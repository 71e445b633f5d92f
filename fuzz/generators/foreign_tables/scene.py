"""Scene: foreign tables over tables and views of two loopback servers, trees with foreign partitions, a local table.

All relations have the same columns. Column k is unique in each relation, and has values of its own in new rows, so that
it makes orders total. Only trees are partitioned, by a.

Each remote relation belongs to one foreign table, and no statement uses it directly. So sessions never wait for each
other, and a transaction sees its own changes.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from fuzz.generators import loopback
from fuzz.generators.choices import Weighted, between, chance, pick, some
from fuzz.generators.foreign_tables.files import FILE, file_relation
from fuzz.generators.foreign_tables.own_objects import OWN_OBJECTS
from fuzz.generators.generator import Scale
from oracles.model.case import Step

_C: Final = ' COLLATE "C"'
COLUMNS: Final = "k, a, b, c, d, e"
NEAR: Final = "near"  # name of the local table
LOG: Final = "log"  # name of the table that local triggers fill
COSTLY, VOLATILE = "costly", "same"  # names of functions that return their argument
FRESH: Final = 100_000  # new keys of a statement begin at its number times this

_TYPES: Final = {
    "k": "int NOT NULL", "a": "int", "b": "text{}", "c": "numeric(10, 2) DEFAULT 1", "d": "date", "e": "int[]"
}  # fmt: skip
_SERVERS: Final = (loopback.SERVER, loopback.SECOND)
BOUNDS: Final = ("0, 1", "2, 3", "4, 5")  # values of a of the first partitions; the last one is the default
_FOREIGN: Final = Weighted((20, 2), (50, 3), (30, 4))
_REPEATED: Final = Weighted((40, 12), (30, 5), (30, 60))
_EVERY: Final = Weighted((65, 1), (20, 2), (15, 3))
_SERVER_OPTIONS: Final = (
    ("async_capable", ("true", "false")),
    ("use_remote_estimate", ("false", "true")),
    ("batch_size", ("1", "10", "100")),
    ("fetch_size", ("100", "7", "40")),
    ("parallel_commit", ("true", "false")),
    ("parallel_abort", ("true", "false")),
)
_COST_OPTIONS: Final = ("fdw_startup_cost", "fdw_tuple_cost")
# The estimate of a remote sort is a share of the scan's, so plans have one mostly if the scan costs little.
_COSTS: Final = Weighted((50, ()), (10, ("100", "0.2")), (10, ("0", "0.2")), (30, ("0", "0")))
_TABLE_OPTIONS: Final = (
    ("async_capable", ("true", "false")),
    ("use_remote_estimate", ("true", "false")),
    ("batch_size", ("3", "50")),
    ("fetch_size", ("3", "15", "100")),
)
_INTERVALS: Final = "SET IntervalStyle = 'sql_standard'"
_FUNCTIONS: Final = (
    "CREATE FUNCTION touched() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    " IF TG_OP = 'DELETE' THEN RETURN CASE WHEN OLD.c % 3 = 1 THEN NULL ELSE OLD END; END IF;"
    " IF NEW.c % 9 = 4 THEN RETURN NULL; END IF;"
    " NEW.c := NEW.c + 1; RETURN NEW; END $$",
    f"CREATE TABLE {LOG} (op text, k int, c numeric)",
    "CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF TG_OP <> 'INSERT' THEN"
    f" INSERT INTO {LOG} VALUES (TG_OP, OLD.k, OLD.c); END IF; IF TG_OP <> 'DELETE' THEN"
    f" INSERT INTO {LOG} VALUES (TG_OP, NEW.k, NEW.c); END IF; RETURN NULL; END $$",
    # Functions that the planner postpones, must not move, or does not know the result of.
    f"CREATE FUNCTION {COSTLY}(int) RETURNS int IMMUTABLE COST 100000 LANGUAGE plpgsql AS 'BEGIN RETURN $1; END'",
    f"CREATE FUNCTION {VOLATILE}(int) RETURNS int VOLATILE LANGUAGE plpgsql AS 'BEGIN RETURN $1; END'",
)
_TOUCHED: Final = "CREATE TRIGGER touches BEFORE {} ON {} FOR EACH ROW EXECUTE FUNCTION touched()"


class Sort(StrEnum):
    """Kinds of relations."""

    TABLE = "table"  # foreign table over a table
    VIEW = "view"  # foreign table over a view
    TREE = "tree"  # partitioned table with local and foreign partitions
    LOCAL = "local"
    FILE = "file"  # file table, which no statement changes


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation of the scene."""

    name: str
    sort: Sort
    server: str = ""  # of a foreign table
    keyed: bool = False  # k is the primary key of the remote table
    local: tuple[str, ...] = ()  # values of a in local partitions of a tree, each for one partition
    options: tuple[str, ...] = ()  # names of foreign tables whose options may change

    @property
    def changeable(self) -> bool:
        """Return whether UPDATE, DELETE and TRUNCATE are legal. postgres_fdw finds rows by ctid, which views lack."""
        return self.sort is not Sort.VIEW


@dataclass(frozen=True, slots=True)
class Scene:
    """All relations with the steps that create them, the greatest first key, and the number of repeated values."""

    relations: tuple[Relation, ...]  # without a file table
    files: tuple[Relation, ...]
    keys: int
    repeat: int
    trigrams: bool  # the servers may execute functions and operators of pg_trgm
    own: bool  # there are the objects of `own_objects`
    steps: tuple[Step, ...]

    @property
    def foreign(self) -> tuple[Relation, ...]:
        """Return the foreign tables."""
        return tuple(each for each in self.relations if each.server)

    @property
    def changeable(self) -> tuple[Relation, ...]:
        """Return the relations that UPDATE, DELETE and TRUNCATE may change."""
        return tuple(each for each in self.relations if each.changeable)

    @property
    def readable(self) -> tuple[Relation, ...]:
        """Return the relations that a query may read: all."""
        return self.relations + self.files

    @property
    def trees(self) -> tuple[Relation, ...]:
        """Return the partitioned tables."""
        return tuple(each for each in self.relations if each.sort is Sort.TREE)


def sources(rng: random.Random, scene: Scene, count: int) -> tuple[Relation, ...]:
    """Return relations to join, half of the time foreign tables of one server only, as far as there are."""
    server = pick(rng, scene.foreign).server
    same = tuple(each for each in scene.foreign if each.server == server)
    return some(rng, same if len(same) >= count and chance(rng, 65) else scene.readable, count)


def draw_target(rng: random.Random, scene: Scene) -> Relation:
    """Return a relation to update, mostly a foreign table."""
    foreign = [each for each in scene.changeable if each.server]
    return pick(rng, foreign if foreign and chance(rng, 70) else scene.changeable)


def draw_scene(rng: random.Random, scale: Scale) -> Scene:
    """Return a scene with two to four foreign tables, at most two trees, and the local table."""
    keys, repeat = between(rng, 1, max(1, scale.rows * 2 // 3)), _REPEATED.pick(rng)
    steps = [Step(sql) for sql in (*loopback.PROLOGUE, *loopback.SECOND_PROLOGUE, *_FUNCTIONS)]
    if chance(rng, 15):  # other than that of the remote sessions
        steps.append(Step(pick(rng, ("SET DateStyle = 'German'", "SET DateStyle = 'SQL, DMY'", _INTERVALS))))
    own = chance(rng, 30)
    steps += [Step(sql) for sql in OWN_OBJECTS] if own else []
    trigrams = chance(rng, 25)
    steps += [Step("CREATE EXTENSION IF NOT EXISTS pg_trgm")] if trigrams else []
    for server in _SERVERS:
        steps += [Step(loopback.server_option("extensions", "pg_trgm", server=server))] if trigrams else []
        steps += [
            Step(loopback.server_option(option, pick(rng, values), server=server))
            for option, values in _SERVER_OPTIONS
            if chance(rng, 55)
        ]
        costs = zip(_COST_OPTIONS, _COSTS.pick(rng), strict=False)
        steps += [Step(loopback.server_option(option, value, server=server)) for option, value in costs]
    steps += [Step(f"CREATE TABLE {NEAR} ({_columns(_C)}, PRIMARY KEY (k))"), _filled(rng, NEAR, keys, repeat)]
    steps += [Step(_TOUCHED.format("INSERT OR UPDATE OR DELETE", NEAR))] if chance(rng, 35) else []
    relations = []
    for number in range(1, min(_FOREIGN.pick(rng), max(2, scale.relations)) + 1):
        relation, made = _foreign(rng, f"f{number}")
        relations.append(relation)
        steps += [*made, _filled(rng, relation.name, keys, repeat), *_after(rng, relation)]
    for number in range(1, min(between(rng, 0, 2), scale.relations // 2) + 1):
        tree, made = _tree(rng, f"t{number}")
        relations.append(tree)
        steps += [*made, _filled(rng, tree.name, keys, repeat), *_after(rng, tree)]
    relations.append(Relation(NEAR, Sort.LOCAL, keyed=True))
    files = (Relation(FILE, Sort.FILE),) if chance(rng, 40) else ()
    steps += file_relation(rng, _columns(_C), keys, repeat) if files else []
    return Scene(tuple(relations), files, keys, repeat, trigrams, own, tuple(steps))


def _columns(collation: str, renamed: str = "") -> str:
    """Return the definitions of the columns. The one named `renamed` gets another name."""
    return ", ".join(f"{_there(name, renamed)} {type_.format(collation)}" for name, type_ in _TYPES.items())


def _there(name: str, renamed: str) -> str:
    """Return the name of a column in the remote relation."""
    return f'"{name} There"' if name == renamed else name


def remote_of(name: str) -> str:
    """Return the name of the remote relation of a foreign table."""
    return f"r_{name}"


def _foreign(rng: random.Random, name: str) -> tuple[Relation, list[Step]]:
    """Return a foreign table, and the steps that create and fill it."""
    sort = Sort.VIEW if chance(rng, 15) else Sort.TABLE
    keyed = sort is Sort.TABLE and not chance(rng, 30)
    server = pick(rng, (loopback.SERVER, *_SERVERS))
    relation = Relation(name, sort, server, keyed, options=(name,))
    return relation, list(_created(rng, relation, _C if chance(rng, 70) else "", generated=chance(rng, 25)))


def _created(rng: random.Random, relation: Relation, collation: str, *, generated: bool) -> Iterator[Step]:
    """Yield the steps that create a foreign table and its remote relation, without rows.

    They may have other column names, dropped columns, and a trigger on the remote table.
    """
    name, there = relation.name, remote_of(relation.name)
    base = f"{there}_base" if relation.sort is Sort.VIEW else there
    renamed = pick(rng, ("k", "a", "b", "d", "e")) if chance(rng, 40) else ""
    column = ", h int GENERATED ALWAYS AS ({} * 2) STORED" if generated else ""
    key = _there("k", renamed)
    primary = f", PRIMARY KEY ({key})" if relation.keyed else ""
    yield from _table(rng, f"CREATE TABLE {base} ({{}}{_columns(collation, renamed)}{column.format(key)}{primary})")
    if chance(rng, 40):
        yield Step(f"CREATE INDEX ON {base} ({_there(pick(rng, ('a', 'b', 'k')), renamed)})")
    if chance(rng, 25):
        event = pick(rng, ("INSERT", "UPDATE", "INSERT OR UPDATE", "DELETE", "UPDATE OR DELETE"))
        yield Step(f"CREATE TRIGGER changes BEFORE {event} ON {base} FOR EACH ROW EXECUTE FUNCTION touched()")
    if relation.sort is Sort.VIEW:
        yield Step(f"CREATE VIEW {there} AS SELECT * FROM {base}")
    options = [f"{option} '{pick(rng, values)}'" for option, values in _TABLE_OPTIONS if chance(rng, 35)]
    shape = f"({{}}{_columns(collation)}{column.format('k')})"
    yield from _table(rng, loopback.foreign_table(name, shape, there, *options, server=relation.server))
    if renamed:
        option = f"OPTIONS (column_name '{renamed} There')"
        yield Step(f"ALTER FOREIGN TABLE {name} ALTER COLUMN {renamed} {option}")


def _table(rng: random.Random, create: str) -> Iterator[Step]:
    """Yield the steps that create a table whose first column was dropped, or which never had it."""
    dropped = chance(rng, 30)
    yield Step(create.format("gone int, " if dropped else ""))
    if dropped:
        yield Step(f"ALTER TABLE {create.split(' (')[0].split()[-1]} DROP COLUMN gone")


def _tree(rng: random.Random, name: str) -> tuple[Relation, list[Step]]:
    """Return a partitioned table, and the steps that create it with its partitions. The first one is local."""
    steps = [Step(f"CREATE TABLE {name} ({_columns(_C)}) PARTITION BY LIST (a)")]
    local, options = [BOUNDS[0]], []
    for number, bound in enumerate((*BOUNDS, ""), 1):
        member, clause = f"{name}_{number}", f"FOR VALUES IN ({bound})" if bound else "DEFAULT"
        if number > 1 and not chance(rng, 25):
            options.append(member)
            steps += _created(rng, Relation(member, Sort.TABLE, pick(rng, _SERVERS)), _C, generated=False)
            steps.append(Step(f"ALTER TABLE {name} ATTACH PARTITION {member} {clause}"))
        else:
            local += [bound] if number > 1 and bound else []
            steps.append(Step(f"CREATE TABLE {member} PARTITION OF {name} {clause}"))
    return Relation(name, Sort.TREE, local=tuple(local), options=tuple(options)), steps


def _filled(rng: random.Random, name: str, keys: int, repeat: int) -> Step:
    """Return the step that fills a relation with the first keys, or with some of them."""
    series = f"generate_series({between(rng, 1, max(1, keys // 4))}, {keys}, {_EVERY.pick(rng)})"
    return Step(f"INSERT INTO {name} ({COLUMNS}) SELECT {values(rng, 'g', repeat)} FROM {series} AS g")


def values(rng: random.Random, key: str, repeat: int) -> str:
    """Return the values of all columns in the row of a key, with g as its number. Some are NULL."""
    made = ("g % 8", f"'v' || g % {repeat}", f"(g % {repeat}) / 4.0", f"date '2024-01-01' + g % {repeat}")
    drawn = (f"CASE WHEN g % {between(rng, 2, 9)} <> 0 THEN {each} END" if chance(rng, 40) else each for each in made)
    return f"{key}, {', '.join(drawn)}, ARRAY[g % 3, g % 5]"


def _after(rng: random.Random, relation: Relation) -> Iterator[Step]:
    """Yield steps that follow the load: local triggers, and statistics.

    Rows of foreign partitions have triggers of the tree.
    """
    name = relation.name
    if chance(rng, 20):
        event = pick(rng, ("INSERT", "UPDATE", "DELETE", "INSERT OR UPDATE OR DELETE"))
        yield Step(f"CREATE TRIGGER notes AFTER {event} ON {name} FOR EACH ROW EXECUTE FUNCTION noted()")
    if chance(rng, 15):
        event = pick(rng, ("INSERT", "UPDATE", "DELETE"))
        # A trigger of the local partition alone makes pending batches of foreign ones be sent first.
        table = f"{name}_1" if relation.sort is Sort.TREE and chance(rng, 50) else name
        yield Step(_TOUCHED.format(event, table))
    if chance(rng, 50):
        yield analyzed(relation)


def with_stable_plans(scene: Scene) -> tuple[Step, ...]:
    """Return the scene's steps, changed so that equal servers have equal plans.

    No estimate is the remote server's. Views are not analyzed, because their size is a guess of the arm's postgres_fdw.
    """
    remote, local = (f"use_remote_estimate '{value}'" for value in ("true", "false"))
    views = {analyzed(relation) for relation in scene.relations if relation.sort is Sort.VIEW}
    return tuple(replace(step, sql=step.sql.replace(remote, local)) for step in scene.steps if step not in views)


def analyzed(relation: Relation) -> Step:
    """Return ANALYZE of a relation and the local table.

    The oracle `statistics` judges ANALYZE of one table only. It reads the remote relation by the local column names.
    """
    return Step(f"ANALYZE {relation.name}, {NEAR}", tags=("analyze",))
