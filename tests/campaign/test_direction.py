"""The direction of a campaign's time by the functions that patches change, and how these are found."""

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from fuzz.campaign.direction.direction import (
    EVEN,
    Direction,
    Entered,
    changed_functions,
    directed,
    functions_at,
    read_entered,
)
from fuzz.campaign.direction.table import entered
from fuzz.generators.generator import all_generators
from fuzz.servers import git
from fuzz.sources.typed.source import Typed
from fuzz.sources.workloads import cases_per_hour, workload_named

CASES = cases_per_hour(all_generators().values(), [Typed()])
HASH_JOIN = ("nodeHashjoin.c", "ExecHashJoin")
PRUNING = ("partprune.c", "get_matching_partitions")
CALLS = {
    "copy_batches": {HASH_JOIN: 0.0},
    "outer_joins": {HASH_JOIN: 900.0, PRUNING: 1.0},
    "pruned_partitions": {HASH_JOIN: 9.0, PRUNING: 10_000.0},
    "typed": {},
}
TABLE = entered(CALLS)


def share(direction: Direction | None, name: str) -> float:
    assert direction is not None
    seconds = {each: cases * workload_named(each).cpu_seconds for each, cases in direction.cases.items()}
    return seconds[name] / sum(seconds.values())


def with_even_part(cases: Mapping[str, int], name: str, part: float) -> float:
    """Return the share of a workload that has this part of the directed time."""
    even = sum(cases[each] * workload_named(each).cpu_seconds for each in cases) / 3600
    return (EVEN * share(Direction(cases), name) * even + (1 - EVEN) * part) / (EVEN * even + 1 - EVEN)


@pytest.mark.parametrize(("function", "workload"), [(HASH_JOIN, "outer_joins"), (PRUNING, "pruned_partitions")])
def test_most_of_the_time_is_for_what_enters_the_changed_function(function: tuple[str, str], workload: str) -> None:
    direction = directed(CASES, [[function, ("new.c", "unknown")]], TABLE)
    assert direction is not None
    assert share(direction, workload) == max(share(direction, name) for name in CASES)
    assert str(direction).startswith(f"directed by 2 changed functions: {workload} ")


def test_a_workload_that_does_not_enter_it_keeps_a_part_of_its_time() -> None:
    even = share(Direction(CASES), "copy_batches")
    assert share(directed(CASES, [[HASH_JOIN]], TABLE), "copy_batches") == pytest.approx(EVEN * even, rel=0.1)


def test_a_workload_that_is_not_measured_has_the_mean_share() -> None:
    direction, even = directed(CASES, [[HASH_JOIN]], TABLE), share(Direction(CASES), "hash_growth")
    assert 1.5 * EVEN * even < share(direction, "hash_growth") < share(direction, "outer_joins")


def test_patches_have_equal_time() -> None:
    table = Entered(("outer_joins", "typed"), {"a.c": {"one": (100, 0), "two": (0, 100), "three": (0, 100)}})
    cases = {name: CASES[name] for name in table.workloads}
    direction = directed(cases, [[("a.c", "one")], [("a.c", "two"), ("a.c", "three")]], table)
    assert share(direction, "typed") == pytest.approx(with_even_part(cases, "typed", 1 / 2), rel=0.05)


def test_twice_the_share_of_a_function_gives_four_times_the_time() -> None:
    table = Entered(("outer_joins", "typed"), {"a.c": {"one": (20, 40)}})
    cases = {name: CASES[name] for name in table.workloads}
    direction = directed(cases, [[("a.c", "one")]], table)
    assert share(direction, "typed") == pytest.approx(with_even_part(cases, "typed", 4 / 5), rel=0.05)


def test_unknown_functions_direct_nothing() -> None:
    assert directed(CASES, [[("new.c", "unknown")]], TABLE) is None
    assert directed(CASES, [], TABLE) is None
    assert directed({"user_sql": 1}, [[HASH_JOIN]], TABLE) is None
    assert directed({"copy_batches": 1}, [[HASH_JOIN]], TABLE) is None


