"""Transactions with deferred constraints and constraint triggers, fired at several levels of savepoints.

They run on two tables of their own. A model of their rows decides which statements fail: a constraint holds after each
statement if it is immediate, at SET CONSTRAINTS ... IMMEDIATE, and at COMMIT. A table has the events that triggers saw.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from fuzz.generators.choices import Weighted, between, chance, pick, some
from fuzz.generators.copy_batches.changes import literal_key
from fuzz.generators.copy_batches.table import CopyState
from oracles.model.case import Kind, Step

_IDS: Final = range(1, 7)  # of rows in both tables; few, so that many changes violate a constraint
_MOST_OF_A_PARENT: Final = 2  # rows, according to the constraint trigger `few`
_ACTIONS: Final = Weighted((6, ""), (2, " ON DELETE CASCADE"), (2, " ON DELETE SET NULL"))
_UNIQUE: Final = Weighted(
    (5, "UNIQUE (id)"),
    (2, "EXCLUDE USING btree (id WITH =)"),
    (2, "EXCLUDE USING gist (int4range(id, id, '[]') WITH &&)"),
)
_DEEPEST: Final = 4  # savepoints


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of both tables: ids of parents; ids and parents of children."""

    parents: frozenset[int] = frozenset({1, 2, 3})
    children: tuple[tuple[int, int | None], ...] = ((1, 1), (2, 2), (3, None))

    @property
    def violated(self) -> frozenset[str]:
        """Return the constraints that the rows violate."""
        ids = Counter(number for number, _ in self.children)
        found = Counter(parent for _, parent in self.children if parent is not None)
        broken = {
            "unique": max(ids.values(), default=0) > 1,
            "reference": bool(found.keys() - self.parents),
            "few": max(found.values(), default=0) > _MOST_OF_A_PARENT,
        }
        return frozenset(name for name, violated in broken.items() if violated)


@dataclass(frozen=True, slots=True)
class _Tables:
    """The tables of a case's transactions: their number, the action of the foreign key, and the first modes."""

    number: int
    action: str
    deferred: frozenset[str]  # constraints that are initially deferred
    echoes: bool  # the table of events has a deferred trigger, too

    @property
    def constraints(self) -> tuple[str, ...]:
        """Return the names of all deferrable constraints."""
        return ("noted", "unique", "reference", "few", *(("echoed",) if self.echoes else ()))

    def clause(self, name: str) -> str:
        """Return the clause of a constraint's first mode."""
        return f"DEFERRABLE{' INITIALLY DEFERRED' if name in self.deferred else ''}"


_Change = tuple[str, _Rows]  # a statement, and the rows after it


@dataclass(slots=True)
class _Level:
    """A savepoint: the rows at its beginning, and the modes before its first SET CONSTRAINTS."""

    rows: _Rows
    deferred: frozenset[str] | None = None


