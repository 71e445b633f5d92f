"""Tests of query plan guidance: the choice of mutations, and their statements."""

import random
from collections import Counter

import pglast
import pytest

from fuzz.sources.qpg import MUTATIONS, Bandit, SceneTable

TABLE = SceneTable("t", ("a", '"B"', "c"))


def test_the_best_mutation_is_drawn_most_and_all_are_drawn() -> None:
    rng, bandit = random.Random(1), Bandit("abc")
    for _ in range(20):
        for name, amount in (("a", 0), ("b", 5), ("c", 1)):
            bandit.reward(name, amount)
    drawn = Counter(bandit.pull(rng) for _ in range(300))
    assert drawn["b"] > 200
    assert min(drawn["a"], drawn["c"]) > 5


def test_a_mutation_without_further_rewards_is_drawn_less() -> None:
    rng, bandit = random.Random(1), Bandit("ab")
    bandit.reward("a", 9)
    for _ in range(20):
        bandit.reward("a", 0)
    assert Counter(bandit.pull(rng) for _ in range(100))["b"] > 60


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_is_one_statement_about_the_table(name: str) -> None:
    for seed in range(20):
        sql = MUTATIONS[name](random.Random(seed), TABLE)
        assert len(pglast.parse_sql(sql)) == 1
        assert " t " in f"{sql} "
        assert sql == MUTATIONS[name](random.Random(seed), TABLE)


def test_a_table_of_one_column_can_be_mutated_too() -> None:
    for name in MUTATIONS:
        assert pglast.parse_sql(MUTATIONS[name](random.Random(3), SceneTable("t", ("a",))))
