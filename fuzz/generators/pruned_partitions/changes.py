"""Changes of rows by conditions on keys, rows at bounds, and scrolled cursors."""

import random
from collections.abc import Callable, Iterator
from itertools import islice

from fuzz.generators.choices import Weighted, between, chance, pick
from fuzz.generators.pruned_partitions.conditions import Drawing, conditions
from fuzz.generators.pruned_partitions.keys import Key
from fuzz.generators.pruned_partitions.levels import Level
from fuzz.generators.pruned_partitions.moves import (
    extra,
    merge_following,
    merge_rows,
    other_keys,
    update_following,
)
from fuzz.generators.pruned_partitions.queries import rows, total, tree_of
from fuzz.generators.pruned_partitions.scene import DRIVER, ROWS, Scene, Tree
from oracles.model.case import Step

Action = Callable[[random.Random, Scene], tuple[Step, ...]]


def _step(sql: str, tag: str, *, ordered: bool = False, may_fail: bool = False) -> Step:
    return Step(sql, ordered=ordered, may_fail=may_fail, tags=(tag,))


def changed(rng: random.Random, scene: Scene) -> tuple[Step, ...]:
    """Return one change, rolled back in most cases. Some have triggers with transition tables, others no RETURNING."""
    drawing = Drawing(rng, scene)
    tree = tree_of(drawing)
    name, change = _CHANGES.pick(rng)
    sql = change(drawing, tree)
    # PostgreSQL 17.11: after MERGE inserts a row, the transition table of its updates has that row, or freed memory
    # (corpus/upstream/26b2282fb4a5.sql).
    watched = chance(rng, 30) and "THEN INSERT" not in sql
    silent = chance(rng, 75 if "following" in name else 40)
    if silent:  # so that the executor keeps its target from row to row
        sql = sql.partition(" RETURNING ")[0]
    steps = (
        *(map(Step, _triggers(tree)) if watched else ()),
        _step(sql, name),
        *((_step(_TRANSITIONS, "transitions"),) if watched else ()),
        *((_step(_CONTENTS.format(tree.name), "contents"),) if silent or chance(rng, 30) else ()),
    )
    return steps if not watched and chance(rng, 20) else (Step("BEGIN"), *steps, Step("ROLLBACK"))


_CONTENTS = "SELECT tableoid::regclass::text, count(*), sum(hashtextextended(a::text, 0)) FROM {} AS a GROUP BY 1"


def _triggers(tree: Tree) -> Iterator[str]:
    """Yield statements that create triggers, which store the rows of their transition tables."""
    yield "CREATE TABLE seen (event text, version text, content text)"
    yield (
        "CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF TG_OP <> 'INSERT' THEN INSERT INTO seen SELECT TG_OP, 'old', r::text FROM old_rows AS r; END IF;"
        " IF TG_OP <> 'DELETE' THEN INSERT INTO seen SELECT TG_OP, 'new', r::text FROM new_rows AS r; END IF;"
        " RETURN NULL; END $$"
    )
    old, new = "OLD TABLE AS old_rows", "NEW TABLE AS new_rows"
    for event, tables in (("INSERT", new), ("UPDATE", f"{old} {new}"), ("DELETE", old)):
        clause = f"AFTER {event} ON {tree.name} REFERENCING {tables} FOR EACH STATEMENT"
        yield f"CREATE TRIGGER see_{event.lower()} {clause} EXECUTE FUNCTION see()"


_TRANSITIONS = "SELECT event, version, count(*), sum(hashtextextended(content, 0)) FROM seen GROUP BY 1, 2"


def _update(drawing: Drawing, tree: Tree) -> str:
    where = conditions(drawing, tree, "a")
    return f"UPDATE {tree.name} AS a SET v = a.v + 1 WHERE {where} RETURNING a.id, a.v, a.tableoid::regclass::text"


