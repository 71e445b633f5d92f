"""ANALYZE of local tables: kinds of columns, targets, options, trees without children, and relations that it skips.

All rows are in the sample, so the statistics are a function of the data, and the case compares them. A table has fewer
rows than the sample of the lowest target. Members of a tree have one page each, so that each has its share of it.

VERBOSE prints times in newer versions. So another session executes it.
"""

import random
from collections.abc import Callable, Iterator

from fuzz.generators import file_tables, loopback
from fuzz.generators.choices import Weighted, between, chance, pick, some
from fuzz.generators.foreign_analyze.own_types import OWN_TYPES, created
from oracles.model.case import Step

_TABLE, _TREE, _SPARSE, _OWN = "l1", "l2", "l3", "l4"
_ROWS = (1, 250)  # the lowest target samples 300
_ROWS_OF_TREE = (0, 60)  # with four pages, each has a quarter of 300

# Values of xid and its arrays have equality without order, those of json and point have neither.
_TYPES = {
    "int4": "({})::int4",
    "xid": "({})::text::xid",
    "xid[]": "array_fill(({})::text::xid, ARRAY[{{}}])",
    "text": "repeat('v' || ({}), {{}})",
    "json": "to_json(repeat('v' || ({}), {{}}))",
    "point": "point({}, 1)",
}
# NULLs alone, one value, unique ones, few, and many unique ones beside a frequent one
_NUMBERS = Weighted(
    (25, "g"), (15, "NULL::int4"), (10, "7"), (15, "g % 5"), (10, "g % 40"), (10, "nullif(g % 9, 0)"),
    (10, "greatest(g, 40)"), (10, "CASE WHEN g % 4 > 0 THEN g END"), (10, "g / 3"),
)  # fmt: skip
# repetitions in a value: a short header, a long one, more than the width that ANALYZE compares, and a toasted value
_WIDTHS = Weighted((40, 1), (20, 60), (25, 600), (15, 3000))
_TARGETS = (2, 0, 1, 10, 1000, -1)
_LARGER = 1000  # more than the target of all columns together
_DISTINCT = ("5", "-0.25", "0", "1")
_STATISTICS = ("", "(ndistinct)", "(dependencies)", "(mcv)", "(ndistinct, mcv)")
_COMPARED = "null_frac, avg_width, n_distinct, most_common_freqs"


def local_analyses(rng: random.Random) -> Iterator[Step]:
    """Yield steps that create a local table and a tree, analyze them in several ways, and read the statistics."""
    if chance(rng, 30):
        yield Step("SET default_statistics_target = 1")
    if chance(rng, 70):
        yield from _table(rng)
    if chance(rng, 60):
        yield from _tree(rng)
    if chance(rng, 55):
        yield from _own_types(rng)
    if chance(rng, 15):
        yield from _sparse()


def _table(rng: random.Random) -> Iterator[Step]:
    names = [f"c{number}" for number in range(1, 1 + len(_TYPES))]
    declared = ", ".join(f"{name} {type_}" for name, type_ in zip(names, _TYPES, strict=True))
    yield Step(f"CREATE TABLE {_TABLE} (k int4, {declared})")
    if chance(rng, 30):
        yield Step(f"ALTER TABLE {_TABLE} ALTER COLUMN {pick(rng, ('c3', 'c4', 'c5'))} SET STORAGE EXTERNAL")
    values = ", ".join(_value(rng, template) for template in _TYPES.values())
    yield Step(f"INSERT INTO {_TABLE} SELECT g % 10, {values} FROM generate_series(1, {between(rng, *_ROWS)}) AS g")
    for change in some(rng, _CHANGES, between(rng, 1, len(_CHANGES))):
        yield from change(rng, names)
    yield from _analyzed(rng, _TABLE, names)
    if chance(rng, 70):
        yield from (Step(sql) for sql in loopback.ELSEWHERE[:2])
        for skipped in some(rng, _SKIPPED, between(rng, 1, 3)):
            yield from skipped(rng)


def _value(rng: random.Random, template: str) -> str:
    value = template.format(_NUMBERS.pick(rng))
    if chance(rng, 25):
        return value.format(_WIDTHS.pick(rng))
    return f"CASE WHEN g % 3 > 0 THEN {value.format(_WIDTHS.pick(rng))} ELSE {value.format(1)} END"


def _other_target(rng: random.Random, names: list[str]) -> Iterator[Step]:
    for name in some(rng, names, 3):
        yield Step(f"ALTER TABLE {_TABLE} ALTER COLUMN {name} SET STATISTICS {pick(rng, _TARGETS)}")


def _known_distinct(rng: random.Random, names: list[str]) -> Iterator[Step]:
    yield Step(f"ALTER TABLE {_TABLE} ALTER COLUMN {pick(rng, names)} SET (n_distinct = {pick(rng, _DISTINCT)})")


def _expression_index(rng: random.Random, names: list[str]) -> Iterator[Step]:
    where = " WHERE k > 3" if chance(rng, 40) else ""
    yield Step(f"CREATE INDEX l1_index ON {_TABLE} ((k + 1), c1){where}")
    if chance(rng, 70):
        target = _LARGER if chance(rng, 60) else 0
        yield Step(f"ALTER INDEX l1_index ALTER COLUMN 1 SET STATISTICS {target}", tags=("local.index_target",))


