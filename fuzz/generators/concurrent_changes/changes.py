"""Turns of `concurrent_changes`: a statement of the other session, one of this session, and a query of all rows.

A row of the target has at most one partner in each source, or equal ones, and no statement reads the target twice. So
the rows do not depend on the plan. PostgreSQL evaluates conditions of a changed row again with the partners that it had
(src/backend/executor/README, "EvalPlanQual").
"""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from fuzz.generators.choices import Weighted, between, chance, pick, some
from fuzz.generators.concurrent_changes.catalog import catalog_turn
from fuzz.generators.concurrent_changes.detachment import detachment_turn
from fuzz.generators.concurrent_changes.scene import (
    ALSO,
    COLUMNS,
    GROUPS,
    INSTEAD,
    LOG,
    MOVED,
    SOURCES,
    TARGET,
    VIEW,
    Scene,
)
from fuzz.generators.loopback import PENDING
from fuzz.generators.sql.predicates import where
from oracles.model.case import Kind, Step

_FRESH: Final = 100_000  # keys of inserted rows, times the number of the turn
_REPEATED: Final = "repeated"
_OWN: Final = 50_000  # added to keys that the other session does not insert
_CONDITIONS: Final = Weighted(
    (35, "{0}.b < {1}"), (30, "{0}.k % {2} = {3}"), (20, "{0}.k <= {4}"), (15, "{0}.a <> {3}")
)
_JOINED: Final = ("{0}.v < 15", "{0}.w <> 'w1'", "{0}.v <> x.b", "{0}.v + x.b > 9")
_CORRELATED: Final = (
    "x.b <= (SELECT max(v) FROM {0} AS q WHERE q.k <= x.k)",
    "EXISTS (SELECT FROM {0} AS q WHERE q.k = x.k AND q.v <> x.b)",
    "x.k IN (SELECT k FROM {0} AS q WHERE q.v < 15)",
    "x.b < (SELECT count(*) FROM {0})",
    "(x.k > 5 OR x.b IN (SELECT v FROM {0}))",
)
_SETS: Final = (
    "b = x.b + 1",
    "b = x.b + 1, c = x.c || '!'",
    "c = x.k || ' ' || x.b",
    "b = CASE WHEN x.b > 9 THEN 0 ELSE x.b + 5 END",
)
_RETURNED: Final = ("x.k, x.b, x.c", "x.k, x.a, x.b", "x.k", "x")


@dataclass(frozen=True, slots=True)
class _Drawing:
    rng: random.Random
    scene: Scene
    number: int  # of the turn
    deletes: bool = False  # the other session deletes rows
    moves: bool = True  # the statement may move rows to other partitions

    def condition(self, alias: str) -> str:
        """Return a condition on the columns of the target."""
        rng, divisor = self.rng, between(self.rng, 2, 5)
        values = (between(rng, 1, 20), divisor, rng.randrange(divisor), between(rng, 1, self.scene.rows))
        return _CONDITIONS.pick(rng).format(alias, *values)

    def conditions(self) -> list[str]:
        """Return conditions on the row x of the target."""
        found = [self.condition("x") for _ in range(between(self.rng, 0, 2))]
        if chance(self.rng, 25):
            found.append(pick(self.rng, _CORRELATED).format(self.source()))
        return found

    def source(self) -> str:
        """Return a relation whose rows have unique keys."""
        return pick(self.rng, self.scene.sources)

    def target(self) -> str:
        """Return the target, or a view of it."""
        return pick(self.rng, (VIEW, INSTEAD)) if chance(self.rng, 20) else TARGET

    def returned(self) -> str:
        """Return a RETURNING clause, or ""."""
        return f" RETURNING {pick(self.rng, _RETURNED)}" if chance(self.rng, 70) else ""

    def assignment(self) -> str:
        """Return assignments to columns of x. Some move rows to other partitions."""
        if self.moves and chance(self.rng, 60 if self.scene.shape == "LIST (a)" else 10):
            return f"a = (x.a + {between(self.rng, 1, GROUPS - 1)}) % {GROUPS}, b = x.b + 1"
        return pick(self.rng, _SETS)


