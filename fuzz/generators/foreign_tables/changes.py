"""Changes of foreign tables and trees: sent as one statement, or row by row; and other statements about them.

No statement reads the relation that it changes, so the order of rows determines no result. Joins of a change are by the
unique key, so each row changes once. Only moves assign a, because PostgreSQL checks no bound when it updates a row of a
foreign partition.
"""

import random
from collections.abc import Callable, Sequence

from fuzz.generators import loopback
from fuzz.generators.choices import Weighted, between, chance, pick, some
from fuzz.generators.foreign_tables.conditions import condition
from fuzz.generators.foreign_tables.ctes import by_cte
from fuzz.generators.foreign_tables.nested import nested_change
from fuzz.generators.foreign_tables.queries import ordered, query
from fuzz.generators.foreign_tables.refusals import refused
from fuzz.generators.foreign_tables.scene import (
    COLUMNS,
    FRESH,
    NEAR,
    Relation,
    Scene,
    Sort,
    analyzed,
    draw_target,
    remote_of,
    values,
)
from fuzz.generators.sql.digest import digest
from fuzz.generators.sql.predicates import where
from oracles.model.case import Kind, Step

_SETS = (
    "c = c + 1", "b = upper(b)", "d = d + 1", "c = k / 2, d = NULL", "e = ARRAY[a, k]", "c = DEFAULT",
    "b = CASE WHEN a > 3 THEN 'z' ELSE b END", "b = 'w' || k % 5", "e[1] = a", "d = NULL",
)  # fmt: skip
_SETS_FROM = ("c = y.c + 1", "b = y.b", "b = x.b || y.b", "e = y.e", "d = y.d, c = x.c + y.k")
_RETURNED = (
    "{0}.k, {0}.c", "{0}.*", "{0}.k, {0}.tableoid::regclass", "{0}", "{0}.k, upper({0}.b) AS u, {0}.e[1]", "{0}.k + 1",
    "1",
)  # fmt: skip
_RETURNED_ROWS = (*_RETURNED, "{0}.k, {0}.ctid IS NULL")  # of an UPDATE or DELETE; remote views lack ctid
_RETURNED_FROM = (
    "x.k, y.b",
    "x, y.k",
    "y, x.c",
    "x.k, y.*",
    "y.k",
    "x.tableoid::regclass, x.*, y.a",
    "y.k, y.k + 1",
    "y.k, x.ctid IS NULL",
)
_CONDITIONS = Weighted((50, 1), (10, 0), (40, 2))

_ENDS = Weighted((75, "ROLLBACK"), (25, "COMMIT"))

_Change = Callable[[random.Random, Scene, int], str]


def _returned(rng: random.Random, forms: Sequence[str] = _RETURNED) -> str:
    return f" RETURNING {pick(rng, forms).format('x')}" if chance(rng, 50) else ""


def _where(rng: random.Random, scene: Scene, alias: str = "x") -> str:
    return where([condition(rng, scene, alias) for _ in range(_CONDITIONS.pick(rng))])


def _inserted(rng: random.Random, scene: Scene, number: int) -> str:
    """Return an INSERT of new rows, one or many, or of keys of which some exist, with ON CONFLICT DO NOTHING."""
    target = pick(rng, scene.foreign if chance(rng, 70) else scene.relations)
    rows, key = pick(rng, (1, between(rng, 2, 12), between(rng, 2, 120))), f"{FRESH * number} + g"
    conflict = ""
    if target.keyed and chance(rng, 40):
        key, conflict = f"g * {between(rng, 1, 3)}", " ON CONFLICT DO NOTHING"
    elif target.sort is Sort.TREE and chance(rng, 30):
        conflict = " ON CONFLICT DO NOTHING"
    returned = _returned(rng)
    if rows == 1 and not conflict and chance(rng, 50):
        default = "k" if chance(rng, 20) else "k, a, b"
        given = f"{FRESH * number}" if default == "k" else f"{FRESH * number}, {rng.randrange(8)}, 'v1'"
        return f"INSERT INTO {target.name} AS x ({default}) VALUES ({given}){returned}"
    rows_of = f"SELECT {values(rng, key, scene.repeat)} FROM generate_series(1, {rows}) AS g"
    return f"INSERT INTO {target.name} AS x ({COLUMNS}) {rows_of}{conflict}{returned}"


def _copied(rng: random.Random, scene: Scene, number: int) -> str:
    """Return an INSERT of rows of another relation."""
    target = pick(rng, scene.relations)
    source = pick(rng, [each for each in scene.readable if each.name != target.name])
    rows = f"SELECT k + {FRESH * number}, a, b, c, d, e FROM {source.name} AS y"
    first = f" {'AND' if (conditions := _where(rng, scene, 'y')) else 'WHERE'} k <= {scene.keys}"
    return f"INSERT INTO {target.name} AS x ({COLUMNS}) {rows}{conditions}{first}{_returned(rng)}"


