"""Statements of `transition_tables` that change rows. New ids are unique, so no statement violates an index."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from fuzz.generators.choices import Weighted, between, chance, pick
from fuzz.generators.transition_tables.scene import FRESH, SOURCE, TARGET, VIEW, Scene
from oracles.model.case import Kind, Step

_NAMES = "id, k, v, t"
_CHECKED = "t_checked"


@dataclass(frozen=True, slots=True)
class _Drawing:
    rng: random.Random
    scene: Scene
    number: int  # of the statement

    @property
    def added(self) -> str:
        """Return the columns of the source, with new ids."""
        return f"id + {self.number * FRESH}, k, v, t"

    @property
    def numbered(self) -> str:
        """Return new ids for rows of the target."""
        return f"{self.number * FRESH} + row_number() OVER (ORDER BY id, k)"

    def where(self, alias: str) -> str:
        """Return a condition on rows of the target or the source."""
        rng = self.rng
        column = pick(rng, ("id", "k", "v"))
        divisor = between(rng, 2, 5)
        return _CONDITIONS.pick(rng).format(
            c=f"{alias}.{column}", n=divisor, rest=rng.randrange(divisor), key=rng.randrange(self.scene.domain)
        )

    @property
    def target(self) -> str:
        """Return the table, one of its members, or a view of it."""
        others = (VIEW,) if self.scene.excluded else (VIEW, *self.scene.members)
        return pick(self.rng, others) if chance(self.rng, 35) else TARGET

    @property
    def other_key(self) -> str:
        """Return the assignment of another key."""
        return f"k = (a.k + {between(self.rng, 1, self.scene.domain)}) % {self.scene.domain}"


_CONDITIONS = Weighted((30, "true"), (40, "{c} % {n} = {rest}"), (15, "{c} < {key}"), (15, "{c} = {key}"))


def draw_change(rng: random.Random, scene: Scene, number: int) -> Step:
    """Return a random statement, the `number`th of its case."""
    weights = _MOVES if scene.moves and chance(rng, 50) else _CHANGES
    name, change = weights.pick(rng)
    step = change(_Drawing(rng, scene, number))
    if isinstance(step, str):
        step = Step(step)
    return Step(step.sql, step.kind, step.copy_data, tags=(name, scene.described))


def checked_changes(rng: random.Random, scene: Scene, number: int) -> list[Step]:
    """Return changes of a view that refuses rows, from the `number`th statement on, and the table's rows."""
    condition = pick(rng, ("v < 6", "v <> 3", f"k < {between(rng, 1, scene.domain)}"))
    option = pick(rng, ("", "LOCAL ", "CASCADED "))
    kept = f"SELECT {_NAMES} FROM {TARGET} WHERE {condition} WITH {option}CHECK OPTION"
    steps = [Step(f"CREATE VIEW {_CHECKED} AS {kept}")]
    for later in range(between(rng, 2, 5)):
        drawing = _Drawing(rng, scene, number + later)
        rows = f"SELECT {drawing.added} FROM {SOURCE} AS s WHERE {drawing.where('s')}"
        assigned = pick(rng, ("v = a.v + 1", "v = a.v - 1", drawing.other_key))
        changes = (
            f"INSERT INTO {_CHECKED} ({_NAMES}) {rows}",
            f"UPDATE {_CHECKED} AS a SET {assigned} WHERE {drawing.where('a')}",
        )
        steps.append(Step(pick(rng, changes), may_fail=True, tags=("checked", scene.described)))
    return [*steps, Step(f"SELECT {_NAMES} FROM {TARGET}", Kind.QUERY), Step(f"DROP VIEW {_CHECKED}")]


def _insert(drawing: _Drawing) -> str:
    target = drawing.target
    if target in drawing.scene.members:  # with keys that fit
        return f"INSERT INTO {target} ({_NAMES}) SELECT {drawing.numbered}, k, v, t FROM {target}"
    order = pick(drawing.rng, ("", " ORDER BY id", " ORDER BY k, id"))
    rows = f"SELECT {drawing.added} FROM {SOURCE} AS s WHERE {drawing.where('s')}{order}"
    return f"INSERT INTO {target} ({_NAMES}) {rows}"


def _insert_or_update(drawing: _Drawing) -> str:
    rng = drawing.rng
    if not drawing.scene.unique:
        return _insert(drawing)
    new = f"CASE WHEN id % {between(rng, 2, 4)} = 0 THEN id + {drawing.number * FRESH} ELSE id END"
    where = f" WHERE {drawing.where('a')}" if chance(rng, 30) else ""
    action = pick(rng, (f"UPDATE SET v = a.v + excluded.v{where}", "UPDATE SET t = excluded.t || '!'", "NOTHING"))
    rows = f"SELECT {new}, k, v, t FROM {SOURCE} AS s WHERE {drawing.where('s')}"
    return f"INSERT INTO {TARGET} AS a ({_NAMES}) {rows} ON CONFLICT (id, k) DO {action}"


