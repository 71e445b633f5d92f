"""COPY into small partitioned tables whose leaves differ: other columns, expressions, defaults, checks, or triggers.

A trigger of a leaf may change the partition key. After an insert, the row must still belong to its leaf; an update
moves it. Checks and conditions on `tableoid` show which table a row is checked for.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fuzz.generators.choices import between, chance, pick, shuffled
from fuzz.generators.copy_batches.written import WrittenCopy
from fuzz.generators.sql.partitions import attached
from oracles.model.case import Kind, Step

_NAME: Final = "uneven"
_DEFAULT: Final = f"{_NAME}_d"
_MOVES: Final = f"{_NAME}_moves"
_KEY: Final = "NEW.k := NEW.k + 1;"
_LEAF: Final = "NEW.s := NEW.tableoid::regclass::text;"
_OTHER: Final = "NEW.s := 'T' || coalesce(NEW.s, '');"
_REFUSED: Final = 7  # a value of `v` that the checks of leaves refuse
_ROOT_EXPRESSION: Final = "id * 2"


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A leaf that accepts some keys, and its peculiarities."""

    name: str
    keys: range
    expression: str  # of the generated column
    default: int | None
    checked: bool  # whether it refuses a value of `v`
    of_itself: bool  # whether it has a CHECK that compares tableoid with the leaf
    attached: bool

    def created(self, rng: random.Random, bound: str) -> tuple[str, ...]:
        """Return the statements that create the leaf."""
        statements: tuple[str, ...]
        if self.attached:
            columns = ["id int4 NOT NULL", "k int4", "v int4 DEFAULT 5", "s text", "gone int8"]
            columns.append(f"g int8 GENERATED ALWAYS AS ({self.expression}) STORED")
            create = f"CREATE TABLE {self.name} ({', '.join(shuffled(rng, columns))})"
            statements = attached(create, self.name, _NAME, bound)
        else:
            own = f" (g WITH OPTIONS GENERATED ALWAYS AS ({self.expression}) STORED)"
            different = own if self.expression != _ROOT_EXPRESSION else ""
            statements = (f"CREATE TABLE {self.name} PARTITION OF {_NAME}{different} {bound}",)
        if self.default is not None:
            statements += (f"ALTER TABLE {self.name} ALTER v SET DEFAULT {self.default}",)
        if self.checked:
            statements += (f"ALTER TABLE {self.name} ADD CHECK (v <> {_REFUSED})",)
        if self.of_itself:
            statements += (f"ALTER TABLE {self.name} ADD CHECK (tableoid = '{self.name}'::regclass)",)
        return statements


@dataclass(frozen=True, slots=True)
class _Trigger:
    """A BEFORE trigger of a table for some rows; `every` is 0 if there is none."""

    table: str
    body: str
    every: int
    of_updates: bool

    def created(self) -> tuple[str, ...]:
        if not self.every:
            return ()
        events = "INSERT OR UPDATE" if self.of_updates else "INSERT"
        return (
            f"CREATE FUNCTION {_MOVES}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {self.body} RETURN NEW; END $$",
            f"CREATE TRIGGER moves BEFORE {events} ON {self.table} FOR EACH ROW WHEN (NEW.id % {self.every} = 0)"
            f" EXECUTE FUNCTION {_MOVES}()",
        )

    def key(self, leaf: str, number: int, key: int) -> int:
        """Return the key of a new row of a leaf after the trigger."""
        mine = self.table in (leaf, _NAME)
        return key + (self.every > 0 and mine and self.body == _KEY and number % self.every == 0)


