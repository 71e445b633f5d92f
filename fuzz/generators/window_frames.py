"""Generator `window_frames`: window functions over frames of all kinds, with ties, NULLs and extreme keys.

Results depend on the data alone, although rows with equal keys have no order. RANGE and GROUPS contain all rows with
equal keys or none, and over these only functions run for which the order does not matter. ROWS, and all other
functions, require that `id` is the last key.
"""

import random
from typing import ClassVar, Final, NamedTuple

from fuzz.generators.choices import Stream, Weighted, another, begin, between, chance, pick, some
from fuzz.generators.generator import Generator, Scale
from fuzz.generators.sql.digest import digest
from fuzz.generators.sql.predicates import where
from fuzz.generators.sql.queries import SORT_DIRECTIONS
from oracles.model.case import Case, Kind, Step


class _Key(NamedTuple):
    """A column that RANGE can order by: its type, its value for row g, and the offset of a frame."""

    type: str
    value: str
    offset: str


_DAYS: Final = "{} * interval '1 day'"
_KEYS: Final = {
    "i": _Key("int4", "g % {repeat}", "{}"),
    "h": _Key("int2", "(g % {repeat} - 9)::int2", "{}::int2"),
    "l": _Key("int8", "9223372036854775807 - g % {repeat}", "{}::int8"),
    "n": _Key(
        "numeric", "CASE g % 9 WHEN 1 THEN 'NaN' WHEN 2 THEN '-Infinity' ELSE g % {repeat} / 4.0 END", "{} / 2.0"
    ),
    "f": _Key("float8", "CASE g % 19 WHEN 1 THEN 'Infinity' ELSE g % {repeat} / 8.0 END", "{}::float8"),
    "d": _Key("date", "CASE g % 17 WHEN 1 THEN 'infinity' ELSE date '2024-02-20' + g % {repeat} END", _DAYS),
    "z": _Key("timestamptz", "timestamptz '2024-03-30 12:00Z' + g % {repeat} * interval '5 h'", "{} * interval '9 h'"),
    "y": _Key("interval", "g % {repeat} * interval '1 day 7 h'", _DAYS),
    "c": _Key("time", "time '20:00' + g % {repeat} * interval '8 min'", "{} * interval '1 h'"),
}
_OTHERS: Final = {  # types of other columns, and their values for row g
    "id": ("int4", "g"),
    "p": ("int4", "g % {parts}"),
    "v": ("int4", "nullif(g * 7919 % 101 - 50, g % 50)"),
    "m": ("numeric", "round(g * 7919 % 997 / 7.0, g % 4)"),
    "b": ("bool", "nullif(g % 3, 2)::bool"),
    "t": ("text", "repeat(md5(g::text), {width})"),
}
_AGGREGATES: Final = (
    *("count(*)", "sum(v)", "count(v)", "min(v)", "max(v)", "avg(v)", "sum(m)", "avg(m)", "sum(n)", "max(n)", "sum(l)"),
    *("sum(h)", "sum(y)", "min(d)", "bool_and(b)", "bool_or(b)", "bit_xor(v)", "var_pop(v)", "count(t)", "max(t)"),
)
_RANKS: Final = ("rank()", "dense_rank()", "percent_rank()", "cume_dist()")  # equal for rows with equal keys
_ORDERED: Final = (
    *("row_number()", "first_value(v)", "last_value(v)", "nth_value(v, 3)", "nth_value(v, 1 + id % 4)", "lag(v)"),
    *("lag(v, 3)", "lead(v, p, -1)", "lead(t)", "ntile(4)", "array_agg(v)", "first_value(t)"),
    "string_agg(left(t, 2), ',')",
)
_LIMITED: Final = ("rank()", "dense_rank()", "count(*)", "count(v)")  # that a run condition may end
_PARTITIONS: Final = Weighted((35, "PARTITION BY p"), (35, ""), (20, "PARTITION BY p, b"), (10, "PARTITION BY v % 3"))
_ORDERS: Final = Weighted((45, "total"), (48, "ties"), (7, "none"))
_ENDS: Final = ("UNBOUNDED PRECEDING", "{} PRECEDING", "CURRENT ROW", "{} FOLLOWING", "UNBOUNDED FOLLOWING")
_EXCLUSIONS: Final = Weighted(
    (52, ""), (14, " EXCLUDE CURRENT ROW"), (14, " EXCLUDE GROUP"), (14, " EXCLUDE TIES"), (6, " EXCLUDE NO OTHERS")
)
_OFFSETS: Final = Weighted((25, 1), (20, 0), (20, 2), (20, 5), (15, 30))
_FAR: Final = ("1000000000", "9223372036854775807")
_COMPARISONS: Final = Weighted((35, "<="), (25, "<"), (15, "="), (15, ">"), (10, ">="))
_LIMITS: Final = Weighted((65, "r {0} {1}"), (35, "{1} {0} r"))
_LOOPED: Final = "(VALUES (2), (0), (7)) AS a (k)"
_SETTINGS: Final = ("SET enable_sort = off", "SET enable_incremental_sort = off", "SET enable_hashagg = off")