def _updated(rng: random.Random, scene: Scene, number: int) -> str:
    target = draw_target(rng, scene)
    return f"UPDATE {target.name} AS x SET {pick(rng, _SETS)}{_where(rng, scene)}{_returned(rng, _RETURNED_ROWS)}"


def _deleted(rng: random.Random, scene: Scene, number: int) -> str:
    return f"DELETE FROM {draw_target(rng, scene).name} AS x{_where(rng, scene)}{_returned(rng, _RETURNED_ROWS)}"


def _pair(rng: random.Random, scene: Scene) -> tuple[Relation, Relation]:
    """Return a target and a source, mostly foreign tables of one server, so that the whole change is sent."""
    target = draw_target(rng, scene)
    same = [each for each in scene.foreign if each.server == target.server and each.name != target.name]
    others = [each for each in scene.readable if each.name != target.name]
    return target, pick(rng, same if same and chance(rng, 70) else others)


def _source(rng: random.Random, scene: Scene, target: Relation, source: Relation) -> tuple[str, str]:
    """Return a FROM item `y`, sometimes joined with another relation, and the condition of the join with `x`."""
    others = [each for each in scene.readable if each.name not in (target.name, source.name)]
    if others and chance(rng, 25):
        join = pick(rng, ("JOIN", "LEFT JOIN"))
        return f"{source.name} AS y {join} {pick(rng, others).name} AS z ON z.k = y.k", "x.k = y.k"
    return f"{source.name} AS y", pick(rng, ("x.k = y.k", "x.k = y.k + 1", "x.k = y.k AND x.a = y.a"))


def _updated_from(rng: random.Random, scene: Scene, number: int) -> str:
    target, source = _pair(rng, scene)
    item, join = _source(rng, scene, target, source)
    conditions = where([join, condition(rng, scene, pick(rng, ("x", "y")))])
    if chance(rng, 15):
        change = pick(rng, ("b = (SELECT y.b", "(c, d) = (SELECT y.c, y.d"))
        column = f"{change} FROM {source.name} AS y WHERE y.k = x.k)"
        return f"UPDATE {target.name} AS x SET {column}{_where(rng, scene)}{_returned(rng)}"
    changed = pick(rng, _SETS_FROM)
    return f"UPDATE {target.name} AS x SET {changed} FROM {item}{conditions}{_returned(rng, _RETURNED_FROM)}"


def _deleted_using(rng: random.Random, scene: Scene, number: int) -> str:
    target, source = _pair(rng, scene)
    if chance(rng, 25):
        semi = f"{pick(rng, ('EXISTS', 'NOT EXISTS'))} (SELECT FROM {source.name} AS y WHERE y.k = x.k AND y.a > 3)"
        return f"DELETE FROM {target.name} AS x WHERE {semi} AND {condition(rng, scene, 'x')}{_returned(rng)}"
    item, join = _source(rng, scene, target, source)
    semi = f"EXISTS (SELECT FROM {source.name} AS s WHERE s.k = x.k AND s.a < 6)" if chance(rng, 15) else "true"
    conditions = where([join, semi, condition(rng, scene, pick(rng, ("x", "y")))])
    return f"DELETE FROM {target.name} AS x USING {item}{conditions}{_returned(rng, _RETURNED_FROM)}"


def _moved(rng: random.Random, scene: Scene, number: int) -> str:
    """Return an UPDATE that moves rows of a local partition, mostly to a foreign one.

    Rows cannot move to a foreign partition that the statement scans.
    """
    if not scene.trees:
        return _updated(rng, scene, number)
    tree = pick(rng, scene.trees)
    bound = pick(rng, tree.local)
    to = pick(rng, (2, 3, 4, 5, 6, 0))
    join = f" FROM {NEAR} AS y" if chance(rng, 30) else ""
    conditions = [f"x.a IN ({bound})", condition(rng, scene, "x"), *(["y.k = x.k"] if join else [])]
    returned = _returned(rng, _RETURNED_FROM if join else _RETURNED)
    return f"UPDATE {tree.name} AS x SET a = {to}{join}{where(conditions)}{returned}"


def _merged(rng: random.Random, scene: Scene, number: int) -> str:
    """Return a MERGE into the local table; foreign tables cannot be its target."""
    source = pick(rng, [each for each in scene.readable if each.name != NEAR])
    change = pick(rng, ("UPDATE SET c = x.c + 1, b = y.b", "DELETE", "DO NOTHING"))
    more = f" AND {condition(rng, scene, 'y')}" if chance(rng, 50) else ""
    insert = f"WHEN NOT MATCHED THEN INSERT ({COLUMNS}) VALUES (y.k, y.a, y.b, y.c, y.d, y.e)"
    return f"MERGE INTO {NEAR} AS x USING {source.name} AS y ON y.k = x.k WHEN MATCHED{more} THEN {change} {insert}"


