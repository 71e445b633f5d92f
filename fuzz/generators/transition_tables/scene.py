"""Scene of `transition_tables`: a table or a tree of tables, rows for it in a plain table, and triggers on all of them.

The same function logs the rows of row triggers, and those of transition tables of statement triggers. One step creates
all triggers, so that a reduced case has both kinds or none.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from fuzz.generators.choices import Weighted, between, chance, pick, shuffled, some
from fuzz.generators.generator import Scale
from fuzz.generators.sql.partitions import attached
from oracles.model.case import Step

TARGET, VIEW, SOURCE, LOG = "t", "t_view", "s", "changes"
FRESH = 10000  # added to ids of new rows, times the number of the statement
_MOST_ROWS = 60


@dataclass(frozen=True, slots=True)
class Scene:
    """A scene, and its properties on which statements depend."""

    steps: tuple[Step, ...]
    domain: int  # the keys are 0 to domain - 1
    rows: int  # of the source, with the ids 1 to `rows`
    members: tuple[str, ...]  # all other tables of the tree
    partitioned: bool
    excluded: bool  # the target itself has only rows whose ids are `FRESH` or above
    moves: bool  # statements may move rows to other partitions
    unique: bool  # an index of the target has unique ids and keys
    notes: bool  # triggers of some columns log, too
    described: str  # the tree in a word, for tags


def draw_scene(rng: random.Random, scale: Scale) -> Scene:
    """Return a random scene. The simplest one has a plain table."""
    domain, rows = between(rng, 2, 12), between(rng, 1, min(scale.rows, _MOST_ROWS))
    described = _KINDS.pick(rng)
    # PostgreSQL 17.11 and 18.6: rows of partitions with other columns lack it (corpus/upstream/62a398617686.sql).
    generated = described != "partitioned" and chance(rng, 50)
    columns = [*_COLUMNS, *((_GENERATED,) if generated else ())]
    created = list(_TREES[described](rng, columns, domain, scale))
    members = tuple(name for name, _ in created[1:])
    partitioned, excluded = described == "partitioned", described == "excluded"
    unique = not excluded and chance(rng, 50)
    tree = [
        *(step for _, steps in created for step in steps),
        *_filled(rng, rows, domain, (TARGET,) if partitioned else members if excluded else (TARGET, *members)),
    ]
    tree += [f"ALTER TABLE {TARGET} ADD UNIQUE (id, k)"] if unique else []
    tree += _referencing(rng) if unique and described != "inherited" and chance(rng, 30) else []
    tree += _adjusted(rng, (TARGET, *members), inherited=described == "partitioned") if chance(rng, 40) else []
    checked = " WHERE id > 0 WITH CHECK OPTION" if chance(rng, 40) else ""
    tree += [f"CREATE VIEW {VIEW} AS SELECT id, k, v, t FROM {TARGET}{checked}", *_WATCHED]
    notes = chance(rng, 70 if generated else 25)
    tree += _noting(rng, (TARGET, *members), described, generated=generated) if notes else []
    return Scene(
        tuple(map(Step, tree)),
        domain,
        rows,
        members,
        partitioned,
        excluded,
        moves=partitioned and chance(rng, 50),
        unique=unique,
        notes=notes,
        described=described,
    )


_KINDS = Weighted((15, "plain"), (57, "partitioned"), (14, "inherited"), (14, "excluded"))
_COLUMNS = ("id int4", "k int4", "v int4", "t text")
_GENERATED = "g int4 GENERATED ALWAYS AS (v * 2) STORED"
_Created = Iterator[tuple[str, list[str]]]  # tables, the target first, with the statements that create them


def _declared(rng: random.Random, columns: list[str], name: str, rest: str = "") -> list[str]:
    """Return the statements that create a table, sometimes with another order of columns and a dropped one."""
    if not chance(rng, 30):
        return [f"CREATE TABLE {name} ({', '.join(columns)}){rest}"]
    own = shuffled(rng, [*columns, "gone int4"])
    return [f"CREATE TABLE {name} ({', '.join(own)}){rest}", f"ALTER TABLE {name} DROP COLUMN gone"]


def _plain(rng: random.Random, columns: list[str], _domain: int, _scale: Scale) -> _Created:
    yield TARGET, _declared(rng, columns, TARGET)


def _excluded(rng: random.Random, columns: list[str], domain: int, scale: Scale) -> _Created:
    """Yield a tree whose parent a condition on the id excludes from plans."""
    # PostgreSQL 17.11 and 18.6 refuse MERGE ... RETURNING if a child has a column of its own (corpus/README.md).
    return _inherited(rng, [*columns, f"CHECK (id >= {FRESH}) NO INHERIT"], domain, scale, widened=0)


def _inherited(rng: random.Random, columns: list[str], _domain: int, scale: Scale, widened: int = 30) -> _Created:
    """Yield a tree in which some children have a column of their own, or a parent that is a child."""
    yield TARGET, _declared(rng, columns, TARGET)
    names = [TARGET]
    for number in range(between(rng, 1, min(4, scale.partitions))):
        name, parent = f"{TARGET}_{number}", pick(rng, names) if chance(rng, 30) else TARGET
        own = "own int4 DEFAULT 7" if chance(rng, widened) and parent == TARGET else ""
        yield name, [f"CREATE TABLE {name} ({own}) INHERITS ({parent})"]
        names += [] if own else [name]


def _partitioned(rng: random.Random, columns: list[str], domain: int, scale: Scale) -> _Created:
    """Yield a tree with one or two levels, which has a partition for each key."""
    method = pick(rng, tuple(_BOUNDS))
    yield TARGET, _declared(rng, columns, TARGET, f" PARTITION BY {method} (k)")
    for number, bound in enumerate(_BOUNDS[method](rng, domain, between(rng, 1, min(6, scale.partitions)))):
        name, below = f"{TARGET}_{number}", pick(rng, tuple(_BOUNDS)) if chance(rng, 15) else ""
        yield name, _partition(rng, columns, TARGET, name, bound, below)
        if below:
            for inner, part in enumerate(_BOUNDS[below](rng, domain, between(rng, 1, 3))):
                yield f"{name}_{inner}", _partition(rng, columns, name, f"{name}_{inner}", part)


_TREES: dict[str, Callable[[random.Random, list[str], int, Scale], _Created]] = {
    "plain": _plain,
    "inherited": _inherited,
    "excluded": _excluded,
    "partitioned": _partitioned,
}


def _partition(
    rng: random.Random, columns: list[str], parent: str, name: str, bound: str, below: str = ""
) -> list[str]:
    clause = f" PARTITION BY {below} (k)" if below else ""
    if not chance(rng, 40):
        return [f"CREATE TABLE {name} PARTITION OF {parent} {bound}{clause}"]
    own = ", ".join(shuffled(rng, [*columns, "gone int4"]))
    return list(attached(f"CREATE TABLE {name} ({own}){clause}", name, parent, bound))


def _lists(rng: random.Random, domain: int, count: int) -> list[str]:
    keys = [str(key) for key in shuffled(rng, range(domain))]
    groups = [keys[number::count] for number in range(count) if keys[number::count]]
    bounds = [f"FOR VALUES IN ({', '.join(group)})" for group in groups]
    return [*bounds[:-1], "DEFAULT"] if chance(rng, 40) else bounds


def _ranges(rng: random.Random, domain: int, count: int) -> list[str]:
    edges = ["MINVALUE", *sorted(some(rng, range(1, domain), count - 1)), "MAXVALUE"]
    bounds = [f"FOR VALUES FROM ({low}) TO ({high})" for low, high in pairwise(edges)]
    if chance(rng, 30):
        bounds[rng.randrange(len(bounds))] = "DEFAULT"
    return bounds


def _hashes(_rng: random.Random, _domain: int, count: int) -> list[str]:
    return [f"FOR VALUES WITH (MODULUS {count}, REMAINDER {number})" for number in range(count)]


_BOUNDS = {"LIST": _lists, "RANGE": _ranges, "HASH": _hashes}


def _filled(rng: random.Random, rows: int, domain: int, tables: tuple[str, ...]) -> Iterator[str]:
    """Yield the statements that fill the source, and these tables of the target with some of its rows."""
    yield f"CREATE TABLE {SOURCE} (id int4, k int4, v int4, t text)"
    values = f"g, g * {pick(rng, (1, 5, 7))} % {domain}, g % 10, {pick(rng, _TEXTS)}"
    yield f"INSERT INTO {SOURCE} SELECT {values} FROM generate_series(1, {rows}) AS g"
    kept = pick(rng, ("id % 3 <> 0", "id % 2 = 0", "true"))
    for number, table in enumerate(tables):
        place = f" AND id % {len(tables)} = {number}" if len(tables) > 1 else ""
        yield f"INSERT INTO {table} (id, k, v, t) SELECT id, k, v, t FROM {SOURCE} WHERE {kept}{place}"
    if chance(rng, 40):
        yield f"ANALYZE {TARGET}"


_TEXTS = (
    "'t' || g",
    "'t' || g",
    "CASE WHEN g % 3 <> 0 THEN 't' || g END",
    "repeat('t' || g, CASE g % 9 WHEN 0 THEN 900 ELSE 1 END)",
)


def _referencing(rng: random.Random) -> list[str]:
    """Return the statements that create a table whose rows follow those of the target."""
    deleted = pick(rng, ("CASCADE", "SET NULL"))
    key = f"FOREIGN KEY (id, k) REFERENCES {TARGET} (id, k) ON UPDATE CASCADE ON DELETE {deleted}"
    return [
        f"CREATE TABLE child (id int4, k int4, n int4, {key})",
        f"INSERT INTO child SELECT id, k, id * 2 FROM {TARGET} WHERE id % 2 = 0",
    ]


def _adjusted(rng: random.Random, tables: tuple[str, ...], *, inherited: bool) -> list[str]:
    """Return the statements that create triggers, which change rows before they are stored, or skip them."""
    some_tables = some(rng, tables, between(rng, 1, 2))
    if inherited and TARGET in some_tables:  # its partitions have its trigger
        some_tables = (TARGET,)
    events = pick(rng, ("INSERT", "INSERT OR UPDATE", "UPDATE", "INSERT OR UPDATE OR DELETE"))
    return [
        _ADJUST,
        *(f"CREATE TRIGGER adjust BEFORE {events} ON {table} FOR EACH ROW EXECUTE FUNCTION adjust()"
          for table in some_tables),
    ]  # fmt: skip


_ADJUST = (
    "CREATE FUNCTION adjust() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    " IF TG_OP = 'DELETE' THEN RETURN CASE WHEN OLD.v % 7 = 3 THEN NULL ELSE OLD END; END IF;"
    " IF NEW.v % 7 = 3 THEN RETURN NULL; END IF;"
    " NEW.t := NEW.t || '+'; RETURN NEW; END $$"
)


def _noting(rng: random.Random, tables: tuple[str, ...], described: str, *, generated: bool) -> list[str]:
    """Return the statements that create triggers of updates of some columns, which log that they fire.

    An update that names another column fires the triggers of a generated column if that depends on it.
    """
    names = ("id", "k", "v", "t", *(("g",) * 6 if generated else ()))
    statements = [_NOTE]
    for number in range(between(rng, 1, 2)):
        events = f"UPDATE OF {', '.join(sorted({pick(rng, names) for _ in range(between(rng, 1, 2))}))}"
        when = f"{pick(rng, ('AFTER', 'AFTER', 'BEFORE'))} {pick(rng, ('', '', 'INSERT OR ', 'DELETE OR '))}{events}"
        level = pick(rng, ("ROW", "ROW", "STATEMENT"))
        changed = chance(rng, 25) and level == "ROW" and " OR " not in when
        if_changed = f" WHEN (OLD.{pick(rng, ('k', 'v'))} IS DISTINCT FROM NEW.v)" if changed else ""
        table = TARGET if described == "partitioned" else pick(rng, tables)
        statements.append(
            f"CREATE TRIGGER note_{number} {when} ON {table} FOR EACH {level}{if_changed} EXECUTE FUNCTION note()"
        )
    return statements


_NOTE = (
    "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    f" INSERT INTO {LOG} VALUES ('COLUMNS', TG_OP, TG_NAME,"
    " CASE WHEN TG_LEVEL = 'ROW' THEN to_jsonb(coalesce(NEW, OLD)) - 'own' END);"
    " RETURN coalesce(NEW, OLD); END $$"
)
# Columns by name, because members of a tree may have them in another order, or a column of their own.
_WATCHED = (
    f"CREATE TABLE {LOG} (level text, event text, version text, content text)",
    "CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    " IF TG_LEVEL = 'ROW' THEN"
    f" IF TG_OP <> 'INSERT' THEN INSERT INTO {LOG} VALUES ('ROW', TG_OP, 'old', to_jsonb(OLD) - 'own'); END IF;"
    f" IF TG_OP <> 'DELETE' THEN INSERT INTO {LOG} VALUES ('ROW', TG_OP, 'new', to_jsonb(NEW) - 'own'); END IF;"
    " ELSE"
    f" IF TG_OP <> 'INSERT' THEN INSERT INTO {LOG}"
    " SELECT 'STATEMENT', TG_OP, 'old', to_jsonb(r) - 'own' FROM old_rows AS r; END IF;"
    f" IF TG_OP <> 'DELETE' THEN INSERT INTO {LOG}"
    " SELECT 'STATEMENT', TG_OP, 'new', to_jsonb(r) - 'own' FROM new_rows AS r; END IF;"
    " END IF; RETURN NULL; END $$",
    "DO $$ DECLARE each record; BEGIN"
    " FOR each IN SELECT oid::regclass AS name, relispartition FROM pg_class"
    " WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')"
    f" AND relname <> '{LOG}' ORDER BY oid LOOP"
    " EXECUTE format('CREATE TRIGGER inserted AFTER INSERT ON %s REFERENCING NEW TABLE AS new_rows"
    " FOR EACH STATEMENT EXECUTE FUNCTION watch()', each.name);"
    " EXECUTE format('CREATE TRIGGER updated AFTER UPDATE ON %s REFERENCING OLD TABLE AS old_rows"
    " NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION watch()', each.name);"
    " EXECUTE format('CREATE TRIGGER deleted AFTER DELETE ON %s REFERENCING OLD TABLE AS old_rows"
    " FOR EACH STATEMENT EXECUTE FUNCTION watch()', each.name);"
    " IF NOT each.relispartition THEN"  # partitions inherit it
    " EXECUTE format('CREATE TRIGGER each_row AFTER INSERT OR UPDATE OR DELETE ON %s"
    " FOR EACH ROW EXECUTE FUNCTION watch()', each.name); END IF;"
    " END LOOP; END $$",
)
