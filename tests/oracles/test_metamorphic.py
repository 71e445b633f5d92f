"""Tests of what metamorphic oracles share: relations are built once for the observations that they depend on."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from oracles.framework.relations import ArmRuns, MetamorphicRelation, QueryVariant
from oracles.model.observation import Run
from oracles.model.oracle import Agree, More
from oracles.norec import Norec
from tests.oracles.observed import ARMS, case, ok, query, seen

CASE = case(query("SELECT x FROM a WHERE x > 1"))
PLAIN = Run(ARMS[0], CASE.modes)


class Counting(Norec):
    """An oracle that counts how often it builds relations. The first one depends on a run of another variant."""

    built = 0

    def relations(self, arm_runs: ArmRuns) -> Iterator[MetamorphicRelation]:
        """Yield a relation whose query depends on the rows of a helper."""
        self.built += 1
        rows = arm_runs.observation(QueryVariant(((0, "SELECT helper"),))).steps[0].rows
        yield from arm_runs.relation_to_case("as many", {0: f"SELECT {len(rows)}"})


@pytest.fixture
def oracle() -> Counting:
    return Counting()


def test_relations_are_built_once_for_the_runs_that_they_depend_on(oracle: Counting) -> None:
    observations = {PLAIN: seen(ok("1"))}
    for built in (1, 2, 2):  # without the helper's run, with it, with that of the relation
        more = oracle.judge(CASE, ARMS[:1], observations)
        assert oracle.built == built
        if isinstance(more, More):
            observations |= {run: seen(ok("1")) for run in more.runs}
    assert more == (Agree(1, 1),)
    assert oracle.judge(CASE, ARMS[:1], observations) == more
    assert oracle.built == 2


def test_relations_are_built_again_for_other_observations_and_cases(oracle: Counting) -> None:
    observations = {PLAIN: seen(ok("1"))}
    while isinstance(more := oracle.judge(CASE, ARMS[:1], observations), More):
        observations |= {run: seen(ok("1")) for run in more.runs}
    before = oracle.built
    helper = next(run for run in observations if ("SELECT helper" in dict(run.instead).values()))
    other = oracle.judge(CASE, ARMS[:1], observations | {helper: seen(ok("1", "2"))})
    assert isinstance(other, More)
    assert [sql for run in other.runs for _, sql in run.instead] == ["SELECT 2"]
    oracle.judge(replace(CASE, modes=()), ARMS[:1], observations)
    assert oracle.built == before + 2