def uneven_leaves(rng: random.Random) -> tuple[Step, ...]:
    """Return a table whose leaves differ, COPYs into it, an UPDATE, queries of its rows, and DROP TABLE."""
    width, by = pick(rng, ((10, "RANGE"), (2, "LIST")))
    leaves = [_leaf(rng, number, width) for number in range(between(rng, 2, 4))]
    trigger = _trigger(rng, leaves)
    bounds = {leaf.name: _bound(leaf.keys, by) for leaf in leaves}
    root = f"id int4 NOT NULL, k int4, v int4 DEFAULT 5, s text, g int8 GENERATED ALWAYS AS ({_ROOT_EXPRESSION}) STORED"
    scene = (
        f"CREATE TABLE {_NAME} ({root}) PARTITION BY {by} (k)",
        *(statement for leaf in leaves for statement in leaf.created(rng, bounds[leaf.name])),
        f"CREATE TABLE {_DEFAULT} PARTITION OF {_NAME} DEFAULT",
        *trigger.created(),
    )
    copies = tuple(_copy(rng, leaves, trigger, 1 + 100 * number) for number in range(between(rng, 1, 3)))
    shown = f"SELECT tableoid::regclass, id, k, v, s, g FROM {_NAME}"
    steps = (
        *(copy.step for copy in copies),
        Step(shown, Kind.QUERY),
        Step(f"UPDATE {_NAME} SET s = 'updated' WHERE id % 3 = 0"),
        Step(shown, Kind.QUERY),
        Step(f"DROP TABLE {_NAME}"),
        *([Step(f"DROP FUNCTION {_MOVES}()")] if trigger.every else []),
    )
    return (*map(Step, scene), *steps)


def _leaf(rng: random.Random, number: int, width: int) -> _Leaf:
    return _Leaf(
        f"{_NAME}_{number}",
        range(number * width, (number + 1) * width),
        f"id * {number + 10}" if chance(rng, 40) else _ROOT_EXPRESSION,
        90 + number if chance(rng, 20) else None,
        checked=chance(rng, 30),
        of_itself=chance(rng, 30),
        attached=chance(rng, 30),
    )


def _trigger(rng: random.Random, leaves: list[_Leaf]) -> _Trigger:
    """Return a trigger of the table or of one leaf.

    Only a leaf's trigger may fire for updates, because a moved row would fire the table's trigger again in its new
    leaf.
    """
    table = pick(rng, (_NAME, *(leaf.name for leaf in leaves)))
    body = pick(rng, (_KEY, _KEY, _LEAF, _OTHER))
    every = pick(rng, (0, 0, 1, 3, 17, 60))
    return _Trigger(table, body, every, of_updates=table != _NAME and chance(rng, 60))


def _bound(keys: range, by: str) -> str:
    if by == "RANGE":
        return f"FOR VALUES FROM ({keys.start}) TO ({keys.stop})"
    return f"FOR VALUES IN ({', '.join(map(str, keys))})"


def _copy(rng: random.Random, leaves: list[_Leaf], trigger: _Trigger, first: int) -> WrittenCopy:
    """Return a COPY of rows numbered from `first`, which fails if a check or a trigger of a leaf refuses one."""
    of_key = {key: leaf for leaf in leaves for key in leaf.keys}
    keys = [*of_key, -1] if chance(rng, 60) else [pick(rng, list(of_key))]
    refused = _REFUSED if chance(rng, 15) and not trigger.of_updates else 0  # an update may move rows to any leaf
    rows = [(first + number, pick(rng, keys), refused or number % 5) for number in range(between(rng, 1, 40))]
    listed, lines = "(id, k, v)", "".join(f"{number}\t{key}\t{value}\n" for number, key, value in rows)
    if not refused and chance(rng, 30):
        listed, lines = "(k, id)", "".join(f"{key}\t{number}\n" for number, key, _ in rows)
    where = pick(rng, ("", "", "", f" WHERE tableoid = '{_NAME}'::regclass", f" WHERE tableoid <> '{_NAME}'::regclass"))
    fails = "<>" not in where and any(_is_refused(row, of_key, trigger) for row in rows)
    return WrittenCopy(f"{_NAME} {listed}", "", lines.encode(), "leaves", fails, where)


def _is_refused(row: tuple[int, int, int], of_key: Mapping[int, _Leaf], trigger: _Trigger) -> bool:
    number, key, value = row
    leaf = of_key.get(key)
    after = trigger.key(leaf.name if leaf else _DEFAULT, number, key)
    return of_key.get(after) != leaf or bool(leaf and leaf.checked and value == _REFUSED)