@dataclass(slots=True)
class _Transaction:
    """A transaction under construction."""

    rng: random.Random
    tables: _Tables
    rows: _Rows
    deferred: frozenset[str]
    steps: list[Step] = field(default_factory=list)
    levels: list[_Level] = field(default_factory=list)
    failed: bool = False

    def add(self, sql: str, *tags: str, fails: bool = False) -> None:
        """Append a statement."""
        self.steps.append(Step(sql, may_fail=fails, tags=tags))
        self.failed = fails

    def name(self, kind: str) -> str:
        """Return the name of a table or constraint."""
        return f"{kind}_{self.tables.number}"

    def fails(self) -> bool:
        """Return whether the rows violate an immediate constraint."""
        return bool(self.rows.violated - self.deferred)

    def open(self) -> None:
        """Begin a subtransaction."""
        self.levels.append(_Level(self.rows))

    def roll_back(self, level: int) -> None:
        """Undo the levels from that number on."""
        for undone in reversed(self.levels[level:]):
            self.deferred = self.deferred if undone.deferred is None else undone.deferred
        self.rows = self.levels[level].rows
        del self.levels[level:]

    def release(self, level: int) -> None:
        """Keep the changes of the levels from that number on.

        PostgreSQL 17.11 and 18.6 then forget the modes before these levels (corpus/README.md, "SET CONSTRAINTS below
        a released savepoint").
        """
        del self.levels[level:]

    def set(self) -> str:
        """Return SET CONSTRAINTS, after which the rows may violate immediate constraints."""
        rng, names = self.rng, self.tables.constraints
        if self.levels and self.levels[-1].deferred is None:
            self.levels[-1].deferred = self.deferred
        chosen = names if chance(rng, 50) else some(rng, names, between(rng, 1, 2))
        to_immediate = chance(rng, 65)
        self.deferred = self.deferred - set(chosen) if to_immediate else self.deferred | set(chosen)
        listed = "ALL" if chosen is names else ", ".join(map(self.name, chosen))
        return f"SET CONSTRAINTS {listed} {'IMMEDIATE' if to_immediate else 'DEFERRED'}"

    def change(self) -> str:
        """Return a change, after which the rows are others. Most changes violate no further constraint."""
        sql, rows = _CHANGES.pick(self.rng)(self)
        if rows.violated - self.rows.violated and chance(self.rng, 50):
            sql, rows = _CHANGES.pick(self.rng)(self)
        self.rows = rows
        return sql

    def block(self, depth: int = 0) -> str:
        """Return a PL/pgSQL block of changes and SET CONSTRAINTS, which catches their errors or one of its own."""
        self.open()
        level, body, failed = len(self.levels) - 1, "", False
        for _ in range(between(self.rng, 1, 3)):
            nested = depth < 2 and chance(self.rng, 20)
            body += self.block(depth + 1) if nested else f"{self.set() if chance(self.rng, 40) else self.change()}; "
            failed = not nested and self.fails()
            if failed:
                break
        if not failed and chance(self.rng, 40):
            body, failed = f"{body}RAISE division_by_zero; ", True
        self.roll_back(level) if failed else self.release(level)
        return f"BEGIN {body}{self.caught('caught')} END; "

    def caught(self, what: str) -> str:
        """Return an exception handler that stores the error."""
        return f"EXCEPTION WHEN OTHERS THEN INSERT INTO {self.name('events')} (what, op) VALUES ('{what}', SQLSTATE);"


def _insert(made: _Transaction) -> _Change:
    rng, rows = made.rng, made.rows
    added = tuple((pick(rng, _IDS), _parent(rng)) for _ in range(pick(rng, (1, 1, 2, 4))))
    values = ", ".join(f"({number}, {literal_key(parent)})" for number, parent in added)
    after = replace(rows, children=rows.children + added)
    return f"INSERT INTO {made.name('children')} VALUES {values}", after


def _parent(rng: random.Random) -> int | None:
    return None if chance(rng, 25) else pick(rng, _IDS)


def _delete(made: _Transaction) -> _Change:
    number = pick(made.rng, _IDS)
    left = tuple(row for row in made.rows.children if row[0] != number)
    return f"DELETE FROM {made.name('children')} WHERE id = {number}", replace(made.rows, children=left)


def _update(made: _Transaction) -> _Change:
    number, parent = pick(made.rng, _IDS), _parent(made.rng)
    after = tuple((row[0], parent if row[0] == number else row[1]) for row in made.rows.children)
    sql = f"UPDATE {made.name('children')} SET p = {literal_key(parent)} WHERE id = {number}"
    return sql, replace(made.rows, children=after)


def _renumber(made: _Transaction) -> _Change:
    old, new = some(made.rng, _IDS, 2)
    after = tuple((new if row[0] == old else row[0], row[1]) for row in made.rows.children)
    return f"UPDATE {made.name('children')} SET id = {new} WHERE id = {old}", replace(made.rows, children=after)


def _insert_parent(made: _Transaction) -> _Change:
    missing = sorted(set(_IDS) - made.rows.parents)  # the primary key is not deferrable
    if not missing:
        return _delete_parent(made)
    number = pick(made.rng, missing)
    after = replace(made.rows, parents=made.rows.parents | {number})
    return f"INSERT INTO {made.name('parents')} VALUES ({number})", after


