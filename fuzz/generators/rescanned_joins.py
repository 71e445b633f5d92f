"""Generator `rescanned_joins`: joins of all types that are executed once for each row of an outer query.

The row is a parameter of the left side, of the right side, of both, or of a condition above the join. So the executor
keeps, rebuilds or continues hash tables, sorts, tuple stores and the subplans of each side. Some executions end early.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final

from fuzz.generators.choices import Stream, Weighted, another, begin, between, chance, pick
from fuzz.generators.generator import Generator, Scale
from fuzz.generators.sql.digest import DIGEST
from fuzz.generators.sql.predicates import where
from fuzz.generators.sql.rescans import digests, existence
from oracles.model.case import Case, Kind, Step

_TABLES: Final = ("t1", "t2", "t3")
_KEYS: Final = Weighted((40, "g % {few}"), (30, "g % {many}"), (15, "g"), (10, "{few}"), (5, "NULL::int4"))
_JOINS: Final = Weighted(
    (10, "inner"), (15, "left"), (15, "right"), (18, "full"), (14, "semi"), (20, "anti"), (8, "not_in")
)
_SQL_OF_JOIN: Final = {"inner": "JOIN", "left": "LEFT JOIN", "right": "RIGHT JOIN", "full": "FULL JOIN"}
_PLACES: Final = Weighted((30, "left"), (28, "right"), (18, "both"), (16, "above"), (8, "none"))
_DRIVERS: Final = Weighted(
    (50, "(VALUES (1), (0), (1), (3), (NULL), (2), (0))"),
    (25, "generate_series(0, {most})"),
    (25, "(SELECT x FROM t3 ORDER BY id LIMIT {most})"),
)
_COMPARISONS: Final = Weighted((50, "="), (20, "<>"), (15, ">="), (15, "<"))
_RESIDUALS: Final = Weighted(
    (54, ""), (16, " AND l.x <= r.x"), (13, " AND l.id % 3 <> r.id % 3"), (17, " AND l.p IS DISTINCT FROM r.p")
)
_SETTINGS: Final = ("SET enable_memoize = off", "SET enable_material = off", "SET enable_hashagg = off")


class RescannedJoins(Generator):
    """Three tables with few values of two columns, and joins of two of them for each row of a small relation."""

    name: ClassVar[str] = "rescanned_joins"
    modes: ClassVar[tuple[str, ...]] = (
        "hash_only",
        "plain",
        "merge_only",
        "merge_only+small_memory",
        "loop_only",
        "loop_only+indexes",
        "hash_spilling",
        "hash_only+prepared_generic",
        "hash_only+extended",
        "indexes+small_memory",
        "hash_only+cursor",
        "closed_early",
    )

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case: tables, perhaps partitioned or indexed, and queries over them."""
        last = between(rng, scale.rows // 2, 2 * scale.rows) if chance(rng, 20) else None
        contents = [_content(rng, scale) if last is None else _runs(rng, last) for _ in _TABLES]
        scene = [step for table, content in zip(_TABLES, contents, strict=True) for step in _table(rng, table, content)]
        scene += [Step(sql) for sql in _SETTINGS if chance(rng, 12)]
        scene += [] if last is None else _sorts_on_disk(rng)
        begin(rng, Stream.ACTION)
        steps = [_query(rng)]
        while another(rng, len(steps), scale.queries):
            steps.append(_query(rng))
        return Case(self.name, tuple(scene), tuple(steps))


@dataclass(frozen=True, slots=True)
class _Content:
    """Number of a table's rows, and SQL of their join key and padding."""

    rows: int
    key: str
    padding: str


def _content(rng: random.Random, scale: Scale) -> _Content:
    """Return rows with few, many or no join keys."""
    rows = between(rng, 0, pick(rng, (scale.rows, scale.rows // 10)))
    key = _KEYS.pick(rng).format(few=between(rng, 1, 5), many=between(rng, 6, 40))
    key = f"CASE WHEN g % {between(rng, 2, 9)} <> 0 THEN {key} END" if chance(rng, 35) else key
    return _Content(rows, key, f"repeat(md5(g::text), {pick(rng, (0, 1, 3, 12))})")


_SORTED: Final = 350_000  # bytes of a table's rows, of which a parameter may select a part
_LONGEST: Final = 40  # repetitions in padding that is not compressed
_RUNS: Final = Weighted(
    (40, "least(g, {last})"),
    (20, "least(greatest(g, {length}), {last})"),
    (20, "CASE WHEN g BETWEEN {middle} AND {middle} + {length} THEN {middle} ELSE least(g, {last}) END"),
    (20, "least(g, {last}) / {length}"),
)


def _runs(rng: random.Random, last: int) -> _Content:
    """Return rows whose sort exceeds 64 kB, with runs of equal keys at the beginning, in the middle or at the end.

    `last` is the greatest key of most tables, so a merge join returns to rows at the end of a sort.
    """
    rows = last + between(rng, 0, 30)
    key = _RUNS.pick(rng).format(last=last, length=between(rng, 2, 20), middle=between(rng, 1, max(1, last)))
    key = f"CASE WHEN g % {between(rng, 2, 9)} <> 0 THEN {key} END" if chance(rng, 20) else key
    return _Content(rows, key, f"repeat(md5(g::text), {min(_LONGEST, _SORTED // (32 * max(1, rows)) + 1)})")


def _sorts_on_disk(rng: random.Random) -> list[Step]:
    """Return the settings for merge joins of sorts on disk, in any mode, mostly without Material above them."""
    settings = ["work_mem = '64kB'", "enable_mergejoin = on", "enable_hashjoin = off", "enable_nestloop = off"]
    settings += ["enable_material = off"] if chance(rng, 70) else []
    return [Step(f"SET {setting}") for setting in settings]


def _table(rng: random.Random, name: str, content: _Content) -> list[Step]:
    """Return the steps that create, fill and perhaps index and analyze a table.

    `k` joins, `x` is compared with parameters, and `p` takes memory.
    """
    split = chance(rng, 25)
    by = pick(rng, ("RANGE (x)", "LIST (x)", "HASH (k)"))
    type_ = pick(rng, ("int4", "int8"))
    columns = f"id int4, k {type_}, x int4, p text"
    steps = [Step(f"CREATE TABLE {name} ({columns}){f' PARTITION BY {by}' if split else ''}")]
    steps += _partitions(rng, name, by) if split else []
    values = f"g, {content.key}, g * 7 % {between(rng, 1, 6)}, {content.padding}"
    steps.append(Step(f"INSERT INTO {name} SELECT {values} FROM generate_series(1, {content.rows}) AS g"))
    steps += [Step(f"CREATE INDEX ON {name} ({keys})") for keys in ("k", "x, k", "k, id") if chance(rng, 25)]
    return [*steps, *([Step(f"ANALYZE {name}")] if chance(rng, 70) else ())]


def _partitions(rng: random.Random, name: str, by: str) -> list[Step]:
    middle = between(rng, 1, 3)
    bounds = {
        "RANGE (x)": (f"FROM (MINVALUE) TO ({middle})", f"FROM ({middle}) TO (MAXVALUE)"),
        "LIST (x)": (f"IN (0, {middle})", "IN (NULL)"),
        "HASH (k)": ("WITH (MODULUS 2, REMAINDER 0)", "WITH (MODULUS 2, REMAINDER 1)"),
    }[by]
    parts = [f"FOR VALUES {bound}" for bound in bounds] + (["DEFAULT"] if by != "HASH (k)" else [])
    return [Step(f"CREATE TABLE {name}_{n} PARTITION OF {name} {part}") for n, part in enumerate(parts, 1)]


@dataclass(frozen=True, slots=True)
class _Rows:
    """A query of joined rows with the outer row's value `o.x`, and those of its columns that identify a row."""

    kind: str
    sql: str
    keys: tuple[str, ...]


def _query(rng: random.Random) -> Step:
    if chance(rng, 7):
        return _recursive(rng)
    rows, driver = _joined(rng), f"{_DRIVERS.pick(rng).format(most=between(rng, 2, 9))} AS o (x)"
    form = pick(rng, tuple(_FORMS))
    sql = _FORMS[form](rng, rows, driver)
    if form != "rows" and chance(rng, 30):
        sql += f" WHERE o.x {_COMPARISONS.pick(rng)} {between(rng, 0, 4)}"
    return Step(sql, Kind.QUERY, tags=(rows.kind, form))


def _joined(rng: random.Random) -> _Rows:
    kind, place = _JOINS.pick(rng), _PLACES.pick(rng)
    left = _side(rng, parameter=place in ("left", "both"))
    right = _side(rng, parameter=place in ("right", "both"))
    residual = _RESIDUALS.pick(rng)
    both = f"{left} AS l", f"{right} AS r"
    if kind in _SQL_OF_JOIN:
        above = [f"coalesce(l.x, r.x) {_COMPARISONS.pick(rng)} o.x"] if place == "above" else []
        tables = f"{both[0]} {_SQL_OF_JOIN[kind]} {both[1]} ON l.k = r.k"
        # A full join needs a condition that hash or merge joins can use, and nothing else in it.
        tables += "" if kind == "full" else residual
        columns = "l.id AS i, l.p AS lp, r.id AS j, r.p AS rp"
        return _Rows(kind, f"SELECT {columns} FROM {tables}{where(above)}", ("i", "j"))
    condition = {
        "semi": f"EXISTS (SELECT FROM {both[1]} WHERE l.k = r.k{residual})",
        "anti": f"NOT EXISTS (SELECT FROM {both[1]} WHERE l.k = r.k{residual})",
        "not_in": f"l.k NOT IN (SELECT r.k FROM {both[1]})",
    }[kind]
    above = [f"l.x {_COMPARISONS.pick(rng)} o.x"] if place == "above" else []
    return _Rows(kind, f"SELECT l.id AS i, l.p AS lp FROM {both[0]}{where([condition, *above])}", ("i",))


def _side(rng: random.Random, *, parameter: bool) -> str:
    """Return a subquery with the columns id, k, x and p; with `parameter`, its rows depend on `o.x`."""
    table, other = pick(rng, _TABLES), pick(rng, _TABLES)
    conditions = [f"x {_COMPARISONS.pick(rng)} o.x"] if parameter else []
    conditions += [f"id <= {between(rng, 1, 40)}"] if chance(rng, 30) else []
    return f"({pick(rng, _SIDES.options) if chance(rng, 45) else _PLAIN})".format(
        table=table, other=other, where=where(conditions), few=between(rng, 1, 20), low=between(rng, 0, 2)
    )


_PLAIN: Final = "SELECT id, k, x, p FROM {table}{where}"
_SIDES: Final = Weighted(
    (1, "SELECT min(id) AS id, k, min(x) AS x, max(p) AS p FROM {table}{where} GROUP BY k"),
    (1, "SELECT DISTINCT 0 AS id, k, x, '' AS p FROM {table}{where}"),
    (1, "SELECT id, k, x, p FROM {table}{where} UNION ALL SELECT -id, k, x, p FROM {other} WHERE x > {low}"),
    (1, "SELECT id, k, x, p FROM {table}{where} UNION SELECT id, k, x, p FROM {other} WHERE x > {low}"),
    (1, "SELECT id, k, x, p FROM {table}{where} ORDER BY k, id LIMIT {few}"),
    # The order stays, even if nothing above needs it; an index on k makes the sort incremental.
    (1, "SELECT id, k, x, p FROM {table}{where} ORDER BY k, p, id OFFSET 0"),
    (1, "SELECT id, k, x, p FROM {table}{where} ORDER BY k DESC, id DESC OFFSET 0"),
    (1, "WITH c AS MATERIALIZED (SELECT id, k, x, p FROM {table}{where}) SELECT * FROM c WHERE id % 5 <> {low}"),
    # Two readers of one CTE: the one that runs first may be either.
    (
        2,
        "WITH c AS MATERIALIZED (SELECT id, k, x, p FROM {table}{where}) "
        "SELECT a.id, b.k, a.x, b.p FROM c AS a JOIN c AS b ON b.id = a.id + {low}",
    ),
    (
        1,
        "WITH c AS MATERIALIZED (SELECT id, k, x, p FROM {table}{where}) "
        "SELECT * FROM c WHERE EXISTS (SELECT FROM c AS d WHERE d.k = c.k AND d.id > c.id + {low})",
    ),
    (
        1,
        "SELECT id, k, x, p FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY id) AS n FROM {table}{where}) "
        "AS w WHERE n <= {few}",
    ),
    (
        1,
        "SELECT s.id, s.k, s.x, u.p FROM (SELECT id, k, x FROM {table}{where}) AS s "
        "JOIN {other} AS u ON u.k = s.k AND u.id <= {few}",
    ),
)


def _scalar(rng: random.Random, rows: _Rows, driver: str) -> str:
    return digests(rows.sql, driver)


def _lateral(rng: random.Random, rows: _Rows, driver: str) -> str:
    return f"SELECT o.x, s.d FROM {driver} CROSS JOIN LATERAL (SELECT {DIGEST} AS d FROM ({rows.sql}) AS q) AS s"


def _rows(rng: random.Random, rows: _Rows, driver: str) -> str:
    """Return a loop over the rows themselves. OFFSET 0 keeps the planner from flattening the subquery."""
    joined = f"SELECT o.x, s.* FROM {driver} LEFT JOIN LATERAL ({rows.sql} OFFSET 0) AS s ON true"
    return f"SELECT {DIGEST} FROM ({joined}) AS q"


def _exists(rng: random.Random, rows: _Rows, driver: str) -> str:
    return existence(rng, rows.sql, driver)


def _any(rng: random.Random, rows: _Rows, driver: str) -> str:
    """Return executions that end at the first row with a value."""
    return f"SELECT o.x, o.x = ANY (SELECT q.i % 4 FROM ({rows.sql}) AS q) FROM {driver}"


def _first(rng: random.Random, rows: _Rows, driver: str) -> str:
    """Return executions of which only the first rows in order are kept; rows with equal keys look the same."""
    keys = ", ".join(f"q.{key}" for key in rows.keys)
    limited = f"SELECT ({keys}, 0)::text FROM ({rows.sql}) AS q ORDER BY {keys} LIMIT {between(rng, 1, 6)}"
    return f"SELECT o.x, ARRAY({limited}) FROM {driver}"


_FORMS: Final[dict[str, Callable[[random.Random, _Rows, str], str]]] = {
    "scalar": _scalar,
    "lateral": _lateral,
    "rows": _rows,
    "exists": _exists,
    "any": _any,
    "first": _first,
}


def _recursive(rng: random.Random) -> Step:
    """Return a recursion whose join has new rows on one side in each round. It ends, because it has few values."""
    kind, modulus = pick(rng, ("inner", "left", "anti")), between(rng, 3, 50)
    side = f"{_side(rng, parameter=False)} AS s"
    tables = {
        "inner": f"r JOIN {side} ON s.k = r.k",
        "left": f"r LEFT JOIN {side} ON s.k = r.k",
        "anti": f"r WHERE NOT EXISTS (SELECT FROM {side} WHERE s.k = r.k)",
    }[kind]
    value = "r.k" if kind == "anti" else "coalesce(s.id, r.k)"
    more = f"SELECT ({value} * 3 + 1)::int8 % {modulus} FROM {tables}"
    sql = f"WITH RECURSIVE r (k) AS (SELECT 1::int8 UNION {more}) SELECT count(*), sum(k) FROM r"
    return Step(sql, Kind.QUERY, tags=(kind, "recursive"))
