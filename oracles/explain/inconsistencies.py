"""Base of the oracles that find inconsistent figures in EXPLAIN (ANALYZE) of a single arm."""

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from oracles.explain.nodes import EXPLAINED, Node, explained_runs, plans
from oracles.model.case import Case
from oracles.model.finding import Evidence, Finding, as_all_do, first_of_each, pairs_of
from oracles.model.observation import CaseObservation, Outcome, Run
from oracles.model.oracle import (
    CONNECTION_LOST,
    Agree,
    Inconclusive,
    Observations,
    Oracle,
    Sample,
    Verdict,
    duel,
    judged_arms,
)


@dataclass(frozen=True, slots=True)
class Inconsistency:
    """A violated identity of a node's figures."""

    name: str
    of: str  # kind of node
    figures: tuple[str, ...]  # figures, one line each

    @property
    def origin(self) -> str:
        """Return the origin of its findings."""
        return f"{self.name}: {self.of}"


class InconsistentFigures(Oracle):
    """An oracle that judges each arm, including the first one, by its own figures in a sample of the cases."""

    needs_another_arm: ClassVar[bool] = False
    samples: ClassVar[tuple[Sample, ...]] = (EXPLAINED,)

    @abstractmethod
    def inconsistencies(self, explained: Node) -> Iterator[Inconsistency]:
        """Yield the violated identities in the EXPLAIN (ANALYZE, FORMAT JSON) output of a statement."""

    def runs(self, case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
        """Return the plain runs, and the explained runs of a sample of cases."""
        return duel(case, arms) + explained_runs(case, arms)

    def judge(self, case: Case, arms: Sequence[str], observations: Observations) -> tuple[Verdict, ...]:
        """Return a finding for each identity that an arm violates, else the number of judged statements."""
        seen = {run.arm: observations[run] for run in explained_runs(case, arms)}
        broken: dict[tuple[str, int], dict[str, Inconsistency]] = defaultdict(dict)  # (origin, step) -> arm -> example
        for arm, observed in seen.items():
            for position, plan in plans(observed):
                for found in self.inconsistencies(plan):
                    broken[found.origin, position].setdefault(arm, found)
        findings = first_of_each(
            self._finding(case, pair, position, examples[pair[1]])
            for (_, position), examples in broken.items()
            for pair in pairs_of(arms, examples)
        )
        suspects = {finding.arms[1] for finding in findings}
        return (*findings, *(_unsuspected(seen.get(arm)) for arm in judged_arms(arms) if arm not in suspects))

    def _finding(self, case: Case, pair: tuple[str, str], position: int, found: Inconsistency) -> Finding:
        return Finding(
            oracle=self.name,
            arms=pair,
            origin=found.origin,
            step=position,
            summary=f"step {position}: figures of a {found.of} contradict: {found.name}{as_all_do(pair)}",
            expected=found.name,
            actual="\n".join(found.figures),
            evidence=(Evidence(case.all_steps[position].sql, explained=True),),
        )


def _unsuspected(observed: CaseObservation | None) -> Agree | Inconclusive:
    if observed is not None and observed.residue is None:
        lost = next((step for step, seen in enumerate(observed.steps) if seen.outcome is Outcome.LOST), None)
        return Inconclusive(CONNECTION_LOST, lost, ("the session continues", f"{observed.arm} loses it"))
    return Agree(len(list(plans(observed))) if observed is not None else 0)