def _delete_parent(made: _Transaction) -> _Change:
    number, children = pick(made.rng, _IDS), made.rows.children
    if number in made.rows.parents and "CASCADE" in made.tables.action:
        children = tuple(row for row in children if row[1] != number)
    elif number in made.rows.parents and "NULL" in made.tables.action:
        children = tuple((row[0], None if row[1] == number else row[1]) for row in children)
    after = _Rows(made.rows.parents - {number}, children)
    return f"DELETE FROM {made.name('parents')} WHERE id = {number}", after


_CHANGES: Final[Weighted[Callable[[_Transaction], _Change]]] = Weighted(
    (5, _insert), (2, _delete), (3, _update), (2, _renumber), (2, _insert_parent), (2, _delete_parent)
)


def _changed(made: _Transaction) -> None:
    sql = made.change()
    made.add(sql, fails=made.fails())


def _copied(made: _Transaction) -> None:
    """Append a COPY of a few rows."""
    added = tuple((pick(made.rng, _IDS), _parent(made.rng)) for _ in range(pick(made.rng, (1, 2, 4))))
    made.rows = replace(made.rows, children=made.rows.children + added)
    data = "".join(f"{number}\t{literal_key(parent)}\n" for number, parent in added)
    sql = f"COPY {made.name('children')} FROM STDIN WITH (NULL 'NULL')"
    made.failed = made.fails()
    made.steps.append(Step(sql, Kind.COPY_IN, copy_data=data.encode(), may_fail=made.failed))


def _set(made: _Transaction) -> None:
    inside = "constraints.subtransaction" if made.levels else "constraints.transaction"
    sql = made.set()
    made.add(sql, inside, fails=made.fails())


def _opened(made: _Transaction) -> None:
    if len(made.levels) == _DEEPEST:
        return _ended(made)
    made.open()
    return made.add(f"SAVEPOINT s{len(made.levels)}")


def _ended(made: _Transaction) -> None:
    """Append a rollback to a savepoint, or the release of one."""
    if not made.levels:
        return _opened(made)
    level = between(made.rng, 1, len(made.levels))
    if made.failed or chance(made.rng, 60):
        made.roll_back(level - 1)
        made.open()
        return made.add(f"ROLLBACK TO s{level}", "constraints.rolled_back")
    made.release(level - 1)
    return made.add(f"RELEASE s{level}", "constraints.released")


def _block(made: _Transaction) -> None:
    made.add(f"DO $$ BEGIN {made.block()}END $$", "constraints.block")


def _pending(made: _Transaction) -> None:
    """Append a DO block that stores whether the table has pending events. It changes nothing else."""
    alter = f"ALTER TABLE {made.name('children')} ADD COLUMN x int4; RAISE division_by_zero;"
    made.add(f"DO $$ BEGIN {alter} {made.caught('pending')} END $$", "constraints.pending")


def _read(made: _Transaction) -> None:
    made.steps += _queries(made.tables)


_MOVES: Final[Weighted[Callable[[_Transaction], None]]] = Weighted(
    (26, _changed), (12, _copied), (20, _set), (18, _opened), (18, _ended), (8, _block), (3, _pending), (3, _read)
)


