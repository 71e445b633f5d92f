"""Memory of changes: no COPY FROM, INSERT, UPDATE or DELETE needs much more memory than on the reference.

All memory of a statement is freed at its end, so the oracle `leak` does not see memory that is lost for each row. The
probe measures the memory of all contexts after some inserts of a COPY, and after the last row of any other change
(`pgduel_probe.c`). The runs are those that explain the case's queries.

The margin is that of `execution_cost`: a factor of 1.5 and 64 kB. Changes with joins, subqueries, grouping or sorts are
not compared, because their plans may need other memory. Changes with other numbers of rows are not compared either.
"""

from collections.abc import Mapping
from typing import ClassVar, Final

from oracles.explain.nodes import EXECUTOR_MEMORY, EXPLAINED, Node
from oracles.framework.canaries import canary_case, query
from oracles.framework.cost import Cost, ExplainedCostOracle, ExplainedCostPair
from oracles.model.case import Kind, Step
from oracles.model.finding import Evidence
from oracles.model.observation import Outcome, Run
from oracles.model.oracle import Canary
from oracles.sql.building import trees
from oracles.sql.determinism import changes_plainly

_TAG: Final = "Command Tag"


def _memory(change: Node) -> float:
    return float(change[EXECUTOR_MEMORY])


def _is_compared(step: Step) -> bool:
    """Return whether a step is a COPY FROM, or a change of one table."""
    if step.kind is Kind.COPY_IN:
        return True
    parsed = trees(step.sql) if step.kind is Kind.COMMAND else ()
    return len(parsed) == 1 and changes_plainly(parsed[0].stmt)


COSTS: Final = (Cost("memory of a change", "kB", 1.5, 64, 20, _memory),)


class _ChangeMemoryPair(ExplainedCostPair):
    oracle = "change_memory"
    costs = COSTS

    def plans_of(self, run: Run) -> Mapping[int, Node]:
        """Return memory and command tags of the changes that succeeded, by step."""
        steps = self.observations[run].steps
        return {
            position: {EXECUTOR_MEMORY: seen.memory, _TAG: seen.tags}
            for position, (step, seen) in enumerate(zip(self.case.all_steps, steps, strict=True))
            if seen.outcome is Outcome.OK and _is_compared(step)
        }

    def form(self, plan: Node) -> tuple[str, ...]:
        return tuple(plan[_TAG])

    def place(self, step: int, _plan: Node) -> str:
        return f": {self.case.all_steps[step].sql.split()[0]}"

    def evidence(self, _sql: str) -> tuple[Evidence, ...]:
        """Return nothing, because psql cannot show the memory of a statement."""
        return ()


class ChangeMemory(ExplainedCostOracle):
    """COPY FROM, INSERT, UPDATE and DELETE that need much more memory than on the reference."""

    name: ClassVar[str] = _ChangeMemoryPair.oracle
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary(
            "execute_with_more_memory",
            canary_case(Step("INSERT INTO nest SELECT n, name FROM canary"), query("SELECT 1"), samples=(EXPLAINED,)),
        ),
    )
    pair = _ChangeMemoryPair