def _copy(drawing: _Drawing) -> Step:
    rng, domain = drawing.rng, drawing.scene.domain
    count, step = between(rng, 1, drawing.scene.rows), between(rng, 1, 3)
    first = drawing.number * FRESH
    lines = [f"{first + n}\t{n // step % domain}\t{n % 10}\tt{n}\n" for n in range(count)]
    where = f" WHERE {drawing.where(TARGET)}" if chance(rng, 30) else ""
    sql = f"COPY {TARGET} ({_NAMES}) FROM STDIN{where}"
    return Step(sql, Kind.COPY_IN, "".join(lines).encode())


def _update(drawing: _Drawing) -> str:
    assigned = pick(drawing.rng, ("v = a.v + 1", "v = a.v + 1", "t = a.t || '?'", "k = a.k", "v = a.v + 1, t = NULL"))
    return f"UPDATE {drawing.target} AS a SET {assigned} WHERE {drawing.where('a')}"


def _update_from(drawing: _Drawing) -> str:
    where = f"a.id = s.id AND {drawing.where('a')}"
    return f"UPDATE {drawing.target} AS a SET v = a.v + s.v FROM {SOURCE} AS s WHERE {where}"


def _delete(drawing: _Drawing) -> str:
    return f"DELETE FROM {drawing.target} AS a WHERE {drawing.where('a')}"


def _delete_using(drawing: _Drawing) -> str:
    where = f"a.id = s.id AND {drawing.where('s')}"
    return f"DELETE FROM {drawing.target} AS a USING {SOURCE} AS s WHERE {where}"


def _move(drawing: _Drawing) -> str:
    return f"UPDATE {TARGET} AS a SET {drawing.other_key} WHERE {drawing.where('a')}"


def _move_from(drawing: _Drawing) -> str:
    key = f"(a.k + s.v) % {drawing.scene.domain}"
    where = f"a.id = s.id AND {drawing.where('s')}"
    return f"UPDATE {TARGET} AS a SET k = {key}, t = s.t FROM {SOURCE} AS s WHERE {where}"


def _merge(drawing: _Drawing) -> str:
    """Return a MERGE that moves no row: PostgreSQL 17.11 and 18.6 lose these (corpus/upstream/71859b819bc4.sql)."""
    rng, target = drawing.rng, drawing.target
    inserts = target not in drawing.scene.members and chance(rng, 60)
    actions = ["UPDATE SET v = a.v + 1", "DELETE", "DO NOTHING"]
    if inserts and drawing.scene.partitioned:
        # PostgreSQL 17.11 and 18.6: updated rows are replaced by the inserted one (corpus/upstream/26b2282fb4a5.sql).
        actions = actions[1:]
    source = f"(SELECT * FROM {SOURCE} AS s WHERE {drawing.where('s')}) AS s"
    first, second = pick(rng, actions), pick(rng, actions)
    clauses = [f"WHEN MATCHED AND {drawing.where('a')} THEN {first}", f"WHEN MATCHED THEN {second}"]
    clauses = clauses[rng.randrange(2) :]
    if chance(rng, 25):
        clauses.append(f"WHEN NOT MATCHED BY SOURCE AND {drawing.where('a')} THEN {pick(rng, actions)}")
    if inserts:
        values = f"s.id + {drawing.number * FRESH}, s.k, s.v, s.t"
        clauses.append(f"WHEN NOT MATCHED THEN INSERT ({_NAMES}) VALUES ({values})")
    excluding = f" AND a.id < {FRESH}" if drawing.scene.excluded else ""
    returned = " RETURNING merge_action(), a.id, a.v, s.k" if chance(rng, 50) else ""
    return f"MERGE INTO {target} AS a USING {source} ON a.id = s.id{excluding} {' '.join(clauses)}{returned}"


def _several(drawing: _Drawing) -> str:
    """Return a statement that changes rows twice, in different ways."""
    rng = drawing.rng
    added = f"INSERT INTO {TARGET} ({_NAMES}) SELECT {drawing.added} FROM"
    divisor = between(rng, 2, 4)
    removed = f"DELETE FROM {TARGET} WHERE id % {divisor} = 0 RETURNING {_NAMES}"
    updated = f"UPDATE {TARGET} SET v = v + 1 WHERE id % {divisor} <> 0"
    both = pick(
        rng,
        (
            f"({removed}) INSERT INTO {TARGET} ({_NAMES}) SELECT {drawing.numbered}, k, v, t FROM w",
            f"({removed}) {updated}",
            f"({added} {SOURCE} RETURNING {_NAMES}) {updated} AND id IN (SELECT id FROM {SOURCE})",
            f"({added} {SOURCE} WHERE id % {divisor} = 0) {added} {SOURCE} WHERE id % {divisor} <> 0",
        ),
    )
    return f"WITH w AS {both}"


_Change = Callable[[_Drawing], str | Step]
_CHANGES: Weighted[tuple[str, _Change]] = Weighted(
    (12, ("insert", _insert)), (14, ("insert_or_update", _insert_or_update)), (12, ("copy", _copy)),
    (10, ("update", _update)), (8, ("update_from", _update_from)), (8, ("delete", _delete)),
    (6, ("delete_using", _delete_using)), (22, ("merge", _merge)), (8, ("several", _several)),
)  # fmt: skip
_MOVES: Weighted[tuple[str, _Change]] = Weighted((50, ("move", _move)), (50, ("move_from", _move_from)))