def test_functions_that_all_call_alike_are_not_in_the_table() -> None:
    table = entered({name: {HASH_JOIN: 7.0, PRUNING: 7.0 * (name == "typed")} for name in CALLS})
    assert table == Entered(tuple(sorted(CALLS)), {"partprune.c": {"get_matching_partitions": (0, 0, 0, 100)}})


def test_the_shipped_table_has_the_workload_made_for_each_part_of_postgresql() -> None:
    table = read_entered()
    for file, name, workload in (
        ("src/backend/partitioning/partbounds.c", "merge_list_bounds", "merged_bounds"),
        ("src/backend/executor/nodeHash.c", "ExecParallelHashPopChunkQueue", "outer_joins"),
        ("src/backend/executor/nodeHash.c", "ExecParallelHashIncreaseNumBatches", "hash_growth"),
        ("src/backend/executor/execMain.c", "EvalPlanQualNext", "concurrent_changes"),
        ("src/backend/commands/copyfrom.c", "CopyMultiInsertBufferFlush", "copy_batches"),
        ("contrib/postgres_fdw/postgres_fdw.c", "postgresAcquireSampleRowsFunc", "foreign_analyze"),
        ("contrib/postgres_fdw/deparse.c", "deparseDirectUpdateSql", "foreign_tables"),
    ):
        shares = dict(zip(table.workloads, table.shares[file][name], strict=True))
        assert max(shares, key=lambda each: shares[each]) == workload, (name, shares)


def test_calls_of_processes_are_left_out() -> None:
    loading = ("auth_delay.c", "_PG_init"), ("auth_delay.c", "Pg_magic_func")
    table = entered({**CALLS, "regress": dict.fromkeys(loading, 900.0)})
    assert table.shares.keys() == TABLE.shares.keys() == {"nodeHashjoin.c", "partprune.c"}
    assert not {"_PG_init", "Pg_magic_func"} & {name for names in read_entered().shares.values() for name in names}


BEFORE = dedent(
    """\
    #include "postgres.h"

    static int calls;

    PG_FUNCTION_INFO_V1(first);

    /* Return nothing. */
    Datum
    first(PG_FUNCTION_ARGS)
    {
      calls++;
      PG_RETURN_VOID();
    }

    static bool
    second(int a,
    int b)
    {
    again:
      return a < b;
    }
    """
)


def tree_of(directory: Path, **files: str) -> str:
    directory.mkdir()
    for name, text in files.items():
        (directory / f"{name}.c").write_text(text)
    return git.import_directory(directory)


def test_a_line_belongs_to_the_definition_above_it() -> None:
    lines = {text: number for number, text in enumerate(BEFORE.splitlines(), start=1)}
    assert [*functions_at(BEFORE, [lines["static int calls;"]])] == []
    assert [*functions_at(BEFORE, [lines["  calls++;"], lines["  return a < b;"]])] == ["first", "second"]


def test_lines_of_functions_are_those_of_a_diff() -> None:
    """git counts line feeds only."""
    source = BEFORE.replace("static int calls;", "\f\f\f\f\f\f\f\f\n\nstatic int calls;", 1)
    assert [*functions_at(source, [source.split("\n").index("  calls++;") + 1])] == ["first"]


def test_changed_added_and_removed_functions_are_found(tmp_path: Path) -> None:
    before = tree_of(tmp_path / "before", kept=BEFORE, same=BEFORE, gone=BEFORE)
    changed = BEFORE.replace("a < b", "a <= b") + "\nvoid\nthird(void)\n{\n}\n"
    after = tree_of(tmp_path / "after", kept=changed, same=BEFORE)
    assert changed_functions(before, after) == {
        ("kept.c", "second"),
        ("kept.c", "third"),
        ("gone.c", "first"),
        ("gone.c", "second"),
    }
    assert changed_functions(after, after) == frozenset()
