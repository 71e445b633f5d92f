"""The table `t` and its indexes, the statements that create them, and queries for which the indexes can be scanned."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

from fuzz.generators.choices import Weighted, between, chance, pick, shuffled, some
from fuzz.generators.generator import Scale
from fuzz.generators.sql import same_column
from fuzz.generators.sql.digest import digest
from fuzz.generators.sql.predicates import where
from oracles.model.case import Kind, Step

_COLUMNS = 'id {id}, k {k}, t {t} COLLATE "C", d {d}, f {f}, r int4range, a int[], p text'
_TYPES = {
    "id": Weighted((60, "int4"), (25, "int8"), (15, "int2")),
    "k": Weighted((50, "int4"), (25, "int8"), (25, "int2")),
    "t": Weighted((75, "text"), (25, "name")),
    "d": Weighted((50, "date"), (25, "timestamp"), (25, "timestamptz")),
    "f": Weighted((50, "float8"), (50, "float4")),
}
_ROW = (
    "g, nullif(g % {repeat}, 3), 'v' || lpad((g % {repeat})::text, {width}, '0'), date '2024-01-01' + g / 3, "
    "g % {repeat} / 10.0, int4range(g % {repeat}, g % {repeat} + g % 5), ARRAY[g % 7, g % {repeat}], repeat('x', {pad})"
)
_WIDTHS = Weighted((60, 3), (25, 40), (15, 400))  # a btree page has room for 20 values of 400 characters
_NAME_WIDTH = 40  # greatest width of texts of the type name, which has 63 characters
_PADS = Weighted((40, 1), (35, 100), (25, 1500))  # few rows in a page, so that whole pages become empty
_CREATE = Weighted((80, "CREATE TABLE"), (10, "CREATE UNLOGGED TABLE"), (10, "CREATE TEMPORARY TABLE"))
_FILL = Weighted((60, ""), (40, " WITH (fillfactor = 30)"))


@dataclass(frozen=True, slots=True)
class _Method:
    """An index method, and keys and options that it accepts. The first word of a key is its first column.

    Keys have the types of columns in braces.
    """

    name: str
    keys: tuple[str, ...]
    options: tuple[str, ...] = ("", " WITH (fillfactor = 10)")


_BTREE = _Method(
    "btree",
    (
        *("k", "k, id", "k DESC NULLS LAST, t, id", "t, k, id", "d, id", "id, k", "(k % 10), id", "r, k", "a"),
        *("f, id", "t, d, id"),
    ),
    (
        *("", " WITH (fillfactor = 10)", " WITH (deduplicate_items = off)", " INCLUDE (id, d)"),
        *(" WHERE k > 5", " WHERE id % 3 <> 0"),
    ),
)
_BRIN = _Method(
    "brin",
    ("id", "d", "k", "t", "k {k}_minmax_multi_ops", "t {t}_bloom_ops", "r", "f"),
    (" WITH (pages_per_range = 1)", " WITH (pages_per_range = 3)"),
)
_METHODS = Weighted(
    (46, _BTREE),
    (15, _BRIN),
    (12, _Method("gin", ("a",), ("", " WITH (fastupdate = off)", " WITH (gin_pending_list_limit = 64)"))),
    (12, _Method("gist", ("r",), ("", " WITH (fillfactor = 10)", " INCLUDE (id)"))),
    (10, _Method("spgist", ("t", "r"), ("", " WITH (fillfactor = 10)", " INCLUDE (id)"))),
    (5, _Method("hash", ("k", "t", "d"))),
)


@dataclass(frozen=True, slots=True)
class Index:
    """An index of the table."""

    name: str
    method: str
    key: str
    options: str

    @property
    def column(self) -> str:
        """Return the first column."""
        return self.key_columns[0]

    @property
    def key_columns(self) -> list[str]:
        """Return the columns of the key in their order, also those of expressions."""
        return [key.lstrip(" (").split()[0] for key in self.key.split(",")]

    @property
    def columns(self) -> list[str]:
        """Return the first column and `id`, which index-only scans of many indexes return; no two rows are equal."""
        return sorted({self.column, "id"})

    @property
    def sql(self) -> str:
        """Return the statement that creates the index."""
        return f"CREATE INDEX {self.name} ON t USING {self.method} ({self.key}){self.options}"


@dataclass(slots=True)
class Table:
    """The table while its statements are made."""

    types: Mapping[str, str]  # of columns whose types differ between tables
    indexes: tuple[Index, ...]
    unique: bool  # whether the index t_id makes `id` unique
    repeat: int  # number of different values
    width: int  # of texts
    pad: int  # length of the padding
    added: int  # greatest number of rows that an INSERT adds
    next_id: int = 1  # greater than each `id` of the statements so far, so that no row repeats one

    def insert(self, first: int, last: int) -> str:
        """Return the statement that inserts the rows of these numbers."""
        row = _ROW.format(repeat=self.repeat, width=self.width, pad=self.pad)
        return f"INSERT INTO t SELECT {row} FROM generate_series({first}, {last}) AS g"

    def text(self, rng: random.Random) -> str:
        """Return a constant expression for a value of the column `t`."""
        return f"('v' || lpad('{rng.randrange(self.repeat)}', {self.width}, '0'))"


def make_table(rng: random.Random, scale: Scale) -> Table:
    """Return a table with one to four indexes besides that of `id`."""
    indexes = [_index(rng, number) for number in range(1, between(rng, 1, 4) + 1)]
    repeat = between(rng, 4, max(4, scale.rows if chance(rng, 50) else scale.rows // 20))
    unique, width, pad = chance(rng, 50), _WIDTHS.pick(rng), _PADS.pick(rng)
    types = {column: choice.pick(rng) for column, choice in _TYPES.items()}
    if width > _NAME_WIDTH or any(index.method == "spgist" and index.column == "t" for index in indexes):
        types["t"] = "text"
    typed = tuple(replace(index, key=index.key.format(**types)) for index in indexes)
    return Table(types, typed, unique, repeat, width, pad, max(1, scale.rows // 3))


def _index(rng: random.Random, number: int) -> Index:
    method = _METHODS.pick(rng)
    return Index(f"i{number}", method.name, pick(rng, method.keys), pick(rng, method.options))


def create(rng: random.Random, table: Table, scale: Scale) -> list[Step]:
    """Return the steps that create the table, and fill it before or after they create its indexes."""
    rows = between(rng, 1, scale.rows)
    table.next_id = rows + 1
    filled = [Step(table.insert(1, rows))]
    indexed = [Step(index.sql) for index in table.indexes]
    if table.unique:
        indexed.append(Step("CREATE UNIQUE INDEX t_id ON t (id)"))
    steps = indexed + filled if chance(rng, 40) else filled + indexed
    columns = _COLUMNS.format(**table.types)
    return [Step(f"{_CREATE.pick(rng)} t ({columns}){_FILL.pick(rng)}"), *steps]


_COMPARED = ("id", "k", "t", "d", "f", "r", "a")
_OTHERS = Weighted((55, 0), (35, 1), (10, 2))
_DIRECTIONS = Weighted((60, ""), (30, " DESC"), (10, " NULLS FIRST"))
_PROBES = (
    "SELECT o.n, q.id FROM (VALUES ({value}), ({other}), (NULL)) AS o (n)"
    " LEFT JOIN LATERAL (SELECT id FROM t WHERE k = o.n ORDER BY id DESC LIMIT 3) AS q ON true"
)
_ORDERED = "SELECT {keys} FROM t{where} ORDER BY {order} LIMIT {limit}"
_FORMS = Weighted(
    (40, digest("SELECT {columns} FROM t{where}")),
    (20, _ORDERED),
    (8, "SELECT count(*), min(t), max(t), min(id), max(k) FROM t{where}"),
    (4, "SELECT min(k), max(k) FROM t"),
    (8, digest("SELECT {column}, count(*) FROM t{where} GROUP BY 1")),
    (12, digest(_PROBES)),
    (8, digest("SELECT {columns} FROM t WHERE {column} IN (SELECT {column} FROM t{where})")),
)


def make_query(rng: random.Random, table: Table) -> Step:
    """Return a query for one of the indexes."""
    index = pick(rng, table.indexes)
    columns = index.columns if chance(rng, 65) else some(rng, (*_COMPARED, "length(p)"), 3)
    form = _FORMS.pick(rng)
    sql = form.format(
        columns=", ".join(columns),
        column=index.column,
        keys=", ".join(index.columns),
        where=_conditions(rng, table, index),
        value=rng.randrange(table.repeat),
        other=between(rng, 0, table.repeat),
        order=", ".join(f"{column}{_DIRECTIONS.pick(rng)}" for column in shuffled(rng, index.columns)),
        limit=between(rng, 1, 30),
    )
    return Step(sql, Kind.QUERY, ordered=form is _ORDERED, tags=(index.method,))


def _conditions(rng: random.Random, table: Table, index: Index) -> str:
    """Return WHERE with a condition on the index's first column, and perhaps conditions on other columns."""
    if chance(rng, 30):
        return where(_several(rng, table, index))
    others = some(rng, [column for column in _COMPARED if column != index.column], _OTHERS.pick(rng))
    conditions = [condition(rng, table, column) for column in (index.column, *others)]
    if others and chance(rng, 25):
        return where([f"({' OR '.join(conditions)})"])
    return where(conditions)