class _Order(NamedTuple):
    """ORDER BY of a window, the offset that RANGE accepts ("": none), and whether the order is total."""

    sql: str
    offset: str
    is_total: bool


class WindowFrames(Generator):
    """Window functions over a table with ties, NULLs and extreme keys."""

    name: ClassVar[str] = "window_frames"
    cpu_seconds: ClassVar[float] = 1.1
    modes: ClassVar[tuple[str, ...]] = (
        "plain",
        "small_memory",
        "indexes",
        "indexes+small_memory",
        "parallel",
        "extended",
        "prepared_generic",
        "cursor",
        "closed_early",
    )

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case: a table, then queries with one to three windows each."""
        scene = _table(rng, scale)
        scene += [Step(sql) for sql in _SETTINGS if chance(rng, 12)]
        begin(rng, Stream.ACTION)
        steps = [_query(rng)]
        while another(rng, len(steps), scale.queries):
            steps.append(_query(rng))
        return Case(self.name, tuple(scene), tuple(steps))


def _table(rng: random.Random, scale: Scale) -> list[Step]:
    """Return the steps that create, fill, index and perhaps analyze the table."""
    rows, split = between(rng, 0, scale.rows), chance(rng, 20)
    made = {name: (key.type, key.value) for name, key in _KEYS.items()} | _OTHERS
    columns = ", ".join(f"{name} {type_}" for name, (type_, _) in made.items())
    steps = [Step(f"CREATE TABLE w ({columns}){' PARTITION BY RANGE (id)' if split else ''}")]
    if split:
        middle = between(rng, 1, scale.rows)
        bounds = (f"FROM (MINVALUE) TO ({middle})", f"FROM ({middle}) TO (MAXVALUE)")
        steps += [Step(f"CREATE TABLE w_{n} PARTITION OF w FOR VALUES {bound}") for n, bound in enumerate(bounds, 1)]
    numbers = {"repeat": between(rng, 1, scale.rows), "parts": between(rng, 1, 9), "width": between(rng, 0, 24)}
    values = ", ".join(_value(rng, name, value.format(**numbers)) for name, (_, value) in made.items())
    steps.append(Step(f"INSERT INTO w SELECT {values} FROM generate_series(1, {rows}) AS g ORDER BY hashint4(g)"))
    for _ in range(between(rng, 0, 2)):
        named = some(rng, ("id", "p", *_KEYS), between(rng, 1, 3))
        keys = ", ".join(f"{name}{SORT_DIRECTIONS.pick(rng)}" for name in named)
        steps.append(Step(f"CREATE INDEX ON w ({keys})"))
    return [*steps, *([Step("ANALYZE w")] if chance(rng, 60) else ())]


def _value(rng: random.Random, name: str, value: str) -> str:
    """Return the expression for a column's values; some values of a key may be NULL."""
    some_null = name in _KEYS and chance(rng, 40)
    return f"CASE WHEN g % {between(rng, 2, 9)} <> 0 THEN {value} END" if some_null else value


def _query(rng: random.Random) -> Step:
    if chance(rng, 8):
        return _grouped(rng)
    if chance(rng, 22):
        return _limited(rng)
    looped = chance(rng, 20)
    sql = _windows(rng, "a.k" if looped else "")
    if looped:
        rows = f"SELECT a.k, q.* FROM {_LOOPED} CROSS JOIN LATERAL ({sql}) AS q"
        return Step(digest(rows), Kind.QUERY, tags=("looped",))
    if chance(rng, 25):
        return Step(f"{sql} ORDER BY id LIMIT {between(rng, 1, 30)}", Kind.QUERY, ordered=True, tags=("ordered",))
    return Step(digest(sql), Kind.QUERY)