def _extended(rng: random.Random, names: list[str]) -> Iterator[Step]:
    yield Step(f"CREATE STATISTICS l1_stats {pick(rng, _STATISTICS)} ON k, c1 FROM {_TABLE}")
    if chance(rng, 70):
        target = _LARGER if chance(rng, 70) else 0
        yield Step(f"ALTER STATISTICS l1_stats SET STATISTICS {target}", tags=("local.extended_target",))


_CHANGES: tuple[Callable[[random.Random, list[str]], Iterator[Step]], ...] = (
    _other_target,
    _known_distinct,
    _expression_index,
    _extended,
)


def _analyzed(rng: random.Random, table: str, names: list[str]) -> Iterator[Step]:
    """Yield ANALYZE, also of some columns or under VACUUM, and queries of the statistics."""
    some_columns = f"ANALYZE {table} ({', '.join(some(rng, names, 2))})"
    for sql in some(rng, (f"ANALYZE {table}", some_columns, f"VACUUM (ANALYZE) {table}"), between(rng, 1, 2)):
        yield Step(sql, tags=("local.table",))
    yield Step(f"SELECT attname, inherited, {_COMPARED} FROM pg_stats WHERE tablename IN ('{table}', '{table}_index')")
    yield Step(f"SELECT n_distinct, dependencies, most_common_freqs FROM pg_stats_ext WHERE tablename = '{table}'")


def _refused_columns(rng: random.Random) -> Iterator[Step]:
    columns, condition = pick(rng, (("k, k", "duplicate_column"), ("missing", "undefined_column")))
    yield Step(
        f"DO $$ BEGIN ANALYZE {_TABLE} ({columns}); EXCEPTION WHEN {condition} THEN RAISE NOTICE '%', SQLSTATE; END $$",
        tags=("local.columns",),
    )


def _view(rng: random.Random) -> Iterator[Step]:
    yield Step(f"CREATE VIEW l1_view AS SELECT k, c1 FROM {_TABLE}")
    yield Step(pick(rng, ("ANALYZE l1_view", "VACUUM (ANALYZE) l1_view")), tags=("local.view",))


def _elsewhere(rng: random.Random) -> Iterator[Step]:
    """Yield steps in which another session analyzes a temporary table, or the parent of one.

    It skips both, and analyzes the parent.
    """
    yield Step("CREATE TEMPORARY TABLE l1_temporary AS SELECT 1 AS k")
    own = "pg_my_temp_schema()::regnamespace || '.l1_temporary'"
    yield Step(f"SELECT elsewhere('ANALYZE VERBOSE ' || {own})", tags=("local.elsewhere",))
    yield Step(f"CREATE TEMPORARY TABLE l1_child () INHERITS ({_TABLE})")
    yield Step(f"SELECT elsewhere('ANALYZE VERBOSE {_TABLE}')")
    yield Step("DROP TABLE l1_child")


def _file(rng: random.Random) -> Iterator[Step]:
    """Yield ANALYZE of a file table, which may be a child of the table. It skips the output of a program."""
    yield from map(Step, file_tables.PROLOGUE)
    child = chance(rng, 50)
    yield Step(
        file_tables.file_table("l1_file", f"() INHERITS ({_TABLE})" if child else "(k int4)", _rows_of_file(rng))
    )
    yield Step("ANALYZE l1_file", tags=("local.file",))
    if child:
        yield Step(f"ANALYZE {_TABLE}", tags=("local.file_child",))
    yield Step("DROP FOREIGN TABLE l1_file")


def _rows_of_file(rng: random.Random) -> str:
    """Return the option for a program, whose output ANALYZE never reads, or for an empty file.

    The program prints nothing, so that the table can be read as part of a tree with other columns.
    """
    return "program 'true'" if chance(rng, 70) else file_tables.EMPTY


def _toast(rng: random.Random) -> Iterator[Step]:
    """Yield VACUUM (ANALYZE) of the TOAST table, which ANALYZE skips. Another session executes its computed text."""
    yield Step(
        f"SELECT elsewhere('VACUUM (ANALYZE) ' || reltoastrelid::regclass) FROM pg_class"
        f" WHERE oid = '{_TABLE}'::regclass",
        tags=("local.toast",),
    )


def _locked(rng: random.Random) -> Iterator[Step]:
    """Yield ANALYZE (SKIP_LOCKED) of another session, while this one has a lock that lets it find the table."""
    yield Step("BEGIN")
    yield Step(f"LOCK TABLE {_TABLE} IN SHARE MODE")
    yield Step(f"SELECT elsewhere('ANALYZE (SKIP_LOCKED) {_TABLE}')", tags=("local.locked",))
    yield Step("COMMIT")


_SKIPPED: tuple[Callable[[random.Random], Iterator[Step]], ...] = (
    _refused_columns, _view, _elsewhere, _file, _toast, _locked,
)  # fmt: skip