def _nested(rng: random.Random, scene: Scene, number: int) -> str:
    return nested_change(rng, scene, draw_target(rng, scene))


_CHANGES: Weighted[tuple[str, _Change]] = Weighted(
    (20, ("updated", _updated)),
    (15, ("inserted", _inserted)),
    (15, ("deleted", _deleted)),
    (16, ("updated_from", _updated_from)),
    (12, ("deleted_using", _deleted_using)),
    (10, ("nested_change", _nested)),
    (8, ("copied", _copied)),
    (7, ("moved", _moved)),
    (4, ("merged", _merged)),
    (9, ("by_cte", by_cte)),
)


def _change(rng: random.Random, scene: Scene, number: int) -> Step:
    tag, make = _CHANGES.pick(rng)
    return Step(make(rng, scene, number), tags=(tag,))


def _content(rng: random.Random, scene: Scene) -> Step:
    columns = f"{COLUMNS}, tableoid::regclass"
    return Step(digest(f"SELECT {columns} FROM {pick(rng, scene.relations).name}"), Kind.QUERY, tags=("content",))


def changes(rng: random.Random, scene: Scene, number: int) -> list[Step]:
    """Return one to three changes and a query of the content, in a transaction or not."""
    steps = [_change(rng, scene, number), _content(rng, scene)]
    if chance(rng, 15):
        return steps
    if chance(rng, 30):
        undone = _change(rng, scene, number + 1)
        steps += [Step("SAVEPOINT s"), undone, Step("ROLLBACK TO SAVEPOINT s"), _content(rng, scene)]
        steps += [_change(rng, scene, number + 2), query(rng, scene)]
    return [Step("BEGIN"), *steps, Step(_ENDS.pick(rng))]


def _truncated(rng: random.Random, scene: Scene, number: int) -> list[Step]:
    relations = some(rng, scene.changeable, between(rng, 1, 2))
    filled = relations[0].name
    names = ", ".join(relation.name for relation in relations)
    rows = f"SELECT {values(rng, f'{FRESH * number} + g', scene.repeat)} FROM generate_series(1, 9) AS g"
    option = pick(rng, ("", " RESTART IDENTITY", " CASCADE"))
    return [
        Step("BEGIN"),
        Step(f"TRUNCATE {names}{option}", tags=("truncated",)),
        Step(f"INSERT INTO {filled} ({COLUMNS}) {rows}"),
        _content(rng, scene),
        Step(_ENDS.pick(rng)),
    ]


def _imported(rng: random.Random, scene: Scene, number: int) -> list[Step]:
    """Return steps that import remote tables into a schema of their own, and roll back."""
    relation = pick(rng, scene.foreign)
    server, there = relation.server, remote_of(relation.name)
    names = ", ".join(sorted({there, *(remote_of(each.name) for each in scene.foreign if chance(rng, 40))}))
    options = [f"{name} '{pick(rng, ('true', 'false'))}'" for name in _IMPORT if chance(rng, 40)]
    given = f" OPTIONS ({', '.join(options)})" if options else ""
    limit = f"LIMIT TO ({names})" if chance(rng, 80) else f"EXCEPT ({', '.join(map(_name, scene.relations))})"
    return [
        Step("BEGIN"),
        Step("CREATE SCHEMA imported"),
        Step(f"IMPORT FOREIGN SCHEMA duel {limit} FROM SERVER {server} INTO imported{given}", tags=("imported",)),
        Step(digest(f"SELECT * FROM imported.{there}"), Kind.QUERY),
        Step("ROLLBACK"),
    ]


_IMPORT = ("import_default", "import_collate", "import_generated", "import_not_null")


def _name(relation: Relation) -> str:
    return relation.name


def _scrolled(rng: random.Random, scene: Scene, number: int) -> list[Step]:
    """Return steps that read a cursor, with a change of a relation between them."""
    scroll = chance(rng, 50)
    fetches = ["FETCH 4 FROM c", "FETCH 30 FROM c"]
    if scroll:
        fetches += ["FETCH BACKWARD 7 FROM c", "FETCH FIRST FROM c", "FETCH 20 FROM c"]
    steps = [Step(fetch, ordered=True) for fetch in fetches]
    if chance(rng, 60):
        steps.insert(1, _change(rng, scene, number))
    declared = f"DECLARE c {'SCROLL ' if scroll else ''}CURSOR FOR {ordered(rng, scene)}"
    begun = [Step("SAVEPOINT s"), Step(declared), Step("RELEASE s")] if chance(rng, 30) else [Step(declared)]
    return [
        Step("BEGIN", tags=("cursor",)),
        *begun,
        *steps,
        Step("CLOSE c"),
        Step(_ENDS.pick(rng)),
    ]


