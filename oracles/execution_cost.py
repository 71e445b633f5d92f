"""Execution cost: no query takes much more CPU time, buffers or memory than on the reference.

The probe measures the CPU time of the executor and its parallel workers, and the memory that the query holds at its end
in all contexts (fuzz/servers/modules). That memory is freed with the query, so the oracle `leak` cannot see it. Queries
with other plans are not compared: which of two plans is better depends on estimates. Nor are those with other numbers
of batches in a hash table: a server that counts the array of buckets may need more, and must then build the table again
in each rescan. The oracle `memory` judges the number of batches. But a table that was built once and had far fewer rows
than expected needed none of its batches, so their cost is compared.

Dead rows cost time and buffers until a scan removes them, which a transaction of any session prevents, even in another
database: GlobalVisTestShouldUpdate in procarray.c computes no newer horizon meanwhile. Such a transaction may last for
all rounds of one arm. So where a case may have left dead rows, these costs are in doubt.

The margin of CPU time is a factor of 1.5 and a millisecond, because each change of code moves other code: builds of
shipped patches differ from master by up to a quarter in statements of some milliseconds, without any fault. The margin
of memory is a factor of 1.5 and 64 kB, for what a patch adds to each node. A hash join in several batches holds the
last one at its end. The bits of the hash values that select batches decide whether that is a large one. So the peaks of
the reference's tables in several batches are allowed in addition. So are larger arrays of buckets: the oracle `buckets`
judges their number. And so are the buffers of the files of more batches, whose number the oracle `memory` judges.
"""

from typing import ClassVar, Final

from oracles.buckets import BATCHES, PEAK
from oracles.explain.nodes import (
    EXECUTOR_CPU,
    EXECUTOR_MEMORY,
    EXPLAINED,
    Node,
    loops,
    places,
    plan_shape,
)
from oracles.framework.canaries import canary_case, query
from oracles.framework.cost import Cost, ExplainedCostOracle, ExplainedCostPair
from oracles.memory.batches import ORIGINAL_BATCHES, memory_of_buckets
from oracles.model.case import Step
from oracles.model.observation import Observation, Outcome
from oracles.model.oracle import Canary
from oracles.sql.building import trees
from oracles.sql.determinism import is_read_only, leaves_dead_rows

_EXECUTIONS: Final = 5  # of a short query in a round
_LONG: Final = 100.0  # ms, whose share of noise is small after one execution
_FILE: Final = 9.0  # kB of a BufFile: a block, and less than one kB besides (src/backend/storage/file/buffile.c)
_OVERESTIMATE: Final = 100  # times the rows of a hash table
_BUFFERS: Final = ("Shared Hit Blocks", "Shared Read Blocks", "Local Hit Blocks", "Local Read Blocks")

_CANARY: Final = canary_case(query("SELECT n, name FROM canary"), samples=(EXPLAINED,))


def _cpu_time(plan: Node) -> float:
    return float(plan.get(EXECUTOR_CPU, 0))


def _buffers(plan: Node) -> float:
    """Return the number of buffers that were read, found in memory or not; 0 for a parallel plan.

    Parallel workers read catalogs.
    """
    return 0.0 if _is_parallel(plan) else float(sum(plan["Plan"].get(name, 0) for name in _BUFFERS))


def _memory(plan: Node) -> float:
    """Return the memory at the end of the query in kB; 0 for a parallel plan."""
    return 0.0 if _is_parallel(plan) else float(plan.get(EXECUTOR_MEMORY, 0))


def _in_batches(plan: Node) -> float:
    """Return the peaks of the hash tables in several batches in kB, of which the last batch may hold nothing or all."""
    nodes = (place.node for place in places(plan))
    return float(sum(node.get(PEAK, 0) for node in nodes if node.get(BATCHES, 1) > 1))


def _allowed_memory(ours: Node, theirs: Node) -> float:
    """Return the kB that a suspect's plan may hold in addition, because of its batches, their files, and buckets."""
    arrays, files = (size(theirs) - size(ours) for size in (_arrays_of_buckets, _batch_files))
    return _in_batches(ours) + max(0.0, arrays) + max(0.0, files)


def _arrays_of_buckets(plan: Node) -> float:
    """Return the size of all arrays of buckets in kB."""
    return sum(memory_of_buckets(place.node) for place in places(plan))


def _batch_files(plan: Node) -> float:
    """Return the size of the buffers of batches' files in kB: each batch but the first has one of each side."""
    batches = (place.node.get(BATCHES, 1) for place in places(plan))
    return float(sum(2 * _FILE * (number - 1) for number in batches))


def _is_parallel(plan: Node) -> bool:
    """Return whether a plan has parallel workers. The number that start in time depends on chance."""
    return any("Workers Planned" in place.node for place in places(plan))


def _may_leave_dead_rows(step: Step, seen: Observation) -> bool:
    """Return whether a step may change or delete rows, or roll back: all that does not only add rows or read."""
    if seen.outcome is not Outcome.OK:
        return not is_read_only(step.sql)
    statements = trees(step.sql)
    return not statements or any(leaves_dead_rows(each.stmt) for each in statements)


def _batches(node: Node) -> int:
    """Return the number of batches of a hash table; 0 if it was built once, and its rows were overestimated."""
    if BATCHES not in node:
        return 0
    overestimated = node["Plan Rows"] > _OVERESTIMATE * node["Actual Rows"]
    needless = overestimated and loops(node) == 1 and node[BATCHES] == node[ORIGINAL_BATCHES]
    return 0 if needless else int(node[BATCHES])


COSTS: Final = (
    Cost("CPU time of execution", "ms", 1.5, 1.0, 20, _cpu_time),
    Cost("buffers read", "blocks", 1.5, 100, 20, _buffers),
    Cost("memory of execution", "kB", 1.5, 64, 20, _memory, _allowed_memory),
)


class _ExecutionCostPair(ExplainedCostPair):
    oracle = "execution_cost"
    costs = COSTS

    def executions(self, step: int) -> int:
        is_long = any(_cpu_time(self.first_plans(arm)[step]) > _LONG for arm in (self.reference, self.suspect))
        return 1 if is_long else _EXECUTIONS

    def form(self, plan: Node) -> tuple[str, tuple[int, ...]]:
        """Return the shape of a plan, and the numbers of batches that its hash tables may have needed."""
        return plan_shape(plan), tuple(_batches(place.node) for place in places(plan))

    def legal_reason(self, cost: Cost, step: int) -> str:
        if cost.of is _memory:
            return ""
        seen = self.observations[self.first(self.reference)].steps
        before = zip(self.case.all_steps[:step], seen, strict=False)
        return "dead rows" if any(_may_leave_dead_rows(each, one) for each, one in before) else ""


class ExecutionCost(ExplainedCostOracle):
    """Queries that need much more CPU time, buffers or memory than with the same plan on the reference."""

    name: ClassVar[str] = _ExecutionCostPair.oracle
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary("run_slowly", _CANARY),
        Canary("read_again", _CANARY),
        Canary("execute_with_more_memory", _CANARY),
    )
    pair = _ExecutionCostPair
