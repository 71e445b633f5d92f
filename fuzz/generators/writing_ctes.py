"""Generator `writing_ctes`: WITH queries that change tables, and read what other parts of the statement return."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from fuzz.generators.choices import Stream, Weighted, another, begin, between, chance, pick, some
from fuzz.generators.generator import Generator, Scale
from fuzz.generators.sql.digest import digest
from fuzz.generators.sql.predicates import where
from oracles.model.case import Case, Kind, Step

# All keys are unique, so a row is changed once at most. All parts of a statement change different tables, and read the
# data from before the statement. So neither the order of rows nor that of the parts determines a result.
_COLUMNS = 'k int PRIMARY KEY, a int, t text COLLATE "C"'
_VALUES = "g, g % {}, 'v' || g % {}"
_TABLES = Weighted((70, 3), (30, 4))
_CONDITIONS = Weighted((30, 1), (50, 0), (20, 2))
_COMPARISONS = Weighted((30, ">="), (30, "<"), (20, "<>"), (20, "="))
_RETURNED = "k, a, t"


@dataclass(frozen=True, slots=True)
class _Scene:
    """The names of the tables, the greatest key, and the number of values that other columns repeat."""

    tables: tuple[str, ...]
    keys: int
    repeat: int


class WritingCtes(Generator):
    """Common table expressions that insert, update and delete rows of three or four small tables."""

    name: ClassVar[str] = "writing_ctes"
    cpu_seconds: ClassVar[float] = 0.3
    modes: ClassVar[tuple[str, ...]] = (
        "plain",
        "loop_only",
        "hash_only",
        "merge_only",
        "indexes",
        "small_memory",
        "extended",
        "prepared_generic",
        "cursor",
    )

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case: tables with their rows, then changes and queries over them."""
        names = tuple(f"w{n}" for n in range(1, _TABLES.pick(rng) + 1))
        scene = _Scene(names, between(rng, 1, scale.rows), between(rng, 1, 20))
        created = [step for name in names for step in _steps_of(rng, scene, name)]
        begin(rng, Stream.ACTION)
        steps = list(_change(rng, scene))
        while another(rng, len(steps), scale.queries):
            steps += [_query(rng, scene)] if chance(rng, 35) else _change(rng, scene)
        return Case(self.name, tuple(created), tuple(steps))


def _steps_of(rng: random.Random, scene: _Scene, name: str) -> list[Step]:
    """Return the steps that create, fill, index and perhaps analyze a table. Keys of tables overlap."""
    values = _VALUES.format(scene.repeat, scene.repeat)
    series = f"generate_series({between(rng, 1, scene.keys)}, {scene.keys}, {between(rng, 1, 3)})"
    steps = [Step(f"CREATE TABLE {name} ({_COLUMNS})"), Step(f"INSERT INTO {name} SELECT {values} FROM {series} AS g")]
    if chance(rng, 40):
        steps.append(Step(f"CREATE INDEX ON {name} ({pick(rng, ('a', 't', 'a, t'))})"))
    return [*steps, *([Step(f"ANALYZE {name}")] if chance(rng, 60) else ())]


def _change(rng: random.Random, scene: _Scene) -> Sequence[Step]:
    """Return one statement that changes tables, rolled back in a third of the cases."""
    tag, change = _CHANGES.pick(rng)
    step = Step(change(rng, scene), tags=(tag,))
    return (Step("BEGIN"), step, Step("ROLLBACK")) if chance(rng, 33) else (step,)


def _delete(rng: random.Random, scene: _Scene, table: str) -> str:
    return f"DELETE FROM {table} AS r{_where(rng, scene)} RETURNING {_RETURNED}"


def _moved(rng: random.Random, scene: _Scene) -> str:
    """Return a statement that moves rows to another table, where rows of equal keys are merged."""
    one, other = some(rng, scene.tables, 2)
    action = "NOTHING"
    if chance(rng, 70):
        action = "UPDATE SET a = (d.a + excluded.a) % 1000, t = excluded.t"
        action += " WHERE d.a <= excluded.a" if chance(rng, 40) else ""
    put = f"INSERT INTO {other} AS d SELECT {_RETURNED} FROM moved ON CONFLICT (k) DO {action} RETURNING {_RETURNED}"
    read = _OF_TWO.pick(rng).format("moved", "put")
    return f"WITH moved AS ({_delete(rng, scene, one)}), put AS ({put}) {read}"