def _rekeyed(drawing: Drawing, tree: Tree) -> str:
    """Return an UPDATE that moves rows to other partitions."""
    rng = drawing.rng
    one_key = not tree.level.accepts and chance(rng, 40)  # where all rows fit
    keys = _assigned(rng, pick(rng, tree.keys)) if one_key else other_keys(drawing, tree)
    where = conditions(drawing, tree, "a")
    return f"UPDATE {tree.name} AS a SET {keys} WHERE {where} RETURNING a.id, a.v, a.tableoid::regclass::text"


def _assigned(rng: random.Random, key: Key) -> str:
    """Return the assignment of a value near the bounds to the key's column."""
    kind = key.column.kind
    return f"{key.column.name} = {kind.type.literal(min(key.near(rng), kind.largest(key.column.domain)))}"


def _delete(drawing: Drawing, tree: Tree) -> str:
    return f"DELETE FROM {tree.name} AS a WHERE {conditions(drawing, tree, 'a')} RETURNING a.id, a.v"


def _unique(drawing: Drawing, tree: Tree) -> tuple[str, str]:
    """Return rows of the small table with different keys, and the condition that they match a row of the tree."""
    key = pick(drawing.rng, tree.keys)
    grouped = f"(SELECT {key.of('d.')} AS k, count(*) AS n FROM {DRIVER} AS d GROUP BY 1) AS s"
    return grouped, f"{key.of('a.')} = s.k{extra(drawing, tree, 50)}"


def _update_from(drawing: Drawing, tree: Tree) -> str:
    source, on = _unique(drawing, tree)
    return f"UPDATE {tree.name} AS a SET v = a.v + s.n FROM {source} WHERE {on} RETURNING a.id, a.v"


def _delete_using(drawing: Drawing, tree: Tree) -> str:
    source, on = _unique(drawing, tree)
    return f"DELETE FROM {tree.name} AS a USING {source} WHERE {on} RETURNING a.id, s.n"


def _merge(drawing: Drawing, tree: Tree) -> str:
    source, on = _unique(drawing, tree)
    matched = f"WHEN MATCHED AND a.v < {between(drawing.rng, 2, 9)} THEN UPDATE SET v = a.v + s.n"
    rest = pick(drawing.rng, ("WHEN MATCHED THEN DELETE", "WHEN MATCHED THEN DO NOTHING"))
    return f"MERGE INTO {tree.name} AS a USING {source} ON {on} {matched} {rest}"


def _routed(drawing: Drawing, tree: Tree) -> str:
    """Return an INSERT of rows that fit, in an order that repeats or changes the partition."""
    names = drawing.scene.names
    order = pick(drawing.rng, ("id", f"{drawing.scene.columns[0].name}, id"))
    rest = f"FROM {ROWS} WHERE {tree.rows} ORDER BY {order} LIMIT {between(drawing.rng, 5, 60)}"
    return f"INSERT INTO {tree.name} ({names}) SELECT {names} {rest} RETURNING id, tableoid::regclass::text"


_CHANGES = Weighted(
    (15, ("update", _update)), (20, ("rekeyed", _rekeyed)), (10, ("delete", _delete)),
    (10, ("update_from", _update_from)), (8, ("delete_using", _delete_using)), (8, ("merge", _merge)),
    (18, ("merge_rows", merge_rows)), (12, ("routed", _routed)), (40, ("merge_following", merge_following)),
    (6, ("update_following", update_following)),
)  # fmt: skip