def _own_types(rng: random.Random) -> Iterator[Step]:
    types = some(rng, OWN_TYPES, between(rng, 2, len(OWN_TYPES)))
    for own in types:
        yield from created(rng, own)
    names = [f"c{number}" for number, _ in enumerate(types, 1)]
    declared = ", ".join(f"{name} {own.name}" for name, own in zip(names, types, strict=True))
    yield Step(f"CREATE TABLE {_OWN} (k int4, {declared})")
    values = ", ".join(f"{own.value.format(_NUMBERS.pick(rng))}::{own.name}" for own in types)
    yield Step(f"INSERT INTO {_OWN} SELECT g, {values} FROM generate_series(1, {between(rng, *_ROWS)}) AS g")
    yield from _analyzed(rng, _OWN, ["k", *names])


def _sparse() -> Iterator[Step]:
    """Yield ANALYZE of a tree in which a child has so few of the pages that none of its rows is in the sample.

    Each page of the other child has one row, all with the same value. So the statistics do not depend on the sample.
    """
    yield Step("SET default_statistics_target = 1")
    yield Step(f"CREATE TABLE {_SPARSE} (k int4, v text)")
    yield Step(f"CREATE TABLE {_SPARSE}_few () INHERITS ({_SPARSE})")
    yield Step(f"CREATE TABLE {_SPARSE}_many () INHERITS ({_SPARSE}) WITH (fillfactor = 10)")
    yield Step(f"INSERT INTO {_SPARSE}_few VALUES (1, 'few')")
    yield Step(f"INSERT INTO {_SPARSE}_many SELECT g % 3, repeat('m', 700) FROM generate_series(1, 650) AS g")
    yield Step(f"ANALYZE {_SPARSE}", tags=("local.sparse",))
    yield Step(f"SELECT {_COMPARED} FROM pg_stats WHERE tablename = '{_SPARSE}' AND inherited AND attname = 'v'")


_SHAPES = Weighted((40, "partitioned"), (20, "inherited"), (20, "no partition"), (20, "no child"))
_COLUMNS = "(k int4, v int4, x xid)"
_FOR = "PARTITION OF l2 FOR VALUES IN"


def _tree(rng: random.Random) -> Iterator[Step]:
    shape = _SHAPES.pick(rng)
    yield from (Step(sql) for sql in _members(shape))
    if shape == "partitioned" and chance(rng, 70):
        yield from map(Step, file_tables.PROLOGUE)
        yield Step(
            file_tables.file_table(f"{_TREE}_file", f"{_FOR} (7)", _rows_of_file(rng)), tags=("local.file_partition",)
        )
    if shape != "no partition":
        number = _NUMBERS.pick(rng)
        rows = f"SELECT g % 3, {number}, ({number})::text::xid FROM generate_series(1, {between(rng, *_ROWS_OF_TREE)})"
        yield Step(f"INSERT INTO {_TREE} {rows} AS g")
    options = some(rng, [f"{name} = {pick(rng, _DISTINCT)}" for name in ("n_distinct_inherited", "n_distinct")], 1)
    if shape != "inherited":
        options = tuple(option for option in options if "inherited" in option)
    if options and chance(rng, 60):
        yield Step(f"ALTER TABLE {_TREE} ALTER COLUMN v SET ({options[0]})", tags=("local.distinct_inherited",))
    if shape == "inherited" and chance(rng, 30):
        yield Step(f"CREATE TEMPORARY TABLE {_TREE}_own () INHERITS ({_TREE})")
    yield from _analyzed(rng, _TREE, ["k", "v", "x"])
    if chance(rng, 40):
        yield from _by_guest()


def _members(shape: str) -> tuple[str, ...]:
    """Return the statements that create a tree.

    Without partitions, its only partition is partitioned. Without children, the only child is dropped.
    """
    if shape == "partitioned":
        return (
            f"CREATE TABLE {_TREE} {_COLUMNS} PARTITION BY LIST (k)",
            *(f"CREATE TABLE {_TREE}_{number} {_FOR} ({number})" for number in range(2)),
            f"CREATE TABLE {_TREE}_rest PARTITION OF {_TREE} DEFAULT",
        )
    if shape == "no partition":
        partition = f"CREATE TABLE {_TREE}_1 {_FOR} (1) PARTITION BY LIST (v)"
        return (f"CREATE TABLE {_TREE} {_COLUMNS} PARTITION BY LIST (k)", partition)
    gone = (f"DROP TABLE {_TREE}_1",) if shape == "no child" else (f"INSERT INTO {_TREE}_1 VALUES (1, 2, '3')",)
    return (f"CREATE TABLE {_TREE} {_COLUMNS}", f"CREATE TABLE {_TREE}_1 () INHERITS ({_TREE})", *gone)


def _by_guest() -> Iterator[Step]:
    """Yield ANALYZE of the tree by a role that may maintain the parent only. It skips partitions with a warning."""
    yield Step(f"GRANT MAINTAIN ON {_TREE} TO {loopback.GUEST}")
    yield Step(f"SET ROLE {loopback.GUEST}")
    yield Step(f"ANALYZE {_TREE}", tags=("local.guest",))
    yield Step("RESET ROLE")
