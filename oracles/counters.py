"""Counters: what EXPLAIN (ANALYZE) tells of a hash join adds up, on each arm by itself."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

from oracles.canary_case import canary_case, query
from oracles.case import Case
from oracles.explanation import Place, explained_runs, loops, places, plans
from oracles.finding import Beside, Finding, as_all_do, pairs_of
from oracles.hash_join_identities import IDENTITIES, Join
from oracles.mode import Mode
from oracles.observation import CaseObservation, Run
from oracles.oracle import Agree, Canary, Inconclusive, Observations, Oracle, Verdict, accused, duel
from oracles.sampling import EXPLAINED

_SEEN_AS_HASH_JOIN: Final = (
    Mode("hash_only", (("enable_mergejoin", "off"), ("enable_nestloop", "off"))),
    EXPLAINED.mode,
)
_CANARY: Final = canary_case(
    query("SELECT canary.n, nest.name FROM canary LEFT JOIN nest ON canary.n = nest.n"), modes=_SEEN_AS_HASH_JOIN
)


class Counters(Oracle):
    """Figures that contradict each other are wrong, whatever the other arm says."""

    name: ClassVar[str] = "counters"
    needs_another_arm: ClassVar[bool] = False
    canaries: ClassVar[tuple[Canary, ...]] = (Canary("miscount", _CANARY),)

    def runs(self, case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
        """Return the duel, and the explained runs of a share of cases."""
        return duel(case, arms) + explained_runs(case, arms)

    def judge(self, case: Case, arms: Sequence[str], observations: Observations) -> tuple[Verdict, ...]:
        """Return a finding for each identity that an arm breaks, else how many statements were looked at."""
        seen = {run.arm: observations[run] for run in explained_runs(case, arms)}
        broken: dict[str, dict[str, tuple[int, Join]]] = defaultdict(dict)  # identity -> arm -> example
        for arm, observed in seen.items():
            for name, position, join in _contradictions(observed):
                broken[name].setdefault(arm, (position, join))
        found = [
            _finding(case, pair, name, *examples[pair[1]])
            for name, examples in broken.items()
            for pair in pairs_of(arms, examples)
        ]
        suspects = {finding.arms[1] for finding in found}
        return (*found, *(_unsuspected(seen.get(arm)) for arm in accused(arms) if arm not in suspects))


def _contradictions(observed: CaseObservation) -> Iterator[tuple[str, int, Join]]:
    for position, plan in plans(observed):
        for join in map(_join, places(plan)):
            if join is not None:
                yield from ((each.name, position, join) for each in IDENTITIES if each.fails(join))


def _join(place: Place) -> Join | None:
    """Return the hash join at this place, if there is one that ran."""
    is_join = place.node["Node Type"] == "Hash Join" and loops(place.node) > 0
    return Join(place.node, place.finished) if is_join else None


def _unsuspected(observed: CaseObservation | None) -> Agree | Inconclusive:
    if observed is not None and observed.residue is None:
        return Inconclusive("connection lost")
    return Agree(len(list(plans(observed))) if observed is not None else 0)


def _finding(case: Case, pair: tuple[str, str], name: str, position: int, join: Join) -> Finding:
    told = {key: value for key, value in {**join.node, **join.hash}.items() if key != "Plans"}
    figures = [
        f"returned {join.returned} of outer {join.outer} and inner {join.inner} in {loops(join.node)} loops",
        *(f"{key}: {told[key]}" for key in sorted(told) if "Hash B" in key or key.startswith("Rows Removed")),
        *(f"{key}: {value}" for key, value in join.filter.items()),
    ]
    return Finding(
        oracle=Counters.name,
        arms=pair,
        origin=f"{name}: Hash {join.kind} Join",
        step=position,
        summary=f"step {position}: figures of a Hash {join.kind} Join contradict: {name}{as_all_do(pair)}",
        expected=name,
        actual="\n".join(figures),
        beside=(Beside(case.all_steps[position].sql, explained=True),),
    )
