"""Runs that several oracles request: planned ones, repeated ones, and those under other plans.

A planned run does not execute queries. A repeated run executes a case several times in one session, which shows growth
and memory freed too early. Under other plans, rows must be the same, so an arm can be compared with itself: `result`
decides so whether a difference is a fault of the suspect. For `dqp`, each difference between them is a fault.
"""

from collections.abc import Sequence
from typing import Final

from oracles.explain.nodes import plans
from oracles.framework.canaries import canary_case, query
from oracles.framework.verdicts import lost_session, outcomes_doubt
from oracles.model.case import Case, Kind
from oracles.model.mode import Mode
from oracles.model.observation import CaseObservation, Run
from oracles.model.oracle import Inconclusive, Sample

PLANNED: Final = Sample("planned", 5)  # the scene, and plans of queries that are not executed
PLANNED_JOIN: Final = canary_case(
    query("SELECT canary.n, nest.name FROM canary JOIN nest ON canary.n = nest.n"), samples=(PLANNED,)
)
_PLANNINGS: Final = 2  # the first planning may have to fill caches


def planned_runs(case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
    """Return a planned run on each arm if the case is in the sample and has a query."""
    wanted = case in PLANNED and any(step.kind is Kind.QUERY for step in case.all_steps)
    return tuple(planned_run(case, arm) for arm in arms) if wanted else ()


def planned_run(case: Case, arm: str, repetition: int = 0) -> Run:
    """Return the planned run of a case on an arm, or a repetition of it."""
    return Run(arm, case.modes, plannings=_PLANNINGS, repetition=repetition)


def planned_steps(reference: CaseObservation, suspect: CaseObservation) -> tuple[list[int], Inconclusive | None]:
    """Return the steps that both arms planned, and a doubt about the others, if any.

    After a step with different outcomes, tables may have different contents, so later steps are excluded.
    """
    if reference.residue is None or suspect.residue is None:
        return [], lost_session(reference, suspect)
    ours, theirs = dict(plans(reference)), dict(plans(suspect))
    for step, (one, other) in enumerate(zip(reference.steps, suspect.steps, strict=True)):
        if (one.outcome, one.sqlstate) != (other.outcome, other.sqlstate):
            doubt = outcomes_doubt("a step ended otherwise", step, reference, suspect)
            return sorted(each for each in ours.keys() & theirs.keys() if each < step), doubt
    return sorted(ours.keys() & theirs.keys()), None


REPEATED: Final = Sample("repeated", 16)  # repetition takes many times as long as the case
REPEATS: Final = 6


def repeated_runs(case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
    """Return a repeated run on each arm if the case is in the sample."""
    return tuple(Run(arm, case.modes, REPEATS) for arm in arms) if case in REPEATED else ()


SERIAL: Final = ("max_parallel_workers_per_gather", "0")

# Each method of joining, aggregating and scanning is disabled at least once; memory is large, default and small.
# Partition-wise plans are off in one and on in another, so one of them differs from each mode of a case.
OTHER_PLANS: Final = (
    Mode(
        "hashed",
        (
            ("enable_mergejoin", "off"),
            ("enable_nestloop", "off"),
            ("enable_sort", "off"),
            ("enable_partitionwise_join", "off"),
            ("enable_partitionwise_aggregate", "off"),
            ("work_mem", "64MB"),
            SERIAL,
        ),
    ),
    Mode(
        "sorted",
        (
            ("enable_hashjoin", "off"),
            ("enable_nestloop", "off"),
            ("enable_hashagg", "off"),
            ("enable_indexscan", "off"),
            ("enable_bitmapscan", "off"),
            SERIAL,
        ),
    ),
    Mode(
        "looped",
        (
            ("enable_hashjoin", "off"),
            ("enable_mergejoin", "off"),
            ("enable_memoize", "off"),
            ("enable_partition_pruning", "off"),
            SERIAL,
        ),
    ),
    Mode(
        "indexed",
        (("enable_seqscan", "off"), ("enable_partitionwise_join", "on"), ("enable_partitionwise_aggregate", "on")),
    ),
    Mode(
        "workers",
        (
            ("max_parallel_workers_per_gather", "2"),
            ("parallel_setup_cost", "0"),
            ("parallel_tuple_cost", "0"),
            ("min_parallel_table_scan_size", "0"),
            ("work_mem", "64kB"),
            ("hash_mem_multiplier", "1"),
        ),
    ),
)
