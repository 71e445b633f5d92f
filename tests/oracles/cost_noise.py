"""Noise of the oracles of costs, measured on two servers of one build, where each difference is due to chance.

python -m tests.oracles.cost_noise --pairs 10000

Each query is executed and planned once in each of four rounds, on one server after the other. A pair is a query with
its costs on both servers. Other work of the machine changes the costs of a round on both servers alike. So the two
costs of a round are compared: the p-value is that of the sum of their differences among the sums with any signs. It is
discrete, so it is spread uniformly over its step with a seeded generator. If chance alone decides which server costs
more in a round, these p-values are uniform (Kolmogorov-Smirnov test).
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, product
from typing import Annotated, Final

import numpy
import scipy
import typer
from rich.table import Table

from fuzz.engines.seeded import case_of
from fuzz.execution.executor import Executor
from fuzz.generators.generator import Scale, all_generators
from fuzz.output import note
from fuzz.report.console import Console
from fuzz.servers.arm import Arm, open_arms, parse_arm
from fuzz.servers.base import resolve_base
from fuzz.servers.flavor import FLAVORS
from oracles import execution_cost, planning_cost
from oracles.explain.nodes import Node, plan_shape, plans
from oracles.framework.cost import Cost
from oracles.model.case import Case, CaseId
from oracles.model.observation import Run

_ROUNDS: Final = 4
_SCALE: Final = Scale(queries=60)  # many queries for the time to create their tables
_SIGNS: Final = numpy.array(list(product((1, -1), repeat=_ROUNDS)))  # the first ones change nothing
_EXECUTED: Final = execution_cost.COSTS[0]
_PLANNED: Final = planning_cost.COSTS[0]


@dataclass(frozen=True, slots=True)
class Pair:
    """The costs of a query in each round on two servers of one build."""

    ours: tuple[Node, ...]
    theirs: tuple[Node, ...]

    def values(self, cost: Cost) -> tuple[list[float], list[float]]:
        return [cost.of(plan) for plan in self.ours], [cost.of(plan) for plan in self.theirs]

    def exceeding(self, cost: Cost) -> tuple[int, int]:
        """Return the numbers of rounds in which one server, and the other, exceeds its fellow beyond the margin."""
        return sum(map(cost.exceeds, self.theirs, self.ours)), sum(map(cost.exceeds, self.ours, self.theirs))


def spread_p_value(ours: Sequence[float], theirs: Sequence[float], rng: numpy.random.Generator) -> float:
    """Return the two-sided p-value of the costs in each round, spread over its step: uniform if chance decides."""
    possible = numpy.abs(_SIGNS @ (numpy.array(theirs) - numpy.array(ours)))
    seen, least = possible[0], 1e-9 * possible.max()
    beyond, equal = numpy.mean(possible > seen + least), numpy.mean(numpy.abs(possible - seen) <= least)
    return float(beyond + rng.random() * equal)


def _rounds(executor: Executor, arms: Sequence[Arm], case: Case, **how: int | bool) -> Iterator[Pair]:
    """Yield the pairs of a case's queries that have one plan in all rounds."""
    seen: dict[int, dict[str, list[Node]]] = defaultdict(lambda: defaultdict(list))
    for number in range(1, _ROUNDS + 1):
        for arm in arms:
            run = Run(arm.name, case.modes, repetition=number, **how)  # type: ignore[arg-type]
            for step, plan in plans(executor.observe(case, [run])[run]):
                seen[step][arm.name].append(plan)
    for by_arm in seen.values():
        ours, theirs = (by_arm[arm.name] for arm in arms)
        if len(ours) == len(theirs) == _ROUNDS and len({plan_shape(plan) for plan in [*ours, *theirs]}) == 1:
            yield Pair(tuple(ours), tuple(theirs))


def _report(cost: Cost, pairs: Sequence[Pair], table: Table) -> None:
    rng = numpy.random.default_rng(1)
    values = [spread_p_value(*pair.values(cost), rng) for pair in pairs]
    ratios = [numpy.median(theirs) / numpy.median(ours) for ours, theirs in (pair.values(cost) for pair in pairs)]
    deciles = numpy.histogram(values, bins=10, range=(0, 1))[0] / len(values)
    table.add_row(
        cost.name,
        str(len(pairs)),
        " ".join(f"{share:.1%}" for share in deciles),
        f"{scipy.stats.kstest(values, 'uniform').pvalue:.3g}",
        " ".join(f"{numpy.quantile(ratios, level):.2f}" for level in (0.01, 0.5, 0.99)),
        f"{sum(sum(pair.exceeding(cost)) for pair in pairs)} of {len(pairs) * _ROUNDS}",
        str(sum(_ROUNDS in pair.exceeding(cost) for pair in pairs)),
    )


def main(
    pairs: Annotated[int, typer.Option(help="Pairs of each cost.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of the cases.")] = 1,
    flavor: Annotated[str, typer.Option(help="Flavor of the build.")] = "assert",
) -> None:
    """Measure cases of all generators in turn."""
    base = resolve_base("pg17", note)
    specs = [parse_arm(f"{name}=upstream", base, FLAVORS[flavor], note) for name in ("one", "other")]
    executed: list[Pair] = []
    planned: list[Pair] = []
    with open_arms(specs, note, allow_same_build=True) as arms, Executor(arms, "noise") as executor:
        for index in count():
            for generator in all_generators():
                case = case_of(CaseId(seed, generator, index), _SCALE)
                if len(executed) < pairs:
                    executed += _rounds(executor, arms, case, explain=True)
                if len(planned) < pairs:
                    planned += _rounds(executor, arms, case, plannings=1)
            note(f"{len(executed)} executed and {len(planned)} planned pairs")
            if min(len(executed), len(planned)) >= pairs:
                break
    table = Table(
        "cost", "pairs", "p-values by decile", "KS", "ratio: 1 %, median, 99 %", "rounds beyond", "in all rounds"
    )
    _report(_EXECUTED, executed, table)
    _report(_PLANNED, planned, table)
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