def draw_turn(rng: random.Random, scene: Scene, number: int) -> list[Step]:
    """Return the steps of a turn, the `number`th of its case."""
    return _TURNS.pick(rng)(rng, scene, number)


def _turn(rng: random.Random, scene: Scene, number: int) -> list[Step]:
    """Return a turn in which the other session acts, and then the statement."""
    tag, make = _STATEMENTS.pick(rng)
    steady = tag != _REPEATED and chance(rng, 12)  # a snapshot that stays, under which a changed row is an error
    others = _ONE_ERROR if steady else _OTHERS
    # A repeated row is an error of its own. The plan would determine which of two errors is the first.
    other = _elsewhere(_Drawing(rng, scene, number), _NO_ERROR if tag == _REPEATED else others)
    moves = "(" in scene.shape and bool(re.search(r"SET [ak] =", other))  # to other partitions: an error
    own = make(_Drawing(rng, scene, number, deletes="DELETE" in other))
    level = " ISOLATION LEVEL REPEATABLE READ" if steady else ""
    step = Step(_explained(own) if chance(rng, 12) else own, may_fail=steady or moves or tag == _REPEATED, tags=(tag,))
    return _between_settings(rng, {PENDING: other}, step, f"BEGIN{level}" if steady or chance(rng, 40) else "")


def _changed_by_both(rng: random.Random, scene: Scene, number: int) -> list[Step]:
    """Return a turn in which the trigger of the statement changes rows, too, after the other session.

    It is an error if the statement changes one of them. Only statements with the same message for all rows are drawn.
    """
    drawing = _Drawing(rng, scene, number, moves=False)
    other = _elsewhere(drawing, _ONE_ERROR)
    also = f"UPDATE {TARGET} SET b = b + 1 WHERE {drawing.condition(TARGET)}"
    # Children have no triggers of rows, whose message about deleted rows is another one.
    makes = _UPDATES if scene.shape == "inherited" else _CHANGES
    step = Step(makes.pick(rng)(drawing), may_fail=True, tags=("changed_by_both",))
    return _between_settings(rng, {PENDING: other, ALSO: also}, step, "BEGIN" if chance(rng, 40) else "")


def _between_settings(rng: random.Random, settings: dict[str, str], own: Step, begin: str) -> list[Step]:
    """Return the steps of a turn: settings, the statement, in a transaction if there is a `begin`, and all rows."""
    end = pick(rng, ("COMMIT", "ROLLBACK"))
    return [
        *(Step(f"SET {name} = $s${value}$s$") for name, value in settings.items()),
        *([Step(begin)] if begin else []),
        own,
        *([Step(end)] if begin else []),
        *(Step(f"SET {name} = ''") for name in settings),
        Step(f"SELECT {COLUMNS}, tableoid::regclass FROM {TARGET} ORDER BY k, a, b, tableoid", Kind.QUERY),
        Step(f"SELECT op, content FROM {LOG}", Kind.QUERY),
    ]


def _explained(sql: str) -> str:
    """Return a block that executes the statement with counters of its plan, which differ between arms."""
    return f"DO $$ BEGIN EXECUTE $e$EXPLAIN (ANALYZE, TIMING OFF) {sql}$e$; END $$"


def _elsewhere(drawing: _Drawing, forms: Weighted[str]) -> str:
    """Return the statements of the other session."""
    rng, condition = drawing.rng, drawing.condition("t")
    changed = f"UPDATE t SET b = b + {between(rng, 1, 9)} WHERE {condition}"
    return forms.pick(rng).format(
        changed=changed, condition=condition, again=drawing.condition("t"), fresh=_FRESH * drawing.number,
        moved=MOVED * drawing.number, groups=GROUPS,
    )  # fmt: skip