def moved(rng: random.Random, scene: Scene) -> tuple[Step, ...]:
    """Return changes of single rows that may fit no partition."""
    tree = pick(rng, scene.trees)
    below = [level.name for level in islice(tree.level.levels, 1, None)]
    member = pick(rng, [*(leaf.name for leaf in tree.level.leaves), *below])
    key, row = pick(rng, tree.keys), between(rng, 1, scene.rows)
    fitting = f"(SELECT min(id) FROM {tree.name} WHERE id >= {row})"
    update = f"UPDATE {tree.name} SET {_assigned(rng, key)} WHERE id = {fitting}"
    source = f"({scene.names}) SELECT {scene.names} FROM {ROWS} WHERE id = {row}"
    returned = "RETURNING id, tableoid::regclass::text"
    return (
        _step(f"{update} {returned}", "moved", may_fail=True),
        _step(f"INSERT INTO {member} {source} {returned}", "constraint", may_fail=True),
        _step(f"INSERT INTO {tree.name} {source} {returned}", "fits", may_fail=True),
        *(_unfit(rng, scene) if chance(rng, 50) else ()),
    )


def _unfit(rng: random.Random, scene: Scene) -> tuple[Step, ...]:
    """Return an INSERT whose error message cuts off a long key, or one by a role that may not read all keys."""
    trees = [tree for tree in scene.trees if tree.level.accepts]
    if not trees:
        return ()
    long = [
        (tree, key.column.name, _LONG[name])
        for tree in trees
        for key in tree.level.keys
        if (name := key.column.kind.type.name) in _LONG
    ]
    if long and chance(rng, 60):
        return _long_key(rng, scene, *pick(rng, long))
    return _without_privileges(rng, scene, pick(rng, trees))


_LONG = {"text": "repeat('z', 39) || repeat('\u00fc', 20)", "numeric": "1e99"}  # their text has more than 64 bytes


def _long_key(rng: random.Random, scene: Scene, tree: Tree, name: str, value: str) -> tuple[Step, ...]:
    names = ["id", *(column.name for column in scene.columns)]
    values = ", ".join(value if each == name else each for each in names)
    rows = f"SELECT {values} FROM {ROWS} WHERE id = {between(rng, 1, scene.rows)}"
    return (_step(f"INSERT INTO {tree.name} ({', '.join(names)}) {rows}", "long_key", may_fail=True),)


def _without_privileges(rng: random.Random, scene: Scene, tree: Tree) -> tuple[Step, ...]:
    """Return an INSERT of a row that fits nowhere, by a role that may read some keys, unless it is a superuser."""
    names = sorted({key.column.name for key in tree.level.keys})
    readable = names if chance(rng, 50) else names[1:]
    grant = [f"GRANT SELECT ({', '.join(readable)}) ON {tree.name} TO CURRENT_USER"] if readable else []
    row = f"SELECT {scene.names} FROM {ROWS} WHERE coalesce(NOT {tree.rows}, true) ORDER BY id LIMIT 1"
    return (
        Step("BEGIN"),
        *map(Step, (f"REVOKE SELECT ON {tree.name} FROM CURRENT_USER", *grant)),
        _step(f"INSERT INTO {tree.name} ({scene.names}) {row}", "unprivileged", may_fail=True),
        Step("ROLLBACK"),
    )


def excluded_row(rng: random.Random, scene: Scene) -> Step:
    """Return an UPDATE of some keys to those of one row, which may fit no partition."""
    tree = pick(rng, scene.trees)
    keys = ", ".join(column.name for column in scene.columns)
    row = f"SELECT {keys} FROM {ROWS} WHERE id = {between(rng, 1, scene.rows)}"
    sql = f"UPDATE {tree.name} SET ({keys}) = ({row}) WHERE id % 50 = {rng.randrange(50)}"
    return _step(f"{sql} RETURNING id, tableoid::regclass::text", "excluded", may_fail=True)