def _windows(rng: random.Random, outer: str) -> str:
    """Return a query with one to three windows; `outer` is a column that may be the offset of their frames."""
    first = (_PARTITIONS.pick(rng), _order(rng))
    windows, values = [], ["id"]
    for number in range(1, between(rng, 1, 3) + 1):
        partition, order = first if number == 1 or chance(rng, 50) else (_PARTITIONS.pick(rng), _order(rng))
        windows.append(f"w{number} AS ({' '.join(filter(None, (partition, order.sql, _frame(rng, order, outer))))})")
        values += [_call(rng, order, f"w{number}") for _ in range(between(rng, 1, 3))]
    return f"SELECT {', '.join(values)} FROM w{_conditions(rng)} WINDOW {', '.join(windows)}"


def _order(rng: random.Random) -> _Order:
    """Return the ORDER BY of a window."""
    kind = _ORDERS.pick(rng)
    keys = some(rng, (*_KEYS, "v", "b"), between(rng, *{"total": (0, 2), "ties": (1, 2), "none": (0, 0)}[kind]))
    keys = (*keys, "id") if kind == "total" else keys
    offset = _KEYS[keys[0]].offset if len(keys) == 1 and keys[0] in _KEYS else "{}" if keys == ("id",) else ""
    by = ", ".join(f"{key}{SORT_DIRECTIONS.pick(rng)}" for key in keys)
    return _Order(f"ORDER BY {by}" if by else "", offset, kind == "total")


def _frame(rng: random.Random, order: _Order, outer: str) -> str:
    """Return the frame of a window with this order; "" is PostgreSQL's default."""
    if chance(rng, 20):
        return ""
    units = (*(("ROWS",) if order.is_total else ()), *(("GROUPS",) if order.sql else ()), "RANGE")
    unit = pick(rng, units)
    offset = order.offset if unit == "RANGE" else "{}"
    places = [place for place, end in enumerate(_ENDS) if offset or "{}" not in end]
    start = pick(rng, places[:-1])
    end = pick(rng, [place for place in places[1:] if place >= start])
    ends = (_ENDS[place].format(_amount(rng, offset, unit, outer)) for place in (start, end))
    return f"{unit} BETWEEN {' AND '.join(ends)}{_EXCLUSIONS.pick(rng)}"


def _amount(rng: random.Random, offset: str, unit: str, outer: str) -> str:
    if unit != "RANGE" and chance(rng, 4):
        return pick(rng, _FAR)
    return offset.format(outer if outer and chance(rng, 70) else _OFFSETS.pick(rng))


def _call(rng: random.Random, order: _Order, window: str) -> str:
    """Return a call of a window function whose value this order determines."""
    kind = rng.randrange(100)
    if kind < 55:
        condition = " FILTER (WHERE v % 3 <> 0)" if chance(rng, 15) else ""
        return f"{pick(rng, _AGGREGATES)}{condition} OVER {window}"
    return f"{pick(rng, _ORDERED if order.is_total and kind < 90 else _RANKS)} OVER {window}"


def _conditions(rng: random.Random) -> str:
    made = [f"{pick(rng, ('v', 'i', 'p', 'id'))} {pick(rng, ('<>', '>', '<'))} {rng.randrange(30)}"]
    return where(made if chance(rng, 35) else [])


def _limited(rng: random.Random) -> Step:
    """Return a query that keeps rows up to a number, so that the executor may stop a partition early."""
    order, partition = _order(rng), _PARTITIONS.pick(rng)
    frame = "" if chance(rng, 60) else _frame(rng, order, "")
    counts = (*_LIMITED, *(("row_number()",) if order.is_total else ()))
    values = [f"{pick(rng, counts)} OVER w1 AS r", *(_call(rng, order, "w1") for _ in range(between(rng, 0, 2)))]
    window = " ".join(filter(None, (partition, order.sql, frame)))
    rows = f"SELECT id, p, {', '.join(values)} FROM w{_conditions(rng)} WINDOW w1 AS ({window})"
    limit = _LIMITS.pick(rng).format(_COMPARISONS.pick(rng), between(rng, 0, 30))
    kept = [limit, *(["p > 1"] if chance(rng, 20) else ())]
    return Step(digest(f"SELECT * FROM ({rows}) AS s{where(kept)}"), Kind.QUERY, tags=("limited",))


def _grouped(rng: random.Random) -> Step:
    """Return a query whose windows run over groups."""
    key = pick(rng, ("p", "b", "v"))
    frame = f"{pick(rng, ('ROWS', 'GROUPS'))} BETWEEN {rng.randrange(4)} PRECEDING AND CURRENT ROW"
    values = f"sum(count(*)) OVER (ORDER BY {key} {frame}), rank() OVER (ORDER BY count(v){SORT_DIRECTIONS.pick(rng)})"
    return Step(digest(f"SELECT {key}, {values} FROM w{_conditions(rng)} GROUP BY 1"), Kind.QUERY, tags=("grouped",))
