"""Generator `proved_conditions`: partial indexes and CHECK constraints, and conditions that imply or refute them.

The planner scans a partial index if it proves that the query's condition implies the index's one, and skips a table
whose constraint the condition refutes (predtest.c). A wrong proof loses rows. Conditions of queries are those of the
scene, changed a little: another operator, a neighbouring constant or one of another type, one more operand, NOT. So
most proofs just succeed or just fail.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from fuzz.generators.choices import Stream, Weighted, another, begin, between, chance, pick, some
from fuzz.generators.generator import Generator, Scale
from fuzz.generators.sql.digest import digest
from oracles.model.case import Case, Kind, Step

_TABLE: Final = 'CREATE TABLE {} (id int4, a int4, b int2, c int8, d date, s text COLLATE "C", f bool)'
_COLUMNS: Final = Weighted((30, "a"), (14, "b"), (14, "c"), (12, "d"), (14, "s"), (16, "f"))
_LITERALS: Final = {
    "a": ("{}", "{}", "{}::int8", "{}::int2"),
    "b": ("{}", "{}::int2", "{}::int8"),
    "c": ("{}", "{}::int8", "{}::int2"),
    "d": ("date '2024-01-0{}'", "date '2024-01-0{}'", "timestamp '2024-01-0{} 00:00'"),
    "s": ("'v{}'",),
}
_LOWEST, _HIGHEST = 1, 8  # constants; the columns' values are 0 to 9
_OPERATORS: Final = ("<", "<=", "=", ">=", ">", "<>")
_COMMUTED: Final = {"<": ">", "<=": ">=", "=": "=", ">=": "<=", ">": "<", "<>": "<>"}
_OPPOSITE: Final = {"<": ">=", "<=": ">", "=": "<>", ">=": "<", ">": "<=", "<>": "="}
_OF_BOOLEANS: Final = ("f", "NOT f", "f IS TRUE", "f IS NOT TRUE", "f IS FALSE", "f IS NOT FALSE", "f IS UNKNOWN")
_UNARY: Final = ("{} IS NULL", "{} IS NOT NULL")
_OF_LISTS: Final = (
    "{} IN ({})",
    "{} NOT IN ({})",
    "{} = ANY (ARRAY[{}])",
    "{} <> ALL (ARRAY[{}])",
    "{} > ANY (ARRAY[{}])",
)


@dataclass(frozen=True, slots=True)
class _Atom:
    """A condition on one column: `form` has places for the column and, unless it is unary, for constants."""

    column: str
    form: str
    constants: tuple[int, ...] = ()
    literal: int = 0  # which of the column's kinds of literals

    @property
    def sql(self) -> str:
        literals = (_LITERALS[self.column][self.literal].format(number) for number in self.constants)
        return self.form.format(self.column, ", ".join(literals))


@dataclass(frozen=True, slots=True)
class _Several:
    """Conditions connected by AND or OR, or the negation of one."""

    connective: str
    parts: tuple["_Atom | _Several", ...]

    @property
    def sql(self) -> str:
        if self.connective == "NOT":
            return f"NOT ({self.parts[0].sql})"
        return "(" + f" {self.connective} ".join(part.sql for part in self.parts) + ")"


_Condition = _Atom | _Several


def _number(rng: random.Random) -> int:
    return between(rng, _LOWEST, _HIGHEST)


def _atom(rng: random.Random) -> _Atom:
    column = _COLUMNS.pick(rng)
    if column == "f":
        return _Atom(column, pick(rng, _OF_BOOLEANS))
    if chance(rng, 15):
        return _Atom(column, pick(rng, _UNARY))
    literal = rng.randrange(len(_LITERALS[column]))
    if chance(rng, 15):
        numbers = tuple(sorted(_number(rng) for _ in range(between(rng, 1, 4))))
        return _Atom(column, pick(rng, _OF_LISTS), numbers, literal)
    return _Atom(column, f"{{}} {pick(rng, _OPERATORS)} {{}}", (_number(rng),), literal)


def _condition(rng: random.Random) -> _Condition:
    if chance(rng, 65):
        return _atom(rng)
    if chance(rng, 15):
        return _Several("NOT", (_atom(rng),))
    return _Several(pick(rng, ("AND", "OR")), tuple(_atom(rng) for _ in range(between(rng, 2, 3))))


def _changed(rng: random.Random, condition: _Condition) -> _Condition:
    """Return a condition that is like another one, often with the same proofs."""
    if isinstance(condition, _Several) and chance(rng, 70):
        position = rng.randrange(len(condition.parts))
        parts = list(condition.parts)
        parts[position] = _changed(rng, parts[position])
        return replace(condition, parts=tuple(parts))
    if isinstance(condition, _Several) and len(condition.parts) > 1 and chance(rng, 50):
        return pick(rng, condition.parts)
    return _CHANGES.pick(rng)(rng, condition)


def _kept(_rng: random.Random, condition: _Condition) -> _Condition:
    return condition


def _neighbouring(rng: random.Random, condition: _Condition) -> _Condition:
    """Return the condition with other constants, of another type; lists may have more or fewer."""
    if isinstance(condition, _Several) or not condition.constants:
        return condition
    numbers = [min(max(number + pick(rng, (-1, 0, 0, 1)), _LOWEST), _HIGHEST) for number in condition.constants]
    if "(" in condition.form and chance(rng, 50):
        numbers = [*some(rng, numbers, between(rng, 1, len(numbers)))] if chance(rng, 60) else [*numbers, _number(rng)]
    return replace(condition, constants=tuple(numbers), literal=rng.randrange(len(_LITERALS[condition.column])))


def _operated(rng: random.Random, condition: _Condition) -> _Condition:
    """Return the condition with another operator, and the same constant or a neighbour."""
    if isinstance(condition, _Several):
        return condition
    if condition.column == "f":
        return _Atom("f", pick(rng, _OF_BOOLEANS))
    if len(condition.constants) != 1 or chance(rng, 10):
        return _Atom(condition.column, pick(rng, _UNARY))
    form = f"{{}} {pick(rng, _OPERATORS)} {{}}"
    if chance(rng, 12):
        form = f"{{}} IS {pick(rng, ('', 'NOT '))}DISTINCT FROM {{}}"
    changed = replace(condition, form=form)
    return changed if chance(rng, 60) else _neighbouring(rng, changed)


def _rewritten(rng: random.Random, condition: _Condition) -> _Condition:
    """Return an equivalent condition: commuted, negated, or as a list of one value."""
    operator = condition.form[3:-3] if isinstance(condition, _Atom) and condition.form[-3:] == " {}" else ""
    if isinstance(condition, _Several) or operator not in _COMMUTED:
        return _Several("NOT", (_Several("NOT", (condition,)),))
    if chance(rng, 40):
        return _Several("NOT", (replace(condition, form=f"{{}} {_OPPOSITE[operator]} {{}}"),))
    if chance(rng, 30):
        return replace(condition, form=f"{{}} {operator} ANY (ARRAY[{{}}])")
    return replace(condition, form=f"{{1}} {_COMMUTED[operator]} {{0}}")


def _widened(rng: random.Random, condition: _Condition) -> _Condition:
    return _Several(pick(rng, ("AND", "AND", "OR")), (condition, _atom(rng)))


_CHANGES: Final[Weighted[Callable[[random.Random, _Condition], _Condition]]] = Weighted(
    (18, _kept), (26, _operated), (22, _neighbouring), (16, _rewritten), (18, _widened)
)


@dataclass(frozen=True, slots=True)
class _Scene:
    steps: tuple[Step, ...]
    conditions: tuple[_Condition, ...]  # of indexes and constraints
    unique: tuple[_Condition, ...]  # of unique indexes on `id`


def _scene(rng: random.Random, scale: Scale) -> _Scene:
    conditions = tuple(_condition(rng) for _ in range(between(rng, 1, 5)))
    statements = [_TABLE.format("t"), _filled(rng, "t", between(rng, 1, scale.rows), "true")]
    statements += _indexed(rng, conditions)
    unique = tuple(condition for condition in conditions if chance(rng, 20))
    statements += [f"CREATE UNIQUE INDEX ON t (id) WHERE {condition.sql}" for condition in unique]
    constrained = tuple(_condition(rng) for _ in range(between(rng, 0, 3)))
    for number, condition in enumerate(constrained, 1):
        name = f"t_{number}"
        statements.append(f"CREATE TABLE {name} (CHECK ({condition.sql})) INHERITS (t)")
        statements.append(_filled(rng, name, between(rng, 1, scale.rows), f"({condition.sql}) IS NOT FALSE"))
    statements += ["ANALYZE t"] if chance(rng, 80) else []
    statements += ["SET constraint_exclusion = on"] if chance(rng, 25) else []
    statements += [sql for sql in _SETTINGS if chance(rng, 15)]
    return _Scene(tuple(map(Step, statements)), (*conditions, *constrained), unique)


_SETTINGS: Final = ("SET enable_seqscan = off", "SET enable_bitmapscan = off", "SET enable_indexscan = off")


def _filled(rng: random.Random, table: str, rows: int, kept: str) -> str:
    """Return the statement that fills a table. Each column but `id` has ten values and NULL."""
    factors = [pick(rng, (1, 3, 7, 9)) for _ in range(5)]
    numbers = [f"nullif((g * {factor} + {between(rng, 0, 9)}) % 11, 10)" for factor in factors]
    a, b, c, d, s = (number if chance(rng, 75) else f"coalesce({number}, 0)" for number in numbers)
    boolean = pick(rng, ("g % 3 = 0", "nullif(g % 3, 2) = 0", "g % 2 = 0"))
    row = f"g AS id, {a} AS a, {b} AS b, {c} AS c, date '2024-01-01' + {d} - 1 AS d, 'v' || {s} AS s, {boolean} AS f"
    return f"INSERT INTO {table} SELECT * FROM (SELECT {row} FROM generate_series(1, {rows}) AS g) AS q WHERE {kept}"


def _indexed(rng: random.Random, conditions: Sequence[_Condition]) -> list[str]:
    return [f"CREATE INDEX ON t ({pick(rng, _KEYS)}) WHERE {condition.sql}" for condition in conditions]


_KEYS: Final = ("a", "id", "a, id", "b", "c, id", "d", "s", "(a + b)", "id) INCLUDE (a")


def _query(rng: random.Random, scene: _Scene) -> Step:
    near = _changed(rng, pick(rng, scene.conditions))
    if chance(rng, 25):
        near = _Several("AND", (near, _changed(rng, pick(rng, scene.conditions))))
    form = _FORMS.pick(rng)
    key = pick(rng, ("a", "c", "s", "d"))
    sql = form.format(condition=near.sql, key=key, limit=between(rng, 1, 20), number=_number(rng))
    return Step(sql, Kind.QUERY, ordered=form is _ORDERED, tags=("near",))


_ORDERED: Final = "SELECT {key}, id FROM ONLY t WHERE {condition} ORDER BY {key}, id LIMIT {limit}"
_FORMS: Final = Weighted(
    (34, digest("SELECT id, a, s FROM t WHERE {condition}")),
    (14, digest("SELECT id, {key} FROM ONLY t WHERE {condition}")),
    (12, _ORDERED),
    (10, "SELECT count(*), min({key}), max({key}) FROM t WHERE {condition}"),
    (10, digest("SELECT n, id FROM (VALUES (1), ({number}), (NULL)) AS v (n) LEFT JOIN t ON n = a AND {condition}")),
    (8, digest("SELECT {key}, count(*) FROM t WHERE {condition} GROUP BY 1 HAVING count(*) > 1")),
    (6, "SELECT n FROM generate_series(0, 9) AS n WHERE NOT EXISTS (SELECT FROM t WHERE a = n AND {condition})"),
    (6, digest("SELECT x.id, y.id AS other FROM t AS x LEFT JOIN ONLY t AS y USING (id) WHERE x.a = {number} AND "
               "EXISTS (SELECT FROM t WHERE id = x.id AND {condition})")),
)  # fmt: skip


def _change(rng: random.Random, scene: _Scene) -> list[Step]:
    """Return a change of rows with its result, which is rolled back."""
    condition = _changed(rng, pick(rng, scene.conditions)).sql
    sql = pick(rng, ("DELETE FROM t WHERE {} RETURNING id", "UPDATE t SET s = s WHERE {} RETURNING id"))
    steps = [Step(sql.format(condition))]
    if scene.unique:
        # An index that is not inferred would refuse rows.
        inferred = f" (id) WHERE {scene.unique[0].sql}" if len(scene.unique) == 1 else ""
        row = f"SELECT id, a, b, c, d, s, f FROM ONLY t WHERE id < {between(rng, 2, 40)}"
        steps = [
            Step(f"INSERT INTO t {row} ON CONFLICT{inferred} DO NOTHING"),
            Step("SELECT id, count(*) FROM ONLY t GROUP BY 1", Kind.QUERY),
        ]
    return [Step("BEGIN"), *steps, Step("ROLLBACK")]


class ProvedConditions(Generator):
    """A table with partial indexes and constrained children, and conditions near those of the scene."""

    name: ClassVar[str] = "proved_conditions"
    cpu_seconds: ClassVar[float] = 0.4
    modes: ClassVar[tuple[str, ...]] = (
        "plain",
        "indexes",
        "indexes+extended",
        "prepared_custom",
        "prepared_generic",
        "indexes+parallel",
        "indexes+cursor",
        "indexes+merge_only",
    )

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case: the tables with their indexes, then queries and changes."""
        scene = _scene(rng, scale)
        begin(rng, Stream.ACTION)
        steps = [_query(rng, scene)]
        while another(rng, len(steps), scale.queries):
            steps += _change(rng, scene) if chance(rng, 8) else [_query(rng, scene)]
        return Case(self.name, scene.steps, tuple(steps))