def _several(rng: random.Random, table: Table, index: Index) -> list[str]:
    """Return several conditions on one column of the index, or on each of its first two."""
    first, *rest = index.key_columns
    if not rest or chance(rng, 60):
        return _on_column(rng, table, first)
    return [*(_on_column(rng, table, first) if chance(rng, 70) else ()), *_on_column(rng, table, rest[0])]


def _on_column(rng: random.Random, table: Table, column: str) -> list[str]:
    """Return several conditions on the column, or one if its type has no family.

    None of them is a row comparison, which must not stand beside an array: corpus/upstream/30bd832d13bb.sql.
    """
    last = max(1, table.next_id - 1)
    of_column = {
        "id": (same_column.INTEGERS, last),
        "k": (same_column.INTEGERS, table.repeat),
        "t": (same_column.texts(min(table.width, _NAME_WIDTH)), table.repeat),
        "d": (same_column.DATES, last // 3),
        "f": (same_column.FLOATS, table.repeat),
    }
    if column not in of_column:
        return [condition(rng, table, column)]
    family, most = of_column[column]
    return same_column.conditions(rng, column, family, most)


def condition(rng: random.Random, table: Table, column: str) -> str:
    """Return a condition on a column for which indexes of some method can be scanned."""
    low = rng.randrange(table.repeat)
    high = low + between(rng, 0, 9)
    number = between(rng, 0, table.next_id)
    day = f"date '2024-01-01' + {number // 3}"
    text, other_text = table.text(rng), table.text(rng)
    made = {
        "id": (f"id <= {number}", f"id = {number}", f"id BETWEEN {number} AND {number + 20}", "id % 2 = 0"),
        # no array beside the row comparison: corpus/upstream/30bd832d13bb.sql
        "k": (
            *(f"k = {low}", f"k < {high}", f"k BETWEEN {low} AND {high}", f"k IN ({low}, {high}, {low + 20})"),
            *(f"k = ANY ('{{{low},{high},NULL}}'::int[])", "k IS NULL", "k IS NOT NULL", f"k % 10 = {low % 10}"),
            f"(k, id) > ({low}, {number})",
        ),
        "t": (
            *(f"t = {text}", f"t >= {text}", f"t IN ({text}, {other_text})", f"t BETWEEN {text} AND {other_text}"),
            *("t LIKE 'v0%'", "t ^@ 'v00'"),
        ),
        "d": (f"d = {day}", f"d >= {day}", f"d BETWEEN {day} AND {day} + {high - low}"),
        "f": (f"f = {low / 10}", f"f < {high / 10}::float4", f"f BETWEEN {low / 10} AND {high / 10}", "f IS NULL"),
        "r": (
            *(f"r && int4range({low}, {high})", f"r @> {low}", f"r <@ int4range({low}, {high})", "isempty(r)"),
            *(f"r = int4range({low}, {high})", f"r -|- int4range({low}, {high})", f"r < int4range({low}, {high})"),
        ),
        "a": (
            *(f"a @> ARRAY[{low}]", f"a && ARRAY[{low}, {high}]", f"a <@ ARRAY[{low}, {low % 7}, 1, 2, 3]"),
            *(f"a = ARRAY[{low % 7}, {low}]", f"a @> ARRAY[{low % 7}, {low}]", "a @> '{}'"),
        ),
    }
    return pick(rng, made[column])