_OTHERS: Final = Weighted(
    (30, "{changed}"),
    (15, "DELETE FROM t WHERE {condition}"),
    (10, "{changed}; UPDATE t SET c = c || '?' WHERE {again}"),
    (8, "{changed}; DELETE FROM t WHERE {again}"),
    (14, "UPDATE t SET k = k + {moved} WHERE {condition}"),
    (8, "UPDATE t SET a = (a + 1) % {groups} WHERE {condition}"),
    (8, "INSERT INTO t (k, a, b, c) SELECT {fresh} + g, g % {groups}, g, 'e' || g FROM generate_series(1, 8) AS g"),
    (5, "BEGIN; {changed}; ROLLBACK"),
    (5, "DELETE FROM t WHERE {condition}; INSERT INTO t (k, a, b, c) SELECT k, k % {groups}, v, 'n' FROM s1"
        " WHERE NOT EXISTS (SELECT FROM t WHERE t.k = s1.k)"),
    (3, "BEGIN; SELECT FROM t WHERE {condition} FOR UPDATE; COMMIT"),
)  # fmt: skip


# Under a snapshot that stays, the message tells an update from a deletion, and the plan determines the first row.
_ONE_ERROR: Final = Weighted((60, "{changed}"), (40, "DELETE FROM t WHERE {condition}"))
_NO_ERROR: Final = Weighted((50, ""), (50, "{changed}"))


def _from(drawing: _Drawing) -> tuple[str, list[str]]:
    """Return relations to join with x, and the conditions: each row of x has at most one partner, or equal ones."""
    rng = drawing.rng
    form = pick(rng, ("one", "one", "two", "two", "grouped", "limited", "doubled"))
    if form == "one":
        return f"{drawing.source()} AS y", ["y.k = x.k", pick(rng, _JOINED).format("y")]
    if form == "two":
        foreign = [each for each in drawing.scene.sources if each not in SOURCES]  # their join is sent as one
        first, second = some(rng, foreign if foreign and chance(rng, 60) else drawing.scene.sources, 2)
        kind = pick(rng, ("JOIN", "LEFT JOIN"))
        return f"{first} AS y {kind} {second} AS z ON z.k = y.k", ["y.k = x.k", pick(rng, _JOINED).format("y")]
    source = drawing.source()
    if form == "doubled":
        return f"{_doubled(source)} AS y", ["y.k = x.k", pick(rng, _JOINED).format("y")]
    if form == "grouped":
        return f"(SELECT k % 10 AS k, sum(v) AS v, max(w) AS w FROM {source} GROUP BY 1) AS y", ["y.k = x.k % 10"]
    return f"(SELECT k, v, w FROM {source} ORDER BY v, k LIMIT 20) AS y", ["y.k = x.k"]


def _doubled(source: str) -> str:
    return f"(SELECT k, v, w FROM {source} UNION ALL SELECT k, v, w FROM {source})"


def _updated(drawing: _Drawing) -> str:
    conditions = where(drawing.conditions())
    return f"UPDATE {drawing.target()} AS x SET {drawing.assignment()}{conditions}{drawing.returned()}"


def _updated_from(drawing: _Drawing) -> str:
    relations, conditions = _from(drawing)
    if "UNION ALL" in relations:  # PostgreSQL cannot follow a changed row that the statement itself has moved
        drawing = replace(drawing, moves=False)
    sets = pick(drawing.rng, (drawing.assignment(), "b = x.b + y.v", "c = y.w || x.b"))
    conditions += drawing.conditions()
    return f"UPDATE {TARGET} AS x SET {sets} FROM {relations}{where(conditions)}{drawing.returned()}"


def _deleted(drawing: _Drawing) -> str:
    return f"DELETE FROM {drawing.target()} AS x{where(drawing.conditions())}{drawing.returned()}"


