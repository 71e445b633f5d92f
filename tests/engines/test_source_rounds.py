"""Tests of rounds: each part of a replaying source occurs once under the modes of each round."""

import random
from collections import Counter

import pytest

from fuzz.engines import seeded
from fuzz.engines.seeded import case_of
from fuzz.generators.generator import Scale
from fuzz.sources.source import Source, UserInput
from oracles.model.case import Case, CaseId, Step

PARTS = ("a", "b", "c", "d", "e")


class Replaying(Source):
    name = "replaying"
    modes = ("plain", "cursor")
    rounds = ("plain", "hash_spilling+features_forced")

    @classmethod
    def lacks(cls, given: UserInput) -> str:
        return ""

    def parts(self) -> tuple[str, ...]:
        return PARTS

    def replay(self, part: str, rng: random.Random, scale: Scale) -> Case:
        return Case(self.name, (), (Step(f"SELECT {rng.random()}"),), part=part)

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        return self.replay("drawn", rng, scale)


@pytest.fixture(autouse=True)
def _only_workload(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeded, "workload_named", lambda *_: Replaying())


def cases(seed: int, count: int) -> list[Case]:
    return [case_of(CaseId(seed, "replaying", index), Scale()) for index in range(count)]


def test_each_part_occurs_once_in_each_round_and_any_part_afterwards() -> None:
    found = cases(1, 12)
    seen = Counter(("+".join(mode.name for mode in case.modes), case.part) for case in found[:10])
    assert seen == Counter((modes, part) for modes in Replaying.rounds for part in PARTS)
    assert {case.modes[0].name for case in found[:5]} == {"plain"}
    assert {case.part for case in found[10:]} == {"drawn"}


def test_first_parts_have_a_round_for_each_mode_before_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    later = cases(1, 12)
    monkeypatch.setattr(Replaying, "first_parts", lambda _: ("new", "changed"))
    found = cases(1, 18)
    seen = [("+".join(mode.name for mode in case.modes), case.part) for case in found[:6]]
    assert [modes for modes, _ in seen[::2]] == ["plain", "hash_spilling+features_forced", "cursor"]
    assert [{part for _, part in seen[place : place + 2]} for place in (0, 2, 4)] == 3 * [{"new", "changed"}]
    assert [(case.modes, case.part) for case in found[6:]] == [(case.modes, case.part) for case in later]


def test_the_order_depends_on_the_seed_alone() -> None:
    assert cases(1, 12) == cases(1, 12)
    assert [case.part for case in cases(1, 5)] != [case.part for case in cases(2, 5)]
