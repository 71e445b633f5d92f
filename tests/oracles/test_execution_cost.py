"""Tests of the oracle `execution_cost` on hand-made CPU times, buffers and memory."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from oracles.execution_cost import ExecutionCost
from oracles.explain.nodes import EXECUTOR_CPU, EXECUTOR_MEMORY, EXPLAINED
from oracles.model.case import Step
from oracles.model.finding import Finding
from oracles.model.observation import CaseObservation, Observation, Run
from oracles.model.oracle import Agree, Inconclusive, NotApplicable, Unstable, Verdict
from tests.oracles.observed import LOST, case, error, finding, judged_with_runs, ok, on_second_step, query, seen

CASE = case(query("SELECT 1"), query("SELECT 2"), samples=(EXPLAINED,))


def executed(milliseconds: float, buffers: int = 10, node: str = "Seq Scan", kilobytes: float = 20.5) -> Observation:
    plan = {"Node Type": node, "Shared Hit Blocks": buffers}
    return replace(ok(), plan={"Plan": plan, EXECUTOR_CPU: milliseconds, EXECUTOR_MEMORY: kilobytes})


def judged(respond: Callable[[Run], CaseObservation]) -> tuple[tuple[Verdict, ...], list[Run]]:
    return judged_with_runs(ExecutionCost(), CASE, respond)


def by_arm(master: Observation, patched: Observation) -> Callable[[Run], CaseObservation]:
    return on_second_step(executed(1.0), master, patched)


def rounds(runs: list[Run]) -> list[Run]:
    return [run for run in runs if run.executions > 1]


def test_slower_execution_is_found_after_twenty_rounds_of_one_arm_at_a_time() -> None:
    verdicts, runs = judged(by_arm(executed(10.0), executed(20.0)))
    assert "2.00 times as much" in finding(verdicts).summary
    assert [run.arm for run in rounds(runs)] == ["master", "patched"] * 20
    assert {run.instead for run in rounds(runs)} == {((0, "SELECT"),)}


@pytest.mark.parametrize(
    ("sql", "seen_before"),
    [
        ("DELETE FROM t", ok()),
        ("WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d", ok()),
        ("INSERT INTO t VALUES (1) ON CONFLICT (n) DO UPDATE SET n = 2", ok()),
        ("ROLLBACK", ok()),
        ("INSERT INTO t VALUES (1)", error("23505")),
        ("a statement that cannot be parsed", ok()),
    ],
)
def test_time_and_buffers_after_dead_rows_are_inconclusive(sql: str, seen_before: Observation) -> None:
    """A transaction of any other session may keep them on one arm during all rounds."""
    tested = replace(CASE, scene=(Step(sql),))

    def verdicts(master: Observation, patched: Observation) -> tuple[Verdict, ...]:
        def respond(run: Run) -> CaseObservation:
            later = by_arm(master, patched)(run)
            return replace(later, steps=(seen_before, *later.steps))

        return judged_with_runs(ExecutionCost(), tested, respond)[0]

    assert verdicts(executed(10.0), executed(20.0))[0] == Inconclusive("CPU time of execution: dead rows")
    assert verdicts(executed(1.0, 100), executed(1.0, 500))[0] == Inconclusive("buffers read: dead rows")
    assert finding(verdicts(executed(1.0, kilobytes=200), executed(1.0, kilobytes=900)))


def test_time_after_added_rows_is_compared() -> None:
    tested = replace(CASE, scene=(Step("INSERT INTO t SELECT 1"), Step("VACUUM t"), Step("COPY t FROM STDIN")))

    def respond(run: Run) -> CaseObservation:
        later = by_arm(executed(10.0), executed(20.0))(run)
        return replace(later, steps=(ok(), ok(), ok(), *later.steps))

    assert finding(judged_with_runs(ExecutionCost(), tested, respond)[0])


def test_long_queries_are_executed_once_in_each_round() -> None:
    verdicts, runs = judged(by_arm(executed(100.0), executed(200.0)))
    assert "2.00 times as much" in finding(verdicts).summary
    assert [run.executions for run in runs if run.repetition] == [1] * 2 * 20


def test_more_buffers_are_found_where_time_is_the_same() -> None:
    verdicts, _ = judged(by_arm(executed(1.0, 100), executed(1.0, 500)))
    assert finding(verdicts).origin.startswith("buffers read")


def test_more_memory_is_found_where_time_is_the_same() -> None:
    verdicts, _ = judged(by_arm(executed(1.0, kilobytes=200), executed(1.0, kilobytes=900)))
    assert finding(verdicts).origin.startswith("memory of execution")


def hashed(batches: int, held: float, peak: int, buckets: int = 1024, expected: int = 100) -> Observation:
    """Return a hash join that holds `held` kB at its end, of which its table had `peak` kB at most."""
    table = {"Node Type": "Hash", "Hash Batches": batches, "Original Hash Batches": batches, "Peak Memory Usage": peak}
    table["Hash Buckets"] = buckets
    counted = {"Plan Rows": expected, "Actual Rows": 100, "Actual Loops": 1}
    plan = {"Node Type": "Hash Join", "Shared Hit Blocks": 10, "Plans": [table | counted]}
    return replace(ok(), plan={"Plan": plan, EXECUTOR_CPU: 1.0, EXECUTOR_MEMORY: held})


def test_the_last_of_several_batches_may_be_a_large_one() -> None:
    verdicts, _ = judged(by_arm(hashed(2, 69, 498), hashed(2, 583, 506)))
    assert verdicts == (Agree(2),)


@pytest.mark.parametrize(("batches", "held"), [(2, 700), (1, 583)])
def test_more_memory_than_one_batch_explains_is_found(batches: int, held: float) -> None:
    verdicts, _ = judged(by_arm(hashed(batches, 69, 498), hashed(batches, held, 506)))
    assert finding(verdicts).origin.startswith("memory of execution")


@pytest.mark.parametrize(("held", "legal"), [(2116, True), (2700, False)])
def test_a_larger_array_of_buckets_may_hold_its_own_memory(held: float, *, legal: bool) -> None:
    few, many = hashed(1, 324, 300), hashed(1, held, 2100, buckets=262144)
    verdicts, _ = judged(by_arm(few, many))
    assert (verdicts == (Agree(2),)) == legal


@pytest.mark.parametrize(("held", "legal"), [(1181, True), (1600, False)])
def test_files_of_batches_that_few_rows_did_not_need_may_hold_their_buffers(held: float, *, legal: bool) -> None:
    few, many = hashed(32, 570, 1, expected=1_000_000), hashed(64, held, 33, expected=1_000_000)
    verdicts, _ = judged(by_arm(few, many))
    assert (verdicts == (Agree(2),)) == legal


@pytest.mark.parametrize(
    ("master", "patched"),
    [
        (executed(20.0), executed(10.0)),  # faster
        (executed(10.0), executed(14.0)),  # within the margin
        (executed(0.1), executed(0.9)),  # a large factor of a negligible time
        (executed(1.0, 10), executed(1.0, 90)),
        (executed(1.0, kilobytes=100), executed(1.0, kilobytes=200)),
    ],
)
def test_small_increases_are_not_executed_again(master: Observation, patched: Observation) -> None:
    verdicts, runs = judged(by_arm(master, patched))
    assert verdicts == (Agree(2),)
    assert not rounds(runs)


def test_other_plans_are_not_compared() -> None:
    verdicts, _ = judged(by_arm(executed(1.0), executed(99.0, node="Index Scan")))
    assert verdicts == (Agree(1),)


def test_a_round_within_the_margin_refutes_it() -> None:
    def respond(run: Run) -> CaseObservation:
        slow = run.arm == "patched" and run.repetition != 3
        return seen(executed(1.0), executed(30.0 if slow else 10.0))

    verdicts, runs = judged(respond)
    assert verdicts == (Unstable("CPU time of execution: not in all rounds"), Agree(2))
    assert len(rounds(runs)) == 2 * 3


def test_a_lost_connection_is_inconclusive() -> None:
    lost = CaseObservation("", (executed(1.0), LOST))
    verdicts, _ = judged(lambda run: lost if run.arm == "patched" else seen(executed(1.0), executed(1.0)))
    assert verdicts == (Inconclusive("connection lost"), NotApplicable())


def test_buffers_and_memory_of_parallel_plans_are_not_compared() -> None:
    def parallel(buffers: int) -> Observation:
        scan = {"Node Type": "Seq Scan"}
        gather = {"Node Type": "Gather", "Workers Planned": 1, "Shared Hit Blocks": buffers, "Plans": [scan]}
        return replace(ok(), plan={"Plan": gather, EXECUTOR_CPU: 1.0, EXECUTOR_MEMORY: buffers})

    verdicts, _ = judged(by_arm(parallel(100), parallel(900)))
    assert verdicts == (Agree(2),)


def with_batches(batches: int, milliseconds: float, original: int = 0, **more: int) -> Observation:
    """Return a join whose table had the rows that were expected, unless `more` has other rows."""
    table = {"Node Type": "Hash", "Plan Rows": 1000, "Actual Rows": 1000, "Actual Loops": 1, "Hash Batches": batches}
    fields = {name.replace("_", " "): value for name, value in more.items()}
    table |= {"Original Hash Batches": original or batches} | fields
    plan = {"Plan": {"Node Type": "Hash Join", "Plans": [table]}, EXECUTOR_CPU: milliseconds}
    return replace(ok(), plan=plan)


def test_other_numbers_of_batches_are_not_compared() -> None:
    assert judged(by_arm(with_batches(1, 1.0), with_batches(2, 99.0)))[0] == (Agree(1),)
    assert finding(judged(by_arm(with_batches(2, 1.0), with_batches(2, 99.0)))[0])


def test_batches_that_no_row_needed_are_compared() -> None:
    few = with_batches(2, 1.0, Actual_Rows=9)
    assert finding(judged(by_arm(few, with_batches(99, 99.0, Actual_Rows=9)))[0])
    assert judged(by_arm(few, with_batches(99, 99.0, Actual_Rows=10)))[0] == (Agree(1),)
    assert judged(by_arm(few, with_batches(99, 99.0, Actual_Rows=9, Actual_Loops=2)))[0] == (Agree(1),)
    assert judged(by_arm(few, with_batches(99, 99.0, original=2, Actual_Rows=9)))[0] == (Agree(1),)


def test_a_slower_statement_is_found_beside_one_that_seemed_slower_once() -> None:
    def respond(run: Run) -> CaseObservation:
        slow = run.arm == "patched"
        noisy = slow and run.executions == 1
        return seen(executed(80.0 if noisy else 10.0), executed(30.0 if slow else 10.0))

    verdicts, _ = judged(respond)
    assert finding([each for each in verdicts if isinstance(each, Finding)]).step == 1
    assert Unstable("CPU time of execution: not in all rounds") in verdicts


def test_a_finding_ends_the_measurement_of_others() -> None:
    many = case(*(query(f"SELECT {n}") for n in range(5)), samples=(EXPLAINED,))

    def respond(run: Run) -> CaseObservation:
        return seen(*(executed(10.0 * (n + 2 if run.arm == "patched" else 1)) for n in range(5)))

    verdicts, _ = judged_with_runs(ExecutionCost(), many, respond)
    assert [each.step for each in verdicts if isinstance(each, Finding)] == [4]
    assert verdicts[1:] == (Inconclusive("CPU time of execution: only the largest were measured again"), Agree(1))


def test_a_limited_number_of_statements_is_measured_again() -> None:
    many = case(*(query(f"SELECT {n}") for n in range(5)), samples=(EXPLAINED,))

    def respond(run: Run) -> CaseObservation:
        noisy = run.arm == "patched" and run.executions == 1
        return seen(*(executed(10.0 * (n + 2 if noisy else 1)) for n in range(5)))

    verdicts, _ = judged_with_runs(ExecutionCost(), many, respond)
    assert verdicts[:3] == (Unstable("CPU time of execution: not in all rounds"),) * 3
    assert verdicts[3:] == (Inconclusive("CPU time of execution: only the largest were measured again"), Agree(3))
