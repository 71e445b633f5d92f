"""Tests of weighted picks: their frequencies, and the simplest option for a shrinking rng that draws zero."""

import random
from collections import Counter

from fuzz.generators.choices import Weighted, another, between, chance, first_made, pick, pick_name, shuffled, some


class Zero(random.Random):
    """A fully shrunk rng, which draws zero."""

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return 0 if stop is None else start


def test_weights_are_kept() -> None:
    rng = random.Random(1)
    table = Weighted((70, "often"), (29, "sometimes"), (1, "rarely"))
    drawn = Counter(table.pick(rng) for _ in range(10_000))
    assert 6_700 < drawn["often"] < 7_300
    assert 2_600 < drawn["sometimes"] < 3_200
    assert 40 < drawn["rarely"] < 200


def test_a_case_ends_at_its_limit_or_by_one_of_many_choices() -> None:
    rng = random.Random(4)
    assert not another(rng, 3, 3)
    ended = sum(not another(rng, 0, 3) for _ in range(10_000))
    assert 50 < ended < 200
    assert not another(Zero(), 0, 3)


def test_zero_is_the_simplest() -> None:
    rng = Zero()
    assert Weighted((1, "simple"), (99, "complex")).pick(rng) == "simple"
    assert chance(rng, 99) is False
    assert pick(rng, "abc") == "a"
    assert between(rng, 3, 9) == 3
    assert shuffled(rng, "abc") == ("a", "b", "c")
    assert some(rng, "abc", 2) == ("a", "b")


def test_picks_are_options() -> None:
    rng = random.Random(2)
    assert {between(rng, 3, 5) for _ in range(100)} == {3, 4, 5}
    assert chance(rng, 100)
    assert not chance(rng, 0)
    for _ in range(50):
        assert sorted(shuffled(rng, "abcd")) == list("abcd")
        assert len(set(some(rng, "abcd", 3))) == 3
    assert some(rng, "ab", 5) in {("a", "b"), ("b", "a")}


def test_names_are_picked_by_weight() -> None:
    rng = random.Random(4)
    drawn = Counter(pick_name(rng, {"often": 7, "rarely": 1, "never": 0}) for _ in range(4_000))
    assert drawn.keys() == {"often", "rarely"}
    assert 3_350 < drawn["often"] < 3_650


def test_a_new_name_changes_only_the_picks_that_it_wins() -> None:
    before, after = random.Random(5), random.Random(5)
    weights = {"a": 3, "b": 1}
    pairs = [(pick_name(before, weights), pick_name(after, {"new": 1, **weights})) for _ in range(1_000)]
    changed = [new for old, new in pairs if old != new]
    assert set(changed) == {"new"}
    assert 150 < len(changed) < 250
    assert before.getstate() == after.getstate()


def test_constructors_without_a_result_are_drawn_again_a_few_times() -> None:
    rng = random.Random(3)
    calls = []

    def never(argument: int) -> str | None:
        calls.append(argument)
        return None

    assert first_made(rng, Weighted((1, never)), 7) is None
    assert calls == [7, 7, 7]
    assert first_made(rng, Weighted((1, str)), 7) == "7"
