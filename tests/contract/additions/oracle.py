"""Added oracle: without memoization, a query returns as many rows as on the reference."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

from oracles.framework.canaries import canary_case, query
from oracles.framework.pairwise import Pair, SampledPairwise
from oracles.model.case import Case, Kind
from oracles.model.finding import Finding
from oracles.model.mode import Mode
from oracles.model.observation import Outcome, Run
from oracles.model.oracle import Agree, Canary, Sample, Verdict

_SAMPLE: Final = Sample("added_sample", 2)
_UNCACHED: Final = Mode("without memoization", (("enable_memoize", "off"),))


class _Pair(Pair):
    def judge(self) -> tuple[Verdict, ...]:
        counted = list(self._counted())
        findings = tuple(self._finding(*each) for each in counted if each[1] != each[2])
        return findings or (Agree(len(counted)),)

    def _counted(self) -> Iterator[tuple[int, int, int]]:
        ours, theirs = (self.observations[_run(self.case, arm)].steps for arm in (self.reference, self.suspect))
        for number, (step, one, other) in enumerate(zip(self.case.all_steps, ours, theirs, strict=True)):
            if step.kind is Kind.QUERY and one.outcome is other.outcome is Outcome.OK:
                yield number, len(one.rows), len(other.rows)

    def _finding(self, step: int, ours: int, theirs: int) -> Finding:
        arms = (self.reference, self.suspect)
        return Finding(AddedOracle.name, arms, "rows", step, "other number of rows", str(ours), str(theirs))


class AddedOracle(SampledPairwise):
    """Queries that return more or fewer rows than on the reference, without memoization."""

    name: ClassVar[str] = "added_oracle"
    samples: ClassVar[tuple[Sample, ...]] = (_SAMPLE,)
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary("drop_row", canary_case(query("SELECT n FROM canary"), samples=(_SAMPLE,))),
    )
    pair = _Pair

    def own_runs(self, case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
        """Return a run without memoization on each arm, for the cases of the sample."""
        return tuple(_run(case, arm) for arm in arms) if case in _SAMPLE else ()


def _run(case: Case, arm: str) -> Run:
    return Run(arm, (*case.modes, _UNCACHED))
