"""Generator `foreign_analyze`: ANALYZE of foreign tables with all sampling methods.

Remote relations are of all kinds. Their catalog entries are correct, outdated, wrong or contradictory. A DO block sets
each option, and catches the error of a postgres_fdw that does not support it. Relations change between two ANALYZEs.

The remote server may have lost its cumulative statistics: it counts no live rows, though pg_class has rows and pages.
So does a server after a crash, a hot standby, and a standby after its promotion. Only pg_is_in_recovery() tells a hot
standby from this state.

Some cases first analyze local tables, too (`local`).

A count of the remote relation follows each ANALYZE. Its result is equal on all arms, unlike the result of a sample.
Error messages differ between arms, too, because they quote the remote query. So the session catches intended errors.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from fuzz.generators import loopback
from fuzz.generators.choices import Weighted, another, between, chance, pick
from fuzz.generators.foreign_analyze.local import local_analyses
from fuzz.generators.foreign_analyze.remote import METHODS, RelationKind, RemoteRelation, draw_remote, filled, made
from fuzz.generators.generator import Generator, Scale
from oracles.model.case import Case, Kind, Step


@dataclass(frozen=True, slots=True)
class Far:
    """A foreign table, or a local table with a foreign child, and the remote relation behind it."""

    name: str
    remote: RemoteRelation
    foreign: str  # name of the foreign table itself
    is_tree: bool = False


Action = Callable[[random.Random, Far], tuple[Step, ...]]


def analyzed(far: Far, *tags: str) -> tuple[Step, ...]:
    """Return ANALYZE, and a query that the oracle `statistics` replaces by its own.

    The query reads no foreign table, because its plan would depend on the sample.
    """
    named = (f"remote.{far.remote.kind}", *tags)
    counted = far.remote.table.name if far.remote.kind is RelationKind.FOREIGN else far.remote.name
    return (
        Step(f"ANALYZE {far.name}", tags=named),
        Step(f"SELECT count(*) FROM {counted}", Kind.QUERY),
    )


def _analyzed_first(far: Far) -> Iterator[Step]:
    """Yield the first ANALYZE of a foreign table, or of a tree and its foreign child."""
    yield from analyzed(far)
    if far.is_tree:
        yield from analyzed(replace(far, name=far.foreign), "foreign child")


def _analyze_again(rng: random.Random, far: Far) -> tuple[Step, ...]:
    return analyzed(far)


def method_chosen(rng: random.Random, far: Far) -> tuple[Step, ...]:
    """Return a step that sets the option analyze_sampling of the foreign table."""
    method = pick(rng, far.remote.methods)
    tags = (f"method.{method}",)
    return (Step(loopback.table_option(far.foreign, "analyze_sampling", method), tags=tags),)


def _other_method(rng: random.Random, far: Far) -> tuple[Step, ...]:
    return (*method_chosen(rng, far), *analyzed(far))


def _other_target(rng: random.Random, far: Far) -> tuple[Step, ...]:
    column = pick(rng, far.remote.table.contents).column.name
    if chance(rng, 50):
        return (*target(rng), *analyzed(far))
    alter = f"ALTER FOREIGN TABLE {far.foreign} ALTER COLUMN {column} SET STATISTICS {pick(rng, (2, 1, 10, 0, 40))}"
    return (Step(alter), *analyzed(far, "target.column"))


def target(rng: random.Random) -> tuple[Step, ...]:
    """Return a step that sets the statistics target, mostly so low that tables exceed their samples."""
    return (Step(f"SET default_statistics_target = {_TARGETS.pick(rng)}"),)


def changed(rng: random.Random, remote: RemoteRelation) -> tuple[Step, ...]:
    """Return steps that change the rows of a remote relation: more rows, fewer rows, or dead rows."""
    table = remote.table
    more = between(rng, table.rows // 4, 2 * table.rows) if table.rows < 2000 else table.rows // 2
    return pick(
        rng,
        (
            tuple(filled(remote, table.rows + 1, table.rows + 1 + more)),
            (Step(f"DELETE FROM {table.name} WHERE i1 % {pick(rng, (2, 3, 10))} <> 0", tags=("dead rows",)),),
            (Step(f"UPDATE {table.name} SET {_same(remote)} WHERE i1 % 2 = 0", tags=("dead rows",)),),
        ),
    )


def _same(remote: RemoteRelation) -> str:
    """Return an assignment that creates a new row version in the same partition."""
    column = remote.table.contents[-1].column.name
    return f"{column} = {column}"


def stale(rng: random.Random, remote: RemoteRelation) -> tuple[Step, ...]:
    """Return a step that falsifies the numbers of rows and pages in pg_class of the remote relation.

    They become wrong by orders of magnitude, or contradictory: pages with no row, pages with an unknown number of rows
    (-1), or rows without pages.

    Of a view it falsifies the table's. Views have none, and PostgreSQL 17 would use TABLESAMPLE on one that has, and
    fail.
    """
    name = remote.table.name if remote.kind is RelationKind.VIEW else remote.name
    wrong, how = _WRONG.pick(rng)
    where = f"oid = '{name}'::regclass OR oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent ="
    sql = f"UPDATE pg_class SET {wrong} WHERE {where} '{name}'::regclass)"
    return (Step(sql, tags=("remote.stale", f"remote.{how}")),)


def without_pages(remote: RemoteRelation) -> Step:
    """Return a step that stores what ANALYZE of PostgreSQL 17 does for a foreign table that stands for a view.

    Its number of rows is right, and it has no pages, because the view has none.
    """
    figures = f"reltuples = {remote.table.rows}, relpages = 0"
    sql = f"UPDATE pg_class SET {figures} WHERE oid = '{remote.name}'::regclass"
    return Step(sql, tags=("remote.rows without pages",))


def uncounted() -> tuple[Step, ...]:
    """Return steps after which the cumulative statistics have no rows of any table, neither now nor a second later."""
    tables = "pg_class WHERE relnamespace = current_schema::regnamespace AND relkind IN ('r', 'm')"
    lost = Step(f"SELECT pg_stat_reset_single_table_counters(oid) FROM {tables}", tags=("counters lost",))
    return (Step("SELECT pg_stat_force_next_flush()"), lost)


def _changed(rng: random.Random, far: Far) -> tuple[Step, ...]:
    steps = changed(rng, far.remote)
    if far.remote.kind is RelationKind.MATERIALIZED:
        steps = (*steps, Step(f"REFRESH MATERIALIZED VIEW {far.remote.name}"))
    known = (Step(f"ANALYZE {far.remote.table.name}"),) if chance(rng, 40) else ()
    return (*steps, *known, *analyzed(far, "remote.changed"))


def _stale(rng: random.Random, far: Far) -> tuple[Step, ...]:
    return (*stale(rng, far.remote), *analyzed(far))


def _uncounted(rng: random.Random, far: Far) -> tuple[Step, ...]:
    """Return steps that lose the cumulative statistics, often after ANALYZE stored the right figures in pg_class."""
    known = (Step(f"ANALYZE {far.remote.table.name}"),) if chance(rng, 60) else ()
    return (*known, *uncounted(), *analyzed(far))


def _in_transaction(rng: random.Random, far: Far) -> tuple[Step, ...]:
    ended = pick(rng, ("COMMIT", "ROLLBACK"))
    return (Step("BEGIN"), *analyzed(far, "in transaction"), *analyzed(far), Step(ended))


def _failing_analyze(far: Far, condition: str, tag: str, columns: str = "") -> Step:
    """Return an ANALYZE that fails, in a subtransaction.

    It names the foreign table. ANALYZE of a tree skips a child without pages, so it would raise no error.
    """
    return Step(
        f"DO $$ BEGIN ANALYZE {far.foreign}{columns}; RAISE 'it went well';"
        f" EXCEPTION WHEN {condition} THEN RAISE NOTICE '%', SQLSTATE; END $$",
        tags=(tag,),
    )


def _unknown_column(far: Far) -> tuple[Step, ...]:
    """Return an ANALYZE that fails between the questions for the size and for the rows, and another ANALYZE."""
    return (_failing_analyze(far, "undefined_column", "error.column", " (missing)"), *analyzed(far))


def _refused(rng: random.Random, far: Far) -> tuple[Step, ...]:
    name = far.remote.name
    return (
        Step(f"REVOKE SELECT ON {name} FROM {loopback.GUEST}"),
        _failing_analyze(far, "insufficient_privilege", "error.privilege"),
        Step(f"GRANT SELECT ON {name} TO {loopback.GUEST}"),
        *analyzed(far),
    )


def _missing(rng: random.Random, far: Far) -> tuple[Step, ...]:
    name, kind = far.remote.name, _KINDS[far.remote.kind]
    return (
        Step(f"ALTER {kind} {name} RENAME TO {name}_gone"),
        _failing_analyze(far, "undefined_table", "error.missing"),
        Step(f"ALTER {kind} {name}_gone RENAME TO {name}"),
        *analyzed(far),
    )


def _view(far: Far, condition: str) -> tuple[Step, ...]:
    """Return steps that replace the remote relation by a view whose condition fails or sleeps on any row."""
    name = far.remote.name
    return (
        Step(f"CREATE VIEW {name}_bad AS SELECT * FROM {name} WHERE {condition}"),
        Step(f"GRANT SELECT ON {name}_bad TO {loopback.GUEST}"),
        Step(f"ALTER FOREIGN TABLE {far.foreign} OPTIONS (SET table_name '{name}_bad')"),
    )


def _restored(far: Far) -> tuple[Step, ...]:
    name = far.remote.name
    return (
        Step(f"ALTER FOREIGN TABLE {far.foreign} OPTIONS (SET table_name '{name}')"),
        Step(f"DROP VIEW {name}_bad"),
        *analyzed(far),
    )


def _failing(rng: random.Random, far: Far) -> tuple[Step, ...]:
    if not far.remote.surely_filled:
        return _analyze_again(rng, far)
    return (
        *_view(far, "1 / (length(current_user) - length(current_user)) = 0"),
        _failing_analyze(far, "division_by_zero", "error.row"),
        *_restored(far),
    )


def _cancelled(rng: random.Random, far: Far) -> tuple[Step, ...]:
    if not far.remote.surely_filled:
        return _analyze_again(rng, far)
    return (
        *_view(far, "pg_sleep(60) IS NOT NULL"),
        Step("SET statement_timeout = '150ms'"),
        _failing_analyze(far, "query_canceled", "cancel"),
        Step("RESET statement_timeout"),
        *_restored(far),
    )


def _queried(rng: random.Random, far: Far) -> tuple[Step, ...]:
    # No Kind.QUERY, because oracles compare the plans of queries.
    return (Step(f"SELECT count(*), min(i1), max(i1) FROM {far.foreign}"),)


ACTIONS: Weighted[Action] = Weighted(
    (30, _other_method), (14, _other_target), (16, _changed), (8, _stale), (6, _in_transaction), (6, _analyze_again),
    (6, _refused), (4, _missing), (4, _failing), (3, _cancelled), (3, _queried), (6, _uncounted),
)  # fmt: skip
_WRONG = Weighted(
    (12, ("reltuples = reltuples * 10", "more rows")), (12, ("reltuples = reltuples / 10", "fewer rows")),
    (12, ("reltuples = 1e9", "very many rows")), (8, ("relpages = relpages * 10", "more pages")),
    (12, ("reltuples = 0, relpages = greatest(relpages, 7)", "pages without rows")),
    (12, ("reltuples = -1, relpages = greatest(relpages, 7)", "pages with unknown rows")),
    (32, ("reltuples = greatest(reltuples, 700), relpages = 0", "rows without pages")),
)  # fmt: skip
_TARGETS = Weighted((50, 1), (15, 2), (10, 5), (8, 10), (5, 37), (5, 100), (7, 10000))
_KINDS = {
    RelationKind.TABLE: "TABLE",
    RelationKind.PARTITIONED: "TABLE",
    RelationKind.INHERITED: "TABLE",
    RelationKind.MATERIALIZED: "MATERIALIZED VIEW",
    RelationKind.VIEW: "VIEW",
    RelationKind.FOREIGN: "FOREIGN TABLE",
}


class ForeignAnalyze(Generator):
    """Repeated ANALYZE of foreign tables, and of inheritance trees with foreign children."""

    name: ClassVar[str] = "foreign_analyze"
    cpu_seconds: ClassVar[float] = 2.9
    modes: ClassVar[tuple[str, ...]] = ("plain", "extended", "prepared_generic", "cursor")
    scene_weight: ClassVar[int] = 1

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case: up to three remote relations with their foreign tables, then actions on them."""
        count = min(_RELATIONS.pick(rng), max(1, scale.relations // 2))
        far = [_far(rng, draw_remote(rng, f"r{number + 1}", scale)) for number in range(count)]
        scene = [Step(sql) for sql in loopback.GUEST_PROLOGUE]
        if chance(rng, 25):
            scene.append(Step(loopback.server_option("analyze_sampling", pick(rng, METHODS))))
        for each in far:
            scene += _made(rng, each)
        steps = list(local_analyses(rng)) if chance(rng, _LOCAL) else []
        steps += [*target(rng), *(step for each in far for step in _analyzed_first(each))]
        actions = 0
        while another(rng, actions, scale.actions(4)):
            steps += ACTIONS.pick(rng)(rng, pick(rng, far))
            actions += 1
        if chance(rng, 25):
            steps += _unknown_column(pick(rng, far))
        return Case(self.name, tuple(scene), tuple(steps))


_LOCAL = 75  # percentage of cases that also analyze local tables
_RELATIONS = Weighted((55, 1), (35, 2), (10, 3))
_KNOWN = Weighted((50, "right"), (15, "old"), (15, "wrong"), (20, "unknown"))
_IN_TREE = 18  # percentage of foreign tables that are children of a local table
_IN_TREE_WITHOUT_STORAGE = 37  # of those for views and foreign tables, whose share of a tree's sample is an estimate
_WITHOUT_PAGES = 50  # percentage of remote foreign tables


def _far(rng: random.Random, remote: RemoteRelation) -> Far:
    name = f"f{remote.name[1:]}"
    stored = remote.kind not in (RelationKind.VIEW, RelationKind.FOREIGN)
    if remote.children == 0 and chance(rng, _IN_TREE if stored else _IN_TREE_WITHOUT_STORAGE):
        return Far(name, remote, f"{name}_far", is_tree=True)
    return Far(name, remote, name)


def _made(rng: random.Random, far: Far) -> Iterator[Step]:
    """Yield the steps that create and fill a remote relation, analyze it or not, and create its foreign table."""
    remote = far.remote
    known = _KNOWN.pick(rng)
    yield from made(rng, remote)
    half = remote.table.rows // 2 if known == "old" else remote.table.rows
    yield from filled(remote, 1, half)
    if known != "unknown":
        yield Step(f"ANALYZE {remote.table.name}")
    if known == "old":
        yield from filled(remote, half + 1, remote.table.rows)
    if chance(rng, 70):  # otherwise the cumulative statistics receive the counts a second later
        yield Step("SELECT pg_stat_force_next_flush()", tags=("counted",))
    if chance(rng, 15):
        yield from changed(rng, remote)
        known = "old" if known == "right" else known
    if remote.kind is RelationKind.MATERIALIZED:
        yield Step(f"REFRESH MATERIALIZED VIEW {remote.name}")
    if known in ("right", "wrong") and remote.name != remote.table.name and remote.kind is not RelationKind.VIEW:
        yield Step(f"ANALYZE {remote.name}")
    if remote.kind is RelationKind.FOREIGN and chance(rng, _WITHOUT_PAGES):
        yield without_pages(remote)
    elif known == "wrong":
        yield from stale(rng, remote)
    if chance(rng, 10):
        yield from uncounted()
    yield Step(f"GRANT SELECT ON {remote.name} TO {loopback.GUEST}")
    yield from _foreign(rng, far)


def _foreign(rng: random.Random, far: Far) -> Iterator[Step]:
    """Yield the steps that create the foreign table, sometimes as a child of a local table.

    That table then has a local child, too.
    """
    remote, shape = far.remote, far.remote.shape
    if far.is_tree:
        yield Step(f"CREATE TABLE {far.name} {shape}")
        yield Step(f"CREATE TABLE {far.name}_near () INHERITS ({far.name})")
        shape = f"() INHERITS ({far.name})"
    fetched = pick(rng, (1000, 100, 10000, 37))
    yield Step(loopback.foreign_table(far.foreign, shape, remote.name, f"fetch_size '{fetched}'"))
    if far.is_tree:
        near = f"SELECT * FROM {remote.table.name} WHERE i1 % 3 = 0"
        yield Step(f"INSERT INTO {far.name}_near {near}")
    if remote.kind is RelationKind.FOREIGN or chance(rng, 80):
        yield from method_chosen(rng, far)