def _prepared(rng: random.Random, scene: Scene, number: int) -> list[Step]:
    """Return a prepared statement, executed until its plan is generic, with the options changed once."""
    target, source = _pair(rng, scene)
    form = pick(
        rng,
        (
            "UPDATE {0} AS x SET c = c + $1 WHERE k < $2 RETURNING k, c",
            "DELETE FROM {0} AS x WHERE k = $1 * $2 RETURNING x.*",
            "UPDATE {0} AS x SET b = y.b FROM {1} AS y WHERE y.k = x.k AND y.a = $1 AND x.k <> $2 RETURNING x.k, y.k",
            "SELECT a, count(*), sum(k + $1) FROM {0} WHERE k > $2 GROUP BY a",
            "SELECT x.k, y.b FROM {0} AS x LEFT JOIN {1} AS y ON x.k = y.k AND y.a < $1 WHERE x.k < $2 * 9",
            "INSERT INTO {0} AS x (k, a, b) SELECT {2} + $1 * 1000 + $2, 1, 'v1' RETURNING k",
        ),
    )
    made = form.format(target.name, source.name, FRESH * number + 50_000)
    runs = [Step(f"EXECUTE p ({between(rng, 0, 7)}, {100 * turn + between(rng, 1, 99)})") for turn in range(7)]
    if chance(rng, 40):
        runs.insert(between(rng, 1, 6), _option(rng, scene))
    return [Step(f"PREPARE p (int, int) AS {made}", tags=("prepared",)), *runs, Step("DEALLOCATE p")]


def _option(rng: random.Random, scene: Scene) -> Step:
    relation = pick(rng, [each for each in scene.relations if each.options])
    option, value = pick(
        rng,
        (
            *(("use_remote_estimate", "true"), ("use_remote_estimate", "false"), ("fetch_size", "9")),
            *(("batch_size", "1"), ("batch_size", "20"), ("async_capable", "true"), ("async_capable", "false")),
        ),
    )
    return Step(loopback.table_option(pick(rng, relation.options), option, value), tags=("option",))


def _other_options(rng: random.Random, scene: Scene, number: int) -> list[Step]:
    """Return a changed option of a table or a server; the latter needs a new connection."""
    if chance(rng, 50):
        return [_option(rng, scene)]
    server = pick(rng, (loopback.SERVER, loopback.SECOND))
    option = pick(
        rng, (("keep_connections", "off"), ("fetch_size", "11"), ("batch_size", "30"), ("use_remote_estimate", "true"))
    )
    return [Step(loopback.server_option(*option, server=server), tags=("server option",))]


def _explained(rng: random.Random, scene: Scene, number: int) -> list[Step]:
    """Return EXPLAIN of a change or a query. A block drops its output, which differs between arms."""
    sql = _change(rng, scene, number).sql if chance(rng, 60) else ordered(rng, scene)
    options = pick(
        rng, ("VERBOSE", "COSTS OFF", "VERBOSE, FORMAT JSON", "ANALYZE, TIMING OFF", "ANALYZE, VERBOSE, TIMING OFF")
    )
    return [Step(f"DO $$ BEGIN EXECUTE $e$EXPLAIN ({options}) {sql}$e$; END $$", tags=("explained",))]


def _analyzed(rng: random.Random, scene: Scene, number: int) -> list[Step]:
    return [analyzed(pick(rng, scene.relations[1:]))]


def _checked(rng: random.Random, scene: Scene, number: int) -> list[Step]:
    """Return changes through a view with a check option, which all rows meet."""
    target = draw_target(rng, scene)
    rows = f"SELECT {values(rng, f'{FRESH * number} + g', scene.repeat)} FROM generate_series(1, 5) AS g"
    return [
        Step(f"CREATE VIEW checked AS SELECT * FROM {target.name} WHERE k > 0 WITH CHECK OPTION", tags=("checked",)),
        Step(f"INSERT INTO checked AS x ({COLUMNS}) {rows}{_returned(rng, ('x.k, x.b', 'x.c'))}"),
        Step(f"UPDATE checked AS x SET {pick(rng, _SETS)}{_where(rng, scene)}{_returned(rng, ('x.k, x.b', 'x.c'))}"),
        Step("DROP VIEW checked"),
    ]


_ACTIONS = Weighted(
    (50, changes),
    (8, _truncated),
    (5, _imported),
    (8, _scrolled),
    (8, _prepared),
    (4, _other_options),
    (9, _explained),
    (3, _analyzed),
    (5, _checked),
    (10, refused),
)


def action(rng: random.Random, scene: Scene, number: int) -> list[Step]:
    """Return the steps of a change or another action. New keys are multiples of `number` and of the two next ones."""
    return list(_ACTIONS.pick(rng)(rng, scene, number))
