"""Generator `rescanned_queries`: sorts, groups, frames, recursions, scans and more, executed once for each outer row.

The row is a parameter of a LIMIT, a frame, a FILTER, a condition of an index, or of one branch only. So nodes keep
results, begin again, or continue, and an earlier execution may have ended early.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from fuzz.generators.choices import Stream, Weighted, another, begin, between, chance, pick, some
from fuzz.generators.generator import Generator, Scale
from fuzz.generators.sql.digest import DIGEST
from fuzz.generators.sql.predicates import where
from fuzz.generators.sql.rescans import digests, existence
from oracles.model.case import Case, Kind, Step

_TABLES: Final = ("t1", "t2", "t3")
_COLUMNS: Final = "id int4, k int4, x int4, n int8, s text"
_KEYS: Final = Weighted(
    (25, "g % {few}"), (30, "g % {many}"), (15, "g"), (15, "nullif(g % {few}, 0)"), (15, "least(g / {many}, {few})")
)
_INDEXES: Final = ("(k)", "(k, x)", "(x, k, id)", "(x)", "(id)", "(k DESC, n)")
_DEAD: Final = ("id <= {}", "id % 3 = 0 AND id > {}", "x = 1 AND id < {}")
_COMPARISONS: Final = Weighted((40, "="), (20, ">="), (20, "<"), (20, "<>"))
_DRIVERS: Final = Weighted(
    (40, "(VALUES (1), (0), (NULL), (3), (1), (NULL), (2), (0))"),
    (20, "generate_series(0, {most})"),
    (20, "generate_series({most}, 0, -1)"),
    (20, "(SELECT x FROM t3 ORDER BY id LIMIT {most})"),
)


class RescannedQueries(Generator):
    """Five tables, and queries of one to three of them for each row of a small relation."""

    name: ClassVar[str] = "rescanned_queries"
    modes: ClassVar[tuple[str, ...]] = (
        "plain",
        "indexes",
        "small_memory",
        "loop_only+indexes",
        "merge_only+small_memory",
        "hash_spilling",
        "indexes+small_memory",
        "prepared_generic",
        "extended",
        "indexes+cursor",
        "closed_early",
    )
    cpu_seconds: ClassVar[float] = 0.4

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case: tables with dead rows and dropped columns, and queries of them."""
        scene = [step for table in _TABLES for step in _table(rng, table, scale)]
        scene += [*_pairs(rng), *_numbers(rng)]
        scene += [Step(sql) for sql in _SETTINGS if chance(rng, 15)]
        begin(rng, Stream.ACTION)
        steps = [_query(rng)]
        while another(rng, len(steps), scale.queries):
            steps.append(_query(rng))
        return Case(self.name, tuple(scene), tuple(steps))


_SETTINGS: Final = ("SET enable_sort = off", "SET enable_hashagg = off", "SET enable_material = off")