def _followed(rng: random.Random, scene: _Scene) -> str:
    """Return a statement that updates one table from another, and deletes or updates the same keys of a third one."""
    one, other, third = some(rng, scene.tables, 3)
    return (
        f"WITH changed AS ({_update(rng, scene, one, other)}) "
        f"DELETE FROM {third} AS d USING changed AS c WHERE c.k = d.k AND {_condition(rng, scene, 'd')} "
        "RETURNING d.k, d.a, c.a, c.t"
    )


def _update(rng: random.Random, scene: _Scene, table: str, source: str) -> str:
    return (
        f"UPDATE {table} AS u SET a = (u.a + s.a + {between(rng, 1, 9)}) % 1000 FROM {source} AS s "
        f"WHERE s.k = u.k AND {_condition(rng, scene, 's')} RETURNING u.k, u.a, s.t"
    )


def _old_and_new(rng: random.Random, scene: _Scene) -> str:
    """Return a statement that reads rows as they were before its own update, beside their new values."""
    one, other = some(rng, scene.tables, 2)
    join = pick(rng, ("JOIN", "LEFT JOIN", "FULL JOIN"))
    rows = f"SELECT o.k, o.a, c.a AS b FROM {one} AS o {join} changed AS c ON c.k = o.k"
    return f"WITH changed AS ({_update(rng, scene, one, other)}) {digest(rows)}"


def _unread(rng: random.Random, scene: _Scene) -> str:
    """Return a statement that reads its changes in part or not at all; all changes are made nevertheless."""
    one, other = some(rng, scene.tables, 2)
    change = _delete(rng, scene, one) if chance(rng, 60) else _update(rng, scene, one, other)
    return f"WITH changed AS ({change}) {_UNREAD.pick(rng).format(other)}"


_CHANGES: Weighted[tuple[str, Callable[[random.Random, _Scene], str]]] = Weighted(
    (30, ("moved", _moved)),
    (20, ("followed", _followed)),
    (25, ("old_and_new", _old_and_new)),
    (25, ("unread", _unread)),
)


_OF_TWO = Weighted(
    (35, digest("SELECT k, a, t FROM {1}")),
    (25, digest("SELECT k, m.a, p.a AS b FROM {0} AS m LEFT JOIN {1} AS p USING (k)")),
    (20, digest("SELECT * FROM {0} UNION ALL SELECT * FROM {1}")),
    (20, digest("SELECT * FROM {0} EXCEPT SELECT * FROM {1}")),
)
_UNREAD = Weighted(
    (30, "SELECT count(*) FROM {}"),
    (30, "SELECT EXISTS (SELECT FROM changed)"),
    (20, "SELECT count(*) FROM {} WHERE k = 1 AND k IN (SELECT k FROM changed)"),
    (20, "SELECT count(*) FROM (SELECT FROM changed LIMIT 2) AS q"),
)


def _query(rng: random.Random, scene: _Scene) -> Step:
    """Return a query of the contents that changes left."""
    one, other = some(rng, scene.tables, 2)
    if chance(rng, 50):
        rows = f"SELECT r.k, r.a, r.t FROM {one} AS r{_where(rng, scene)}"
    else:
        join = pick(rng, ("JOIN", "LEFT JOIN", "FULL JOIN"))
        rows = f"SELECT r.k, r.a, o.t FROM {one} AS r {join} {other} AS o ON o.k = r.k{_where(rng, scene)}"
    return Step(digest(rows), Kind.QUERY, tags=("contents",))


def _where(rng: random.Random, scene: _Scene) -> str:
    return where([_condition(rng, scene, "r") for _ in range(_CONDITIONS.pick(rng))])


def _condition(rng: random.Random, scene: _Scene, alias: str) -> str:
    column = pick(rng, ("k", "a"))
    limit = scene.keys if column == "k" else scene.repeat
    return f"{alias}.{column} {_COMPARISONS.pick(rng)} {between(rng, 0, limit)}"