def scrolled(rng: random.Random, scene: Scene) -> tuple[Step, ...]:
    """Return a cursor that moves back and forth. Without a total order, each step reads all rows or none."""
    drawing = Drawing(rng, scene)
    select = rows(drawing)
    ordered = chance(rng, 65)
    sql = total(drawing, select) if ordered else select.sql
    moves = [_MOVES.pick(rng).format(between(rng, 1, 12)) for _ in range(between(rng, 3, 7))]
    if not ordered:
        moves = ["FORWARD ALL", "BACKWARD ALL", "FORWARD ALL"][: between(rng, 2, 3)]
    return (
        Step("BEGIN"),
        _step(f"DECLARE scrolled SCROLL CURSOR FOR {sql}", "scrolled"),
        *(_step(f"FETCH {move} FROM scrolled", "fetched", ordered=ordered) for move in moves),
        Step("CLOSE scrolled"),
        Step("COMMIT"),
    )


_MOVES = Weighted(
    (25, "FORWARD {}"), (25, "BACKWARD {}"), (15, "ABSOLUTE {}"), (8, "ABSOLUTE -{}"), (8, "RELATIVE -{}"),
    (6, "LAST"), (5, "FIRST"), (4, "FORWARD ALL"), (4, "BACKWARD ALL"),
)  # fmt: skip


def refused(rng: random.Random, scene: Scene) -> tuple[Step, ...]:
    """Return a new partition that may overlap others, or exclude rows of its own or of the default partition."""
    level = pick(rng, list(pick(rng, scene.trees).level.levels))
    bound = pick(rng, [_random_bound(rng, level), _random_bound(rng, level), pick(rng, level.parts).piece.bound])
    create = f"CREATE TABLE added PARTITION OF {level.name} {bound}"
    steps = [_step(create, "added", may_fail=True)]
    if chance(rng, 50):
        rows = f"INSERT INTO added SELECT * FROM {ROWS} WHERE id % {between(rng, 2, 9)} = 0"
        attach = f"ALTER TABLE {level.name} ATTACH PARTITION added {bound}"
        steps = [Step(f"CREATE TABLE added (LIKE {ROWS})"), Step(rows), _step(attach, "attached", may_fail=True)]
    return (*steps, Step("DROP TABLE IF EXISTS added"))


def _random_bound(rng: random.Random, level: Level) -> str:
    if level.method == "HASH":
        modulus = between(rng, 1, 12)
        return f"FOR VALUES WITH (MODULUS {modulus}, REMAINDER {rng.randrange(modulus + 1)})"
    low, high = (", ".join(key.kind.type.literal(key.near(rng)) for key in level.keys) for _ in range(2))
    if level.method == "RANGE" and chance(rng, 50):
        low = ", ".join("MINVALUE" for _ in level.keys)
    if level.method == "LIST":
        return f"FOR VALUES IN ({pick(rng, (low, f'{low}, {high}', 'NULL'))})"
    return f"FOR VALUES FROM ({low}) TO ({high})"


def hashed(rng: random.Random, scene: Scene) -> tuple[Step, ...]:
    """Return calls of the function in constraints of hash partitions, with arrays of keys; rows that do not fit else.

    Some arrays are NULL, of another type, or too long.
    """
    levels = [level for tree in scene.trees for level in tree.level.levels if level.method == "HASH"]
    if not levels:
        return refused(rng, scene)
    level = pick(rng, levels)
    modulus, array = between(rng, 1, 6), f"ARRAY[{', '.join(key.of('') for key in level.keys)}]"
    suits = len({key.kind.type.name for key in level.keys}) == 1 and all(key.kind.arrays for key in level.keys)
    call = f"satisfies_hash_partition('{level.name}'::regclass, {modulus}, {rng.randrange(modulus)}, VARIADIC {{}})"
    given = (
        array,
        f"CASE WHEN id % 5 <> 0 THEN {array} END",
        f"array_append({array}, NULL)",
        "ARRAY[1.5]",
        "NULL::oid[]",
    )
    return tuple(
        _step(
            f"SELECT count(*) FROM {ROWS} WHERE {call.format(each)}", "hashed", may_fail=not suits or each in given[2:4]
        )
        for each in given
    )


CHANGES: Weighted[Action] = Weighted((54, changed), (12, moved), (22, scrolled), (7, refused), (5, hashed))
