"""Tests of the oracle `memory` on hand-made plans: excessive and legal memory and temporary files."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from oracles.explain.hash_memory import allowance, with_work_mem
from oracles.explain.nodes import EXPLAINED, MEASURED, WIDEST_HASH_TUPLE
from oracles.memory.oracle import Memory
from oracles.model.case import Step
from oracles.model.observation import CaseObservation, Run
from oracles.model.oracle import Agree, Inconclusive, Unstable, Verdict
from tests.oracles.explained import Node, hash_join, node
from tests.oracles.observed import LOST, case, finding, judged, judged_with_runs, ok, query, seen, variant

CASE = case(query(), samples=(EXPLAINED,))
SMALL = {"work_mem": "64kB", "hash_mem_multiplier": "1"}
WRITTEN = "Temp Written Blocks"


def join(peak: int = 40, written: int = 100, *, batches: int = 4, planned: int = 1, **more: Any) -> Node:
    table = {"Peak Memory Usage": peak, "Hash Batches": batches, "Original Hash Batches": planned}
    table |= {"Hash Buckets": 1024, "Original Hash Buckets": 1024, "Plan Rows": 5, "Plan Width": 8}
    return hash_join("Inner", 10, 10, 5, table=table, **more) | {WRITTEN: written}


def above_a_join(peak: int) -> Node:
    return node("Aggregate", 1, join(written=0), Peak_Memory_Usage=peak)


def planned(batches: int, **more: Any) -> Node:
    """Return a join that had to plan so many batches, and wrote nothing."""
    table = {"Peak Memory Usage": 1, "Hash Batches": batches, "Original Hash Batches": batches}
    return hash_join("Inner", 10, 10, 5, table=table, **more) | {WRITTEN: 0}


def gathered(below: Node, workers: int = 2) -> Node:
    return node("Gather", 10, below, Workers_Planned=workers, **{WRITTEN: below[WRITTEN]})


def seen_in(run: Run, plan: Node, widest: float = 100, settings: dict[str, str] = SMALL) -> CaseObservation:
    """Return the observation of a plan. A run that measures tuples reports the widest one, in bytes."""
    measured = {WIDEST_HASH_TUPLE: widest} if MEASURED in run.modes else {}
    return seen(replace(ok(), plan={"Plan": plan, "Settings": settings} | measured))


def duel(master: Node, patched: Node, *otherwise: tuple[str, str, Node], widest: float = 100) -> tuple[Verdict, ...]:
    """Judge the plans; `otherwise` lists arm and variant of runs with another plan."""
    others = {(arm, name): plan for arm, name, plan in otherwise}
    plain = {"master": master, "patched": patched}
    return judged(Memory(), CASE, lambda run: seen_in(run, others.get((run.arm, variant(run)), plain[run.arm]), widest))


def test_memory_beyond_the_allowance_is_a_finding() -> None:
    found = finding(duel(join(), join(peak=66)))
    assert found.origin == "Peak Memory Usage of Hash under plan Hash Join, Seq Scan"
    assert found.summary.startswith("step 0: Peak Memory Usage of Hash: 66 kB, at most 65 kB (allowed: 64 kB")


def test_memory_of_an_aggregate_beyond_the_allowance_is_a_finding() -> None:
    small, large = (node("Aggregate", 1, node("Seq Scan", 9), Peak_Memory_Usage=peak) for peak in (60, 70))
    assert finding(duel(small, large)).origin == "Peak Memory Usage of Aggregate under plan Aggregate, Seq Scan"


def test_more_memory_than_the_reference_beyond_the_allowance_is_a_finding() -> None:
    assert finding(duel(join(peak=80), join(peak=82))).expected.startswith("at most 80 kB")


def test_buckets_of_later_batches_are_no_finding() -> None:
    reason = "the reference may not count buckets of later batches"
    assert duel(join(peak=80), join(peak=81)) == (Inconclusive(reason),)
    assert finding(duel(join(peak=64), join(peak=66)))
    assert finding(duel(join(peak=80, batches=1), join(peak=81, batches=1)))


def test_more_blocks_than_partial_ones_of_files_are_a_finding() -> None:
    found = finding(duel(join(), join(written=109)))  # two files per batch
    assert (found.origin.partition(" under")[0], found.actual.partition("\n")[0]) == (WRITTEN, "109")


def test_writes_of_one_arm_only_are_a_finding() -> None:
    single = join(written=0, batches=1)
    assert finding(duel(single, join(written=9)))
    assert finding(duel(single, single | {WRITTEN: 1}))


def test_more_planned_batches_than_memory_for_their_files_are_a_finding() -> None:
    found = finding(duel(planned(1024), planned(8192)))
    assert found.origin == "Original Hash Batches of Hash under plan Hash Join, Seq Scan"
    assert found.summary.endswith("8192, at most 64 kB for pointers to their files (reference: 1024)")
    assert finding(duel(gathered(planned(8192, shared=True)), gathered(planned(8192 * 2, shared=True))))


@pytest.mark.parametrize(
    ("master", "patched"),
    [
        (join(), join(peak=64)),
        (planned(1024), planned(4096)),  # 16 bytes each
        (planned(8192), planned(8192)),  # the reference plans as many
        (planned(8192), planned(1024)),
        (join(peak=20), join(peak=60)),  # more, within the allowance
        (join(peak=900), join(peak=900)),  # one key's tuples cannot be split
        (join(), join(written=108)),  # the last block of each file
        (join(batches=1, written=0), join(batches=2, written=4)),
        (gathered(join(shared=True)), gathered(join(peak=384, shared=True))),  # participants' shares and two chunks
        (join(), join(peak=67, planned=4)),  # 2 % for the most common values
        (gathered(join(shared=True)), gathered(join(written=132, shared=True))),  # chunks of four blocks
        (join(loops=3), join(written=124, loops=3)),  # files of each loop
        (join(peak=90, written=900), join()),  # less
        (node("Aggregate", 1, Peak_Memory_Usage=70), node("Aggregate", 1, Peak_Memory_Usage=70)),
        # the order of a join's rows depends on its buckets
        (above_a_join(peak=60), above_a_join(peak=70)),
    ],
)
def test_legal_figures_are_no_finding(master: Node, patched: Node) -> None:
    assert duel(master, patched) == (Agree(1),)


def test_a_private_table_of_a_worker_has_one_share_only() -> None:
    assert finding(duel(gathered(join()), gathered(join(peak=66))))


def test_different_work_is_not_compared() -> None:
    fewer = join(peak=66)
    fewer["Plans"][0]["Actual Rows"] = 9
    assert duel(join(), fewer) == (Inconclusive("other plans or other work"),)
    assert duel(join(), node("Result", 10)) == (Inconclusive("other plans or other work"),)


def test_the_number_of_writing_workers_depends_on_timing() -> None:
    assert duel(gathered(join(loops=2)), gathered(join(written=900, loops=3))) == (Agree(1),)
    assert finding(duel(gathered(join(loops=2)), gathered(join(peak=66, loops=3))))


def test_an_excess_in_one_run_is_no_finding() -> None:
    large = join(peak=66)
    assert duel(join(), large, ("patched", "again 2", join())) == (
        Unstable("Peak Memory Usage of Hash: not in all runs"),
    )


def test_an_occasional_excess_of_the_reference_is_no_finding() -> None:
    large = gathered(join(written=300, shared=True))
    once = ("master", "again 3", large)
    assert duel(gathered(join(shared=True)), large, once) == (Unstable(f"{WRITTEN}: not in all runs"),)


def test_the_widest_tuple_may_exceed_the_limit() -> None:
    assert duel(join(peak=64), join(peak=65)) == (Agree(1),)
    assert duel(join(), join(peak=66), widest=2000) == (Agree(1),)
    assert finding(duel(join(), join(peak=67), widest=2000)).expected.startswith("at most 66 kB")
    in_chunks = gathered(join(shared=True)), gathered(join(peak=420, shared=True))
    assert finding(duel(*in_chunks))
    assert duel(*in_chunks, widest=40_000) == (Agree(1),)


def test_tuples_so_wide_that_one_batch_may_have_all_of_them_are_no_finding() -> None:
    why = "tuples are so wide that by chance all of them may be in one batch"
    assert duel(join(), join(peak=70), widest=2049) == (Inconclusive(why),)
    assert finding(duel(join(), join(peak=70), widest=2048))


def test_tuples_that_the_leader_does_not_measure_are_no_finding() -> None:
    def built_of_a_join(peak: int) -> Node:
        plan = join(peak=peak, shared=True)
        plan["Plans"][1]["Plans"] = [join(shared=True)]
        return gathered(plan)

    assert duel(built_of_a_join(40), built_of_a_join(400)) == (Inconclusive("the widest tuple is unknown"),)


def test_an_excess_under_one_limit_only_is_no_finding() -> None:
    mode = "work_mem * 1.25"
    verdicts = duel(join(), join(peak=70), ("patched", mode, join(peak=60)))
    assert verdicts == (Unstable("Peak Memory Usage of Hash: not with a little more memory"),)


def test_a_parallel_hash_counts_added_buckets_twice() -> None:
    def shared(peak: int) -> Node:
        plan = gathered(join(peak, shared=True, batches=1))
        plan["Plans"][0]["Plans"][1]["Hash Buckets"] = 8192
        return plan

    def judge(peak: int) -> tuple[Verdict, ...]:
        plain = {"master": shared(400), "patched": shared(peak)}
        one_tuple = join(1, batches=1)
        return judged(Memory(), CASE, lambda run: seen_in(run, one_tuple if run.instead else plain[run.arm]))

    assert judge(520) == (Inconclusive("the reference does not count buckets"),)  # 400 + 8 * (2 * 8 - 1)
    assert finding(judge(522))


def test_another_plan_under_more_memory_is_ignored() -> None:
    other = node("Merge Join", 10)
    variants = [(arm, name, other) for arm in ("master", "patched") for name in ("work_mem * 1.125", "work_mem * 1.25")]
    assert finding(duel(join(), join(peak=70), *variants))


def test_a_table_that_fits_under_more_memory_is_ignored() -> None:
    fits = join(peak=70, batches=1)
    variants = [(arm, name, fits) for arm in ("master", "patched") for name in ("work_mem * 1.125", "work_mem * 1.25")]
    assert finding(duel(join(), join(peak=70), *variants))


def test_more_memory_is_a_multiple_of_the_statements_own() -> None:
    runs: list[Run] = []

    def respond(run: Run) -> CaseObservation:
        runs.append(run)
        return seen_in(run, join() if run.arm == "master" else join(peak=70))

    judged(Memory(), CASE, respond)
    assert {"72kB", "80kB"} == {
        value for run in runs for mode in run.modes for name, value in mode.settings if name == "work_mem"
    }


def duel_with_table_of_one_tuple(peak: int, master: Node, patched: Node) -> tuple[Verdict, ...]:
    """Judge the plans; a table of one tuple takes `peak` kilobytes in the additional run."""
    plain = {"master": master, "patched": patched}
    return judged(Memory(), CASE, lambda run: seen_in(run, join(peak, batches=1) if run.instead else plain[run.arm]))


def test_buckets_that_the_reference_does_not_count_are_no_finding() -> None:
    verdicts = duel_with_table_of_one_tuple(1, join(peak=900), join(peak=908))
    assert verdicts == (Inconclusive("the reference does not count buckets"),)
    assert finding(duel_with_table_of_one_tuple(9, join(peak=900), join(peak=908)))
    assert finding(duel_with_table_of_one_tuple(1, join(peak=900), join(peak=910)))


def duel_with_larger_batches(immense: int, peak: int, batches: int) -> tuple[Verdict, ...]:
    """Judge a peak against 298 kB; the reference plans `immense` batches for a table that seems immense."""
    plain = {"master": join(298, batches=batches), "patched": join(peak, batches=batches)}
    table_of_one_tuple, seems_immense = join(9, batches=1), planned(immense)
    seems_immense["Plans"][1]["Plan Rows"] = 10**9

    def plan(run: Run) -> Node:
        if run.instead:
            return seems_immense if run.modes else table_of_one_tuple
        return plain[run.arm]

    return judged(Memory(), CASE, lambda run: seen_in(run, plan(run)))


def test_larger_batches_are_no_finding_if_the_reference_prefers_them() -> None:
    reason = "batches may exceed memory, because more of them need more for files"
    assert duel_with_larger_batches(128, 512, 16) == (Inconclusive(reason),)
    assert finding(duel_with_larger_batches(128, 513, 16))
    assert finding(duel_with_larger_batches(128, 300, 8))
    assert finding(duel_with_larger_batches(8192, 300, 16))


def test_sorts_that_write_more_with_more_memory_are_no_finding() -> None:
    settings = "work_mem * 1.125", "work_mem * 1.25"
    variants = [(arm, name, join(written=300)) for arm in ("master", "patched") for name in settings]
    verdicts = duel(join(), join(written=300), *variants)
    assert verdicts == (Unstable(f"{WRITTEN}: not with a little more memory"),)


def test_batches_that_buckets_need_are_no_finding() -> None:
    variants = [("patched", name, join()) for name in ("work_mem * 1.125", "work_mem * 1.25")]
    verdicts = duel(join(), join(written=300), *variants)
    assert verdicts == (Unstable(f"{WRITTEN}: not with a little more memory"),)


def near_limit(peak: int, batches: int, buckets: int, written: int, *, rows: int = 30, originally: int = 0) -> Node:
    """Return a join with these figures of its hash table, and an expected row width of 2 kB."""
    table = {"Peak Memory Usage": peak, "Hash Batches": batches, "Original Hash Batches": originally or batches}
    table |= {"Hash Buckets": buckets, "Original Hash Buckets": buckets, "Plan Rows": rows, "Plan Width": 2000}
    plan = hash_join("Inner", 10, 10, 5, table=table) | {WRITTEN: written}
    plan["Plans"][0]["Plan Width"] = 2000
    return plan


ONE_BATCH, TWO_BATCHES = near_limit(48, 1, 1024, 0, rows=25), near_limit(33, 2, 32, 15, rows=25)
OTHER = [
    (arm, name, node("Merge Join", 10))
    for arm in ("master", "patched")
    for name in ("work_mem * 1.125", "work_mem * 1.25")
]
FOR_BUCKETS = (Inconclusive("joins need other batches for their buckets"),)


def test_batches_for_expected_tuples_and_buckets_are_no_finding_even_if_more_memory_changes_the_plan() -> None:
    fits = near_limit(58, 1, 1024, 0)
    assert duel(fits, near_limit(33, 2, 32, 15), *OTHER) == FOR_BUCKETS
    assert finding(duel(ONE_BATCH, TWO_BATCHES, *OTHER))  # 1024 buckets fit in addition


def test_buckets_that_need_more_memory_than_all_runs_have_are_no_finding() -> None:
    assert duel(near_limit(58, 1, 1024, 0), near_limit(33, 2, 32, 15)) == FOR_BUCKETS
    assert finding(duel(ONE_BATCH, TWO_BATCHES))


def test_batches_doubled_in_full_memory_are_no_finding_even_if_more_memory_changes_the_plan() -> None:
    fits = near_limit(60, 2, 1024, 20)
    assert duel(fits, near_limit(63, 4, 256, 40, originally=2), *OTHER) == FOR_BUCKETS
    assert finding(duel(fits, near_limit(61, 4, 256, 40, originally=2), *OTHER))


def test_a_join_must_not_write_more_although_another_needs_batches() -> None:
    def append(first: Node, second: Node) -> Node:
        return node("Append", 10, first, second, **{WRITTEN.replace(" ", "_"): first[WRITTEN] + second[WRITTEN]})

    before, after = near_limit(60, 2, 1024, 20), near_limit(63, 4, 256, 40, originally=2)
    assert duel(append(before, before), append(after, before), *OTHER) == FOR_BUCKETS
    assert finding(duel(append(before, before), append(after, before | {WRITTEN: 25}), *OTHER))


OTHER_TUPLES = (Unstable(f"{WRITTEN}: not with other tuples in each batch"),)


def test_an_excess_with_some_tuples_in_the_batches_is_no_finding() -> None:
    large = join(written=300)
    assert finding(duel(join(), large))
    for salt in (1, 14):
        assert duel(join(), large, ("patched", f"hash_salt {salt}", join())) == OTHER_TUPLES
        assert duel(join(), large, ("master", f"hash_salt {salt}", large)) == OTHER_TUPLES
    assert duel(join(), large, ("patched", "hash_salt 2", node("Merge Join", 10))) == OTHER_TUPLES
    assert finding(duel(join(), large, ("patched", "hash_salt 2", join(written=109))))


def test_an_excess_that_buckets_do_not_explain_must_occur_with_other_tuples_in_the_batches() -> None:
    assert finding(duel(ONE_BATCH, TWO_BATCHES, *OTHER))
    assert duel(ONE_BATCH, TWO_BATCHES, *OTHER, ("patched", "hash_salt 2", ONE_BATCH)) == OTHER_TUPLES


def salted_runs(*otherwise: tuple[str, str, Node]) -> list[Run]:
    """Return the salted runs that an excess causes; `otherwise` lists runs with another plan."""
    others = {(arm, name): plan for arm, name, plan in otherwise}
    plain = {"master": ONE_BATCH, "patched": TWO_BATCHES}

    def respond(run: Run) -> CaseObservation:
        return seen_in(run, others.get((run.arm, variant(run)), plain[run.arm]))

    return [run for run in judged_with_runs(Memory(), CASE, respond)[1] if variant(run).startswith("hash_salt")]


def test_other_tuples_are_tried_until_the_excess_is_refuted() -> None:
    assert len(salted_runs()) == 28
    assert len(salted_runs(("patched", "hash_salt 3", ONE_BATCH))) == 6
    assert not salted_runs(("patched", "again 1", ONE_BATCH))


def test_other_tuples_are_tried_with_memory_for_buckets_unless_that_changes_the_plan() -> None:
    def memory(runs: list[Run]) -> set[tuple[str, str]]:
        settings = ((run.arm, setting) for run in runs for mode in run.modes for setting in mode.settings)
        return {(arm, value) for arm, (name, value) in settings if name == "work_mem"}

    assert memory(salted_runs()) == {("patched", "72kB"), ("patched", "80kB")}
    runs = salted_runs(*OTHER)
    assert (len(runs), memory(runs)) == (28, set())


def test_other_tuples_of_an_indivisible_batch_may_differ() -> None:
    def divided(peak: int, others: int, batches: int = 16) -> Node:
        plan = join(peak=peak)
        plan["Plans"][1] |= {WRITTEN: others, "Hash Batches": batches}
        return plan

    why = "a batch is larger than memory, and its other tuples differ between arms"
    assert duel(divided(313, 35), divided(365, 28)) == (Inconclusive(why),)
    assert duel(divided(313, 35), divided(365, 35, batches=8)) == (Inconclusive(why),)
    assert finding(duel(divided(313, 35), divided(365, 35)))
    assert finding(duel(divided(60, 35), divided(66, 28)))
    assert finding(duel(divided(65, 35), divided(90, 28)))  # the reference has added batches in time


def test_a_lost_connection_is_inconclusive() -> None:
    lost: Callable[[Run], CaseObservation] = lambda run: replace(seen(LOST), residue=None)  # noqa: E731
    assert judged(Memory(), CASE, lost) == (Inconclusive("connection lost"),)


@pytest.mark.parametrize(
    ("settings", "kilobytes"),
    [({}, 8192), ({"work_mem": "64kB"}, 128), ({"work_mem": "1MB", "hash_mem_multiplier": "1.5"}, 1536)],
)
def test_the_allowance_follows_the_settings(settings: dict[str, str], kilobytes: float) -> None:
    assert allowance(settings) == kilobytes


def test_statements_that_set_memory_get_more() -> None:
    sets = (Step("SET work_mem = '64kB'"), Step("set local WORK_MEM to '1MB'"), Step("SET work_mem_x = '1MB'"), query())
    assert with_work_mem(case(*sets), 64, 9 / 8).instead == (
        (0, "SET work_mem = '72kB'"),
        (1, "set local WORK_MEM = '1152kB'"),
    )


def test_a_batch_larger_than_memory_may_be_split_at_another_time() -> None:
    (verdict,) = duel(join(peak=900), join(peak=900, written=300))
    assert isinstance(verdict, Inconclusive)
    assert "larger than memory" in verdict.reason
    assert finding(duel(join(peak=64), join(peak=64, written=300)))