def _deleted_using(drawing: _Drawing) -> str:
    relations, conditions = _from(drawing)
    conditions += drawing.conditions()
    return f"DELETE FROM {TARGET} AS x USING {relations}{where(conditions)}{drawing.returned()}"


def _inserted(drawing: _Drawing) -> str:
    """Return an upsert of keys that the other session may have added, changed or removed."""
    rng, scene = drawing.rng, drawing.scene
    fresh = f"{_FRESH * drawing.number} + k"  # keys that the other session may insert, with the same values of a
    key = fresh if scene.shape == "LIST (a)" else pick(rng, ("k", fresh))
    order = pick(rng, ("", " ORDER BY k", " ORDER BY v + 1, k"))
    condition = f" WHERE {drawing.condition('x')}" if chance(rng, 40) else ""
    action = pick(rng, (f"DO UPDATE SET b = x.b + excluded.b{condition}", "DO UPDATE SET c = excluded.c", "DO NOTHING"))
    source = drawing.source()
    source = _doubled(source) if action == "DO NOTHING" and chance(rng, 40) else source
    rows = f"SELECT {key}, k % {GROUPS}, v, w FROM {source} AS s{order}"
    if scene.shape == "inherited" or chance(rng, 10):
        return f"INSERT INTO {drawing.target()} AS x ({COLUMNS}) {rows} ON CONFLICT DO NOTHING{drawing.returned()}"
    return f"INSERT INTO {TARGET} AS x ({COLUMNS}) {rows} ON CONFLICT ({scene.key}) {action}{drawing.returned()}"


def _merged(drawing: _Drawing) -> str:
    rng = drawing.rng
    assigned = (f"UPDATE SET {drawing.assignment()}" for _ in range(2))
    actions = (*assigned, "UPDATE SET b = x.b + y.v", "DELETE", "DO NOTHING")
    clauses = [
        f"WHEN MATCHED AND {drawing.condition('x')} THEN {pick(rng, actions)}",
        f"WHEN MATCHED THEN {pick(rng, actions)}",
    ][rng.randrange(2) :]
    if chance(rng, 55):
        absent = pick(rng, ("UPDATE SET c = 'absent'", "DELETE", "UPDATE SET b = x.b - 1"))
        clauses.append(f"WHEN NOT MATCHED BY SOURCE AND {drawing.condition('x')} THEN {absent}")
    # PostgreSQL 17.11 and 18.6 insert a row of NULLs if a row without source was deleted meanwhile (corpus/README.md).
    if chance(rng, 70) and not (drawing.deletes and "BY SOURCE" in clauses[-1]):
        values = f"{_FRESH * drawing.number + _OWN} + y.k, y.k % {GROUPS}, y.v, y.w"
        clauses += ["WHEN NOT MATCHED AND y.v > 12 THEN DO NOTHING"] if chance(rng, 25) else []
        clauses.append(f"WHEN NOT MATCHED THEN INSERT ({COLUMNS}) VALUES ({values})")
    condition = pick(rng, ("x.k = y.k", "x.k = y.k", "x.k = y.k AND x.b < 15", "x.k = y.k AND x.b <> y.v"))
    returned = " RETURNING merge_action(), x.k, x.b" if chance(rng, 60) else ""
    source = drawing.source()
    return f"MERGE INTO {drawing.target()} AS x USING {source} AS y ON {condition} {' '.join(clauses)}{returned}"


def _merged_alike(drawing: _Drawing) -> str:
    """Return a MERGE with one action."""
    rng = drawing.rng
    action = pick(rng, ("UPDATE SET b = x.b + y.v", "DELETE"))
    matched = f"WHEN MATCHED AND {drawing.condition('x')} THEN {action}"
    return f"MERGE INTO {TARGET} AS x USING {drawing.source()} AS y ON x.k = y.k {matched}"