def _table(rng: random.Random, name: str, scale: Scale) -> list[Step]:
    rows = between(rng, 0, pick(rng, (scale.rows, scale.rows // 10, scale.rows * 6)))
    dropped = chance(rng, 25)
    steps = [Step(f"CREATE TABLE {name} ({'gone int4, ' if dropped else ''}{_COLUMNS})")]
    steps += [Step(f"ALTER TABLE {name} DROP gone")] if dropped else []
    key = _KEYS.pick(rng).format(few=between(rng, 2, 6), many=between(rng, 7, 90))
    text = f"repeat(md5(g::text), {pick(rng, (0, 1, 4))})"
    values = f"g, {key}, g * 7 % {between(rng, 1, 6)}, g % {between(rng, 2, 50)}, {text}"
    steps.append(Step(f"INSERT INTO {name} SELECT {values} FROM generate_series(1, {rows}) AS g"))
    steps += [Step(f"CREATE INDEX ON {name} {keys}") for keys in _INDEXES if chance(rng, 30)]
    if chance(rng, 35):
        steps.append(Step(f"DELETE FROM {name} WHERE {pick(rng, _DEAD).format(between(rng, 1, max(1, rows)))}"))
    return [*steps, *([Step(f"ANALYZE {name}")] if chance(rng, 75) else ())]


def _pairs(rng: random.Random) -> list[Step]:
    """Return the steps for a table with a key of two columns, neither of which is unique."""
    series = f"generate_series(0, {between(rng, 3, 200)}) AS k, generate_series(0, {between(rng, 1, 3)}) AS n"
    return [
        Step("CREATE TABLE pairs (k int4, n int4, PRIMARY KEY (k, n))"),
        Step(f"INSERT INTO pairs SELECT k, n FROM {series}"),
        Step("ANALYZE pairs"),
    ]


def _numbers(rng: random.Random) -> list[Step]:
    """Return the steps for a table of numbers that are equal, but look different; few enough that a cache pays."""
    number = f"g % {between(rng, 2, 6)} + CASE WHEN g % {pick(rng, (5, 7))} = 0 THEN 0.0 ELSE 0.00 END"
    create = f"CREATE TABLE numbers AS SELECT {number} AS x FROM generate_series(1, {between(rng, 5, 60)}) AS g"
    return [Step(create), Step("ANALYZE numbers")]


@dataclass(frozen=True, slots=True)
class _Rows:
    """A query with the outer row's value `o.x`, and a total order of its rows, or "" if they repeat."""

    kind: str
    sql: str
    order: str = ""


def _query(rng: random.Random) -> Step:
    if chance(rng, 7):
        return pick(rng, (_single, _spelled))(rng)
    rows = _MAKERS.pick(rng)(rng)
    driver = _driver(rng)
    form = pick(rng, _FORMS)
    return Step(form(rng, rows, driver), Kind.QUERY, tags=(rows.kind, form.__name__.removeprefix("_")))


def _driver(rng: random.Random) -> str:
    """Return the small relation `o (x)`."""
    return f"{_DRIVERS.pick(rng).format(most=between(rng, 2, 9))} AS o (x)"


def _single(rng: random.Random) -> Step:
    """Return subqueries for one row, with or without the outer value, which fail if there are two."""
    driver = _driver(rng)
    ids = pick(rng, ("o.x, {}", "o.x + 1, {}", "{}, 0", "{0}, {0} + 1")).format(between(rng, 0, 40))
    single = f"FROM {pick(rng, _TABLES)} WHERE {pick(rng, ('id', 'id', 'k'))} IN ({ids})"
    form = pick(rng, ("SELECT o.x, (SELECT id {}) FROM {}", "SELECT o.x, (o.x, 2) < (SELECT id, k {}) FROM {}"))
    return Step(form.format(single, driver), Kind.QUERY, may_fail=True, tags=("single",))


def _spelled(rng: random.Random) -> Step:
    """Return a query that depends on the decimal places of an outer value, by which rows are also found."""
    column = pick(rng, ("k", "x", "id"))
    rows = f"SELECT count(*) AS c, min(o.x::text || left(s, 1)) AS w FROM {pick(rng, _TABLES)} WHERE {column} = o.x"
    sql = f"SELECT o.x::text, s.c, s.w FROM numbers AS o CROSS JOIN LATERAL ({rows}) AS s"
    return Step(sql, Kind.QUERY, tags=("spelled",))


def _compared(rng: random.Random, column: str = "x") -> str:
    return f"{column} {_COMPARISONS.pick(rng)} o.x"


def _some_rows(rng: random.Random, percent: int) -> str:
    """Return a WHERE clause, which has the outer value with a probability of `percent`."""
    conditions = [_compared(rng)] if chance(rng, percent) else []
    conditions += [f"id <= {between(rng, 1, 300)}"] if chance(rng, 25) else []
    return where(conditions)


def _number(rng: random.Random, default: int) -> str:
    """Return a number that mostly depends on the outer value, and is never NULL or negative."""
    return f"coalesce(o.x, {default})" if chance(rng, 75) else str(between(rng, 0, 3))


def _sorted(rng: random.Random) -> _Rows:
    order = f"{pick(rng, ('k', 'x', 'x, k', 'k DESC NULLS LAST', 'n, x'))}, id"
    return _Rows("sorted", f"SELECT id, k, x, n FROM {pick(rng, _TABLES)}{_some_rows(rng, 30)}", order)


def _combined(rng: random.Random) -> _Rows:
    branches = [f"SELECT k, x FROM {pick(rng, _TABLES)}{_some_rows(rng, percent)}" for percent in (25, 40)]
    return _Rows("combined", f"{branches[0]} {_COMBINING.pick(rng)} {branches[1]}")


_COMBINING: Final = Weighted(
    (20, "EXCEPT ALL"), (20, "INTERSECT ALL"), (20, "UNION"), (20, "EXCEPT"), (20, "INTERSECT")
)


def _appended(rng: random.Random) -> _Rows:
    branches = [
        f"SELECT id, k, {number} AS x FROM {pick(rng, _TABLES)}{_some_rows(rng, 40)}"
        for number in range(between(rng, 2, 3))
    ]
    return _Rows("appended", " UNION ALL ".join(branches), f"{pick(rng, ('k, id', 'id'))}, x")


def _windowed(rng: random.Random) -> _Rows:
    unit = pick(rng, ("ROWS", "GROUPS", "RANGE"))
    order = "id" if unit == "RANGE" else pick(rng, ("k, id", "x, id"))
    bounds = " AND ".join(bound.format(_number(rng, 1)) for bound in pick(rng, _FRAMES))
    frame = f"{unit} BETWEEN {bounds}{pick(rng, ('', '', *_EXCLUDED))}"
    partition = pick(rng, ("", "PARTITION BY x ", "PARTITION BY k "))
    function = pick(rng, _FUNCTIONS).format(_number(rng, 1))
    sql = f"SELECT id, k, x, {function} OVER ({partition}ORDER BY {order} {frame}) AS v FROM {pick(rng, _TABLES)}"
    return _Rows("windowed", f"{sql}{_some_rows(rng, 25)}", "id")


_FRAMES: Final = (
    ("{} PRECEDING", "{} FOLLOWING"), ("{} PRECEDING", "{} PRECEDING"), ("{} FOLLOWING", "{} FOLLOWING"),
    ("UNBOUNDED PRECEDING", "{} PRECEDING"), ("UNBOUNDED PRECEDING", "{} FOLLOWING"), ("{} PRECEDING", "CURRENT ROW"),
    ("CURRENT ROW", "{} FOLLOWING"), ("{} FOLLOWING", "UNBOUNDED FOLLOWING"),
)  # fmt: skip
_EXCLUDED: Final = (" EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES")
_FUNCTIONS: Final = (
    *("sum(id)", "sum(n)", "count(*)", "min(id)", "first_value(id)", "last_value(id)"),
    *("nth_value(id, 1 + {})", "lag(id, {})", "lead(id, {}, 0)", "ntile(1 + {})"),
)


def _grouped(rng: random.Random) -> _Rows:
    keys = pick(rng, (("k",), ("id",), ("k", "x"), ("id", "n"), ("n", "k")))
    form = pick(rng, ("{}", "{}", "ROLLUP ({})", "CUBE ({})")).format(", ".join(keys))
    made = some(rng, _AGGREGATES, between(rng, 1, 3))
    values = [
        f"{aggregate.format(_number(rng, 1), condition=_compared(rng))} AS v{n}" for n, aggregate in enumerate(made)
    ]
    having = f" HAVING count(*) {_COMPARISONS.pick(rng)} o.x" if chance(rng, 20) else ""
    table = f"{pick(rng, _TABLES)}{_some_rows(rng, 12)}"
    return _Rows("grouped", f"SELECT {', '.join([*keys, *values])} FROM {table} GROUP BY {form}{having}")


_AGGREGATES: Final = (
    *("count(*) FILTER (WHERE {condition})", "sum(n) FILTER (WHERE {condition})", "sum(id + {})", "max(s)", "count(*)"),
    *("count(DISTINCT x + {})", "array_agg(id ORDER BY id) FILTER (WHERE {condition})", "bool_or({condition})"),
)


def _distinct(rng: random.Random) -> _Rows:
    table = f"{pick(rng, _TABLES)}{_some_rows(rng, 30)}"
    if chance(rng, 50):
        return _Rows("distinct", f"SELECT DISTINCT k, x + {_number(rng, 0)} AS v FROM {table}", "k, v")
    # OFFSET 0 keeps the subquery, whose order decides which rows remain.
    return _Rows(
        "distinct", f"SELECT * FROM (SELECT DISTINCT ON (k) k, id, x FROM {table} ORDER BY k, id OFFSET 0) AS d"
    )


def _scanned(rng: random.Random) -> _Rows:
    columns = pick(rng, ("id, k, x", "id, k", "k", "id, r IS NOT NULL AS v", "id, r IS NULL AS v"))
    numbers = [between(rng, 0, 12) for _ in range(4)]
    conditions = [
        each.format(*numbers, comparison=_COMPARISONS.pick(rng)) for each in some(rng, _SCANS, between(rng, 1, 2))
    ]
    return _Rows("scanned", f"SELECT {columns} FROM {pick(rng, _TABLES)} AS r{where(conditions)}")


_SCANS: Final = (
    *("k = o.x", "k {comparison} o.x::int8", "k IN (0, {0}, o.x)", "k IN (1, 2, 3, {0}) AND k {comparison} {1}::int8"),
    *("k = ANY (ARRAY[o.x, {0}, {1}])", "k IN (0, 1, {0}) AND k < o.x", "(k = o.x OR x = {0})", "(k, id) > (o.x, {1})"),
    *("id BETWEEN o.x AND o.x * {2}", "x = o.x AND k {comparison} {0}", "k IS NULL", "n = o.x", "x IN (o.x, o.x + 1)"),
    *("k IS NOT DISTINCT FROM o.x", "(k IN (o.x, {0}) OR id < {1})"),
    *(
        "k = ANY (ARRAY[o.x, {0}, {1}]::int8[]) AND k {comparison} {2}::int2",
        "n IN (o.x, {0}) AND n {comparison} {1}::int2",
    ),
    # beyond the range of the type of the array
    "k IN ({0}, {1}, o.x) AND k {comparison} (o.x::int8 << 32) + {2}",
)


def _looked_up(rng: random.Random) -> _Rows:
    """Return a join with rows that are unique by values of two other tables."""
    first, second = (f"{pick(rng, _TABLES)} AS {alias}" for alias in ("a", "b"))
    joined = f"{first} JOIN {second} ON b.id = a.{pick(rng, ('n', 'k', 'id'))}"
    outer = pick(rng, ("LEFT JOIN", "JOIN"))
    on = f"c.k = a.{pick(rng, ('k', 'x', 'n'))} AND c.n = {pick(rng, ('b.x', 'b.x % 3', 'b.n % 2', 'b.k'))}"
    conditions = [_compared(rng, "a.x")] if chance(rng, 60) else []
    sql = f"SELECT a.id AS i, b.id AS j, c.n AS v FROM {joined} {outer} pairs AS c ON {on}{where(conditions)}"
    return _Rows("looked_up", sql, "i, j, v")


def _recursed(rng: random.Random) -> _Rows:
    """Return a recursion whose steps add at most as many rows as they read, since ids are unique."""
    first = [f"id < {between(rng, 2, 60)}", *([_compared(rng)] if chance(rng, 40) else [])]
    start = f"SELECT id, k, 0 AS d FROM {pick(rng, _TABLES)}{where(first)}"
    link = pick(rng, _LINKS).format(*(between(rng, 2, 40) for _ in range(2)))
    deep = f"r.d < {pick(rng, (f'{between(rng, 1, 8)}', '1 + o.x', 'coalesce(o.x, 4)'))}"
    step = f"SELECT t.id, t.k, r.d + 1 FROM r JOIN {pick(rng, _TABLES)} AS t ON t.id = {link} WHERE {deep}"
    union = pick(rng, ("UNION ALL", "UNION"))
    ended = " CYCLE id SET again USING path" if chance(rng, 12) else ""
    sql = f"WITH RECURSIVE r (id, k, d) AS ({start} {union} {step}){ended} SELECT id, k, d FROM r"
    # Executions without an order may end early, in the middle of a step.
    return _Rows("recursed", sql, "d, id, k" if chance(rng, 30) else "")


_LINKS: Final = ("r.id + 1", "(r.id + r.k) % {0}", "r.id * {0} % {1}", "r.k", "r.id - 1")


_MAKERS: Final[Weighted[Callable[[random.Random], _Rows]]] = Weighted(
    (16, _sorted), (14, _combined), (10, _appended), (16, _windowed), (16, _grouped), (8, _distinct), (14, _scanned),
    (6, _looked_up), (8, _recursed),
)  # fmt: skip


def _bounded(rng: random.Random, rows: _Rows) -> str:
    """Return the first rows in their order, if they have one. A filter above the sort hides the bound from it.

    The number is never NULL: after an execution without a bound, a bound for an incremental sort is a fault of
    PostgreSQL 17 and 18.
    """
    if not rows.order or chance(rng, 15):
        return rows.sql
    if chance(rng, 40):
        inner = f"{rows.sql} ORDER BY {rows.order} OFFSET 0"
        filtered = f"SELECT * FROM ({inner}) AS f WHERE num_nonnulls(f) > 0"
        return f"{filtered} ORDER BY {rows.order} LIMIT {_number(rng, 500)} * {between(rng, 1, 9)}"
    offset = f" OFFSET {_number(rng, 0)}" if chance(rng, 15) else ""
    return f"{rows.sql} ORDER BY {rows.order} LIMIT {_number(rng, 4)} + {pick(rng, (0, 1, 5, 40))}{offset}"


def _all(rng: random.Random, rows: _Rows, driver: str) -> str:
    return digests(_bounded(rng, rows), driver)


def _lateral(rng: random.Random, rows: _Rows, driver: str) -> str:
    """Return a loop over the rows themselves. The rows of each execution are in no order."""
    joined = f"SELECT o.x AS ox, s.* FROM {driver} LEFT JOIN LATERAL ({_bounded(rng, rows)}) AS s ON true"
    return f"SELECT {DIGEST} FROM ({joined}) AS q"


def _exists(rng: random.Random, rows: _Rows, driver: str) -> str:
    return existence(rng, rows.sql, driver)


def _early(rng: random.Random, rows: _Rows, driver: str) -> str:
    """Return executions of which some end early, at any rows. These are only counted."""
    if rows.order:
        return _all(rng, rows, driver)
    value = f"CASE WHEN o.x IS NULL THEN {DIGEST} ELSE count(*)::text END"
    return (
        f"SELECT o.x, (SELECT {value} FROM ({rows.sql} LIMIT o.x{pick(rng, ('', ' + 1', ' * 7'))}) AS q) FROM {driver}"
    )


_FORMS: Final[Sequence[Callable[[random.Random, _Rows, str], str]]] = (_all, _lateral, _exists, _early)