def make_deferred(rng: random.Random, state: CopyState) -> tuple[tuple[Step, ...], CopyState]:
    """Return tables with deferrable constraints, a few transactions on them, and what each left."""
    tables = _Tables(
        state.next_name,
        _ACTIONS.pick(rng),
        frozenset(name for name in ("noted", "unique", "reference", "few", "echoed") if chance(rng, 70)),
        echoes=chance(rng, 40),
    )
    steps, rows = _created(rng, tables), _Rows()
    for _ in range(between(rng, 1, 1 + min(state.scale.queries // 10, 2))):
        made, rows = _transaction(rng, tables, rows, between(rng, 4, 4 + state.scale.queries // 3))
        steps += (*made, *_queries(tables))
    return steps, state.named()


def _transaction(rng: random.Random, tables: _Tables, rows: _Rows, moves: int) -> tuple[list[Step], _Rows]:
    """Return a transaction, and the rows after it."""
    made = _Transaction(rng, tables, rows, tables.deferred)
    made.add("BEGIN")
    for _ in range(moves):
        if not made.failed:
            _MOVES.pick(rng)(made)
        elif made.levels and chance(rng, 85):
            _ended(made)
        else:
            break
    if made.failed or chance(rng, 20):
        return [*made.steps, Step(pick(rng, ("ROLLBACK", "COMMIT")) if made.failed else "ROLLBACK")], rows
    refused = bool(made.rows.violated)
    made.add("COMMIT", "constraints.commit_refused" if refused else "constraints.commit", fails=refused)
    return made.steps, rows if refused else made.rows


def _queries(tables: _Tables) -> tuple[Step, ...]:
    number = tables.number
    return (
        Step(f"SELECT id, p FROM children_{number}", Kind.QUERY),
        Step(f"SELECT what, op, old, new, seen, before FROM events_{number}", Kind.QUERY),
    )


def _created(rng: random.Random, tables: _Tables) -> tuple[Step, ...]:
    """Return the steps that create the tables, their constraints and their triggers."""
    n, routed = tables.number, chance(rng, 25)
    unique = "UNIQUE (id)" if routed else _UNIQUE.pick(rng)
    reference = f"CONSTRAINT reference_{n} REFERENCES parents_{n}{tables.action} {tables.clause('reference')}"
    columns = f"id int4, p int4 {reference}, CONSTRAINT unique_{n} {unique} {tables.clause('unique')}"
    statements = [
        f"CREATE TABLE parents_{n} (id int4 PRIMARY KEY)",
        f"CREATE TABLE children_{n} ({columns}){' PARTITION BY HASH (id)' if routed else ''}",
    ]
    statements += [
        f"CREATE TABLE children_{n}_{rest} PARTITION OF children_{n} FOR VALUES WITH (MODULUS 2, REMAINDER {rest})"
        for rest in range(2 if routed else 0)
    ]
    statements += [
        f"INSERT INTO parents_{n} VALUES (1), (2), (3)",
        f"INSERT INTO children_{n} VALUES (1, 1), (2, 2), (3, NULL)",
        *_triggers(rng, tables),
    ]
    return tuple(map(Step, statements))


def _triggers(rng: random.Random, tables: _Tables) -> list[str]:
    """Return the statements that create the table of events, and the triggers."""
    n = tables.number
    # The foreign key's actions change rows in an order that the plan determines.
    before = "0" if tables.action else f"(SELECT count(*) FROM events_{n})"
    seen = f"TG_NAME, TG_OP, OLD.id, NEW.id, (SELECT count(*) FROM children_{n}), {before}"
    counted = f"(SELECT count(*) FROM children_{n} WHERE p = NEW.p) > {_MOST_OF_A_PARENT}"
    refuse = f"IF {counted} THEN RAISE EXCEPTION 'too many of %', NEW.p USING ERRCODE = 'P0042'; END IF"
    any_change = f"AFTER INSERT OR UPDATE OR DELETE ON children_{n}"
    statements = [
        f"CREATE TABLE events_{n} (what text, op text, old int4, new int4, seen int8, before int8)",
        _function(f"note_{n}", f"INSERT INTO events_{n} VALUES ({seen})"),
        _function(f"refuse_{n}", refuse),
        _trigger(tables, "noted", any_change, f"note_{n}"),
        _trigger(tables, "few", f"AFTER INSERT OR UPDATE ON children_{n}", f"refuse_{n}"),
    ]
    if chance(rng, 40):
        statements.append(f"CREATE TRIGGER at_once {any_change} FOR EACH ROW EXECUTE FUNCTION note_{n}()")
    if tables.echoes:
        echo = f"INSERT INTO events_{n} (what, op, new) VALUES ('echo', NEW.what, NEW.new)"
        statements += [
            _function(f"echo_{n}", echo),
            _trigger(tables, "echoed", f"AFTER INSERT ON events_{n}", f"echo_{n}", "WHEN (NEW.what <> 'echo')"),
        ]
    return statements


def _function(name: str, body: str) -> str:
    return f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body}; RETURN NULL; END $$"


def _trigger(tables: _Tables, name: str, event: str, function: str, when: str = "") -> str:
    mode = f"{tables.clause(name)} FOR EACH ROW{f' {when}' if when else ''}"
    return f"CREATE CONSTRAINT TRIGGER {name}_{tables.number} {event} {mode} EXECUTE FUNCTION {function}()"