def _repeated(drawing: _Drawing) -> str:
    """Return a statement that would change a row twice: an error, if there are such rows.

    Which of its partners a row meets first is no matter.
    """
    rng = drawing.rng
    rows = f"SELECT k % {between(rng, 5, 20)} AS k, v, w FROM {drawing.source()}"
    if chance(rng, 50):
        action = pick(rng, ("UPDATE SET b = x.b + 1", "DELETE"))
        return f"MERGE INTO {TARGET} AS x USING ({rows}) AS y ON x.k = y.k WHEN MATCHED THEN {action}"
    added = (
        f"INSERT INTO {TARGET} AS x ({COLUMNS}) SELECT k + {_FRESH * drawing.number + _OWN}, 1, v, w FROM ({rows}) AS y"
    )
    return f"{added} ON CONFLICT ({drawing.scene.key}) DO UPDATE SET b = x.b + 1"


def _locked(drawing: _Drawing) -> str:
    """Return a query that locks rows. The other session acts when the query's InitPlan is executed, before its rows."""
    rng = drawing.rng
    conditions = [*drawing.conditions(), "(SELECT elsewhere_pending()) = 0"]
    relations, targets = f"{TARGET} AS x", "x.k, x.a, x.b, x.c"
    if chance(rng, 50):
        joined, more = _from(drawing)
        relations, targets = f"{relations}, {joined}", f"{targets}, y.v"
        conditions += more
    lock = pick(rng, ("UPDATE", "NO KEY UPDATE", "SHARE", "KEY SHARE"))
    waiting = pick(rng, ("", "", " SKIP LOCKED", " NOWAIT"))
    limit = f" LIMIT {between(rng, 1, 9)}" if chance(rng, 40) else ""
    return (
        f"SELECT {targets} FROM {relations}{where(conditions)} ORDER BY x.k, x.a, x.b{limit} FOR {lock} OF x{waiting}"
    )


def _by_cte(drawing: _Drawing) -> str:
    """Return two changes in one statement, of different rows."""
    rng = drawing.rng
    divisor = between(rng, 2, 4)
    updated = f"UPDATE {TARGET} AS x SET {pick(rng, _SETS)} WHERE x.k % {divisor} = 0 RETURNING x.k, x.b"
    deleted = f"DELETE FROM {TARGET} AS x WHERE x.k % {divisor} = 0 RETURNING x.k, x.b"
    rest = f"x.k % {divisor} <> 0 AND {drawing.condition('x')}"
    other = pick(
        rng,
        (
            f"UPDATE {TARGET} AS x SET {pick(rng, _SETS)} WHERE {rest} RETURNING x.k, x.b",
            f"DELETE FROM {TARGET} AS x WHERE {rest} RETURNING x.k, x.b",
            "SELECT count(*), sum(k), sum(b) FROM w",
        ),
    )
    return f"WITH w AS ({pick(rng, (updated, deleted))}) {other}"


_Make = Callable[[_Drawing], str]
_STATEMENTS: Weighted[tuple[str, _Make]] = Weighted(
    (18, ("updated", _updated)),
    (20, ("updated_from", _updated_from)),
    (8, ("deleted", _deleted)),
    (12, ("deleted_using", _deleted_using)),
    (10, ("inserted", _inserted)),
    (16, ("merged", _merged)),
    (12, ("locked", _locked)),
    (4, (_REPEATED, _repeated)),
    (4, ("by_cte", _by_cte)),
)
_UPDATES: Weighted[_Make] = Weighted((50, _updated), (50, _updated_from))
_CHANGES: Weighted[_Make] = Weighted(
    (25, _updated), (20, _updated_from), (20, _deleted), (15, _deleted_using), (20, _merged_alike)
)
_Turn = Callable[[random.Random, Scene, int], list[Step]]
_TURNS: Weighted[_Turn] = Weighted((80, _turn), (10, _changed_by_both), (6, catalog_turn), (4, detachment_turn))
