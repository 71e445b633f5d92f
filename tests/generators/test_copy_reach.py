"""Tests of the reach of `copy_batches` on a real server: successful statements, errors and executed paths."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from fuzz.engines.seeded import case_of
from fuzz.execution.executor import Executor
from fuzz.generators.copy_batches.deferred import make_deferred
from fuzz.generators.copy_batches.formats import Batch, Cell, Format, Options, records, stream
from fuzz.generators.copy_batches.generator import WRITTEN, needed
from fuzz.generators.copy_batches.shapes import make_shape
from fuzz.generators.copy_batches.table import CopyColumn, CopyState
from fuzz.generators.copy_batches.values import INT4, TYPES, USER_TYPES, ColumnType, int4
from fuzz.generators.copy_batches.written import WrittenCopy
from fuzz.generators.generator import Scale
from oracles.model.case import Case, CaseId, Kind, Step
from oracles.model.observation import Outcome, Run

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

CASES = 120


@dataclass
class Census:
    """Outcomes of the steps of many cases."""

    succeeded: int = 0
    failed: list[str] = field(default_factory=list)  # steps that should succeed
    mistakes: int = 0
    accepted: list[str] = field(default_factory=list)  # steps with a mistake
    tags: Counter[str] = field(default_factory=Counter)  # of steps with the intended outcome
    reach: Counter[str] = field(default_factory=Counter)
    sqlstates: set[str] = field(default_factory=set)


@pytest.fixture(scope="module")
def census(executor: Executor) -> Census:
    census = Census()
    for index in range(CASES):
        case = case_of(CaseId(7, "copy_batches", index), Scale())
        run = Run("only", case.modes, explain=True)
        observation = executor.observe(case, [run])[run]
        census.reach.update(observation.reach)
        for step, seen in zip(case.all_steps, observation.steps, strict=True):
            ok = seen.outcome is Outcome.OK
            census.tags.update(step.tags if ok != step.may_fail else ())
            census.mistakes += step.may_fail
            if step.may_fail:
                census.sqlstates.add(seen.sqlstate)
                census.accepted += [f"{index}: {step.sql[:200]}"] if ok else []
            else:
                census.succeeded += ok
                census.failed += [] if ok else [f"{index}: {seen.sqlstate} {step.sql[:200]}"]
    return census


def test_steps_that_should_succeed_do(census: Census) -> None:
    share = census.succeeded / (census.succeeded + len(census.failed))
    assert share >= 0.995, census.failed


def test_deliberate_mistakes_are_refused(census: Census) -> None:
    assert census.mistakes > CASES
    assert len(census.accepted) <= census.mistakes / 100, census.accepted


def test_errors_are_of_many_kinds(census: Census) -> None:
    assert len(census.sqlstates) >= 15, census.sqlstates


@pytest.mark.parametrize(
    "counter",
    [
        "copy.without_batch",
        "copy.flush_1",
        "copy.flush_2_99",
        "copy.flush_100_999",
        "copy.flush_1000",
        "copy.round_full",
        "copy.round_bytes",
        "copy.round_last",
        "copy.round_2_32_relations",
        "copy.round_33_relations",
        "owner.array",
        "owner.hash_64",
        "owner.hash_128_512",
        "owner.hash_1024_4096",
        "owner.1000_items",
        "owner.released_in_copy",
        "owner.aborted_in_copy",
    ],
)
def test_limits_are_crossed(census: Census, counter: str) -> None:
    assert census.reach[counter] > 0, census.reach


@pytest.mark.parametrize(
    "tag",
    [
        *("copy.text", "copy.csv", "copy.binary", "copy.where", "copy.on_error", "copy.freeze", "copy.column_list"),
        *("copy.header_true", "copy.header_match", "copy.default_marker", "copy.force_null", "copy.encoding"),
        *("copy.into_plain", "copy.into_partitioned", "copy.into_temporary", "copy.into_unlogged", "copy.into_view"),
        *(
            "copy.into_foreign",
            "copy.partition_spill",
            "copy.partition_return",
            "copy.tuple_boundary",
            "copy.byte_boundary",
        ),
        *("copy.error.first", "copy.error.middle", "copy.error.last", "copy.error.options"),
        *("copy.subtransaction", "copy.cursor_open", "copy.prepared_open", "copy.redefined", "copy.deferred"),
        *("copy.out.text", "copy.out.csv", "copy.out.binary", "copy.out.returning"),
        *("copy.out.encoded", "copy.out.lacking", "copy.outside", "copy.error.outside"),
        *("copy.outside.stopped", "copy.into_new", "copy.old_syntax", "copy.out.guarded"),
        *("copy.written.ends", "copy.written.ends.error", "copy.written.headers", "copy.written.headers.error"),
        *("copy.written.escapes", "copy.written.escapes.error", "copy.written.encoded", "copy.written.encoded.error"),
        *(
            "copy.written.divided",
            "copy.written.binary",
            "copy.written.no_columns",
            "copy.written.filling",
            "copy.written.partition",
            *("copy.written.leaves", "copy.written.leaves.error", "copy.of_client", "copy.out.of_client"),
        ),
        *("trigger.reading_partition", "trigger.reading_table", "reading.check", "reading.default"),
        *("plpgsql.caught", "plpgsql.loop", "plpgsql.nested", "plpgsql.escaping"),
        *("references.portals", "references.plans", "references.union", "references.over_32"),
        *("trigger.before_row", "trigger.after_row", "trigger.before_statement", "trigger.after_statement"),
        *("trigger.of_leaves", "constraints.immediate", "constraints.transaction", "constraints.subtransaction"),
        *("constraints.rolled_back", "constraints.released", "constraints.block", "constraints.pending"),
        *("constraints.commit", "constraints.commit_refused"),
        *("trigger.transition_statement", "trigger.transition_row", "trigger.instead_of", "trigger.deferred_row"),
    ],
)
def test_each_path_is_taken(census: Census, tag: str) -> None:
    assert census.tags[tag] > 0


def _both_forms(kind: ColumnType) -> Case:
    """Return a case that copies the same values in all formats, and compares the tables."""
    drawn = [kind.draw(random.Random(seed)) for seed in range(12)]
    columns = (CopyColumn("id", INT4), CopyColumn("v", kind))
    numbers: tuple[Cell, ...] = tuple(int4(number) for number in range(len(drawn)))
    batch = Batch(columns, (numbers, tuple(drawn)))
    steps = []
    for form in Format:
        options = Options(form)
        steps.append(Step(f"CREATE TABLE {form}_form (id int4, v {kind.sql})"))
        data = stream(records(batch, options), batch, options)
        steps.append(Step(f"COPY {form}_form FROM STDIN{options.sql()}", Kind.COPY_IN, copy_data=data))
    steps += [
        Step(f"SELECT id, v::text FROM {form}_form EXCEPT ALL SELECT id, v::text FROM text_form", Kind.QUERY)
        for form in (Format.CSV, Format.BINARY)
    ]
    steps.append(Step("SELECT count(*)::text FROM binary_form", Kind.QUERY))
    return Case("test", tuple(Step(sql) for sql in USER_TYPES), tuple(steps))


@pytest.mark.parametrize("kind", TYPES.options, ids=lambda kind: kind.sql)
def test_a_value_is_the_same_in_each_format(executor: Executor, kind: ColumnType) -> None:
    run = Run("only", ())
    *steps, csv, binary, count = executor.observe(_both_forms(kind), [run])[run].steps
    assert [step.sqlstate for step in steps if step.outcome is not Outcome.OK] == []
    assert (csv.rows, binary.rows) == ((), ())
    assert count.rows[0].endswith(b"12")


def _wrongly_judged(executor: Executor, steps: tuple[Step, ...]) -> list[str]:
    """Return the steps that fail and should succeed, or succeed and should fail."""
    run = Run("only", ())
    case = Case("test", needed(steps), steps)
    observed = zip(case.all_steps, executor.observe(case, [run])[run].steps, strict=True)
    return [
        f"{step.sql} {(step.copy_data or b'')[-60:]!r} {seen.sqlstate}"
        for step, seen in observed
        if (seen.outcome is Outcome.OK) == step.may_fail
    ]


@pytest.mark.parametrize("make", WRITTEN.options, ids=lambda make: make.__name__)
def test_written_data_are_refused_exactly_if_intended(
    executor: Executor, make: Callable[[random.Random], WrittenCopy]
) -> None:
    rng = random.Random(3)
    assert _wrongly_judged(executor, tuple(make(rng).step for _ in range(150))) == []


def test_tables_of_unusual_shapes_refuse_exactly_what_is_intended(executor: Executor) -> None:
    rng = random.Random(3)
    steps = tuple(step for _ in range(150) for step in make_shape(rng))
    assert _wrongly_judged(executor, steps) == []


def test_deferred_constraints_refuse_exactly_what_is_intended(executor: Executor) -> None:
    rng, state = random.Random(3), CopyState(Scale())
    steps: tuple[Step, ...] = ()
    for _ in range(80):
        made, state = make_deferred(rng, state)
        steps += made
    assert sum(step.may_fail for step in steps) > 40
    assert _wrongly_judged(executor, steps) == []
