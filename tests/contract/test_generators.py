"""Tests of each generator's contract: determinism, single statements, scale and modes."""

import json
import os
import pickle
import random
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import Phase, find, settings
from hypothesis import strategies as st
from pglast.parser import parse_sql_json

from fuzz.engines.property_based import SMALL, profile
from fuzz.engines.seeded import case_of, draw_case, draw_modes
from fuzz.errors import CaseError
from fuzz.execution.modes import MODES
from fuzz.execution.modes.roles import ORDINARY
from fuzz.generators.choices import Stream, StreamedRandom
from fuzz.generators.generator import Generator, Scale, all_generators
from fuzz.sources.workloads import workload_named
from oracles.model.case import Case, CaseId, Kind
from oracles.model.mode import protocol_of

CHECKOUT = Path(__file__).parents[2]
GENERATORS = all_generators()
CASES = 25

each_generator = pytest.mark.parametrize("generator", GENERATORS.values(), ids=list(GENERATORS))


def made(generator: Generator, scale: Scale | None = None) -> tuple[Case, ...]:
    return tuple(case_of(CaseId(3, generator.name, index), scale or Scale()) for index in range(CASES))


@cache
def cases(generator: Generator) -> tuple[Case, ...]:
    """Return many cases, which most tests use."""
    return made(generator)


def digest(generator: Generator) -> str:
    """Return a hash of many cases."""
    return sha256("".join(map(repr, cases(generator))).encode()).hexdigest()


def digests() -> dict[str, str]:
    """Return the digests of all generators. Other processes call it."""
    return {name: digest(generator) for name, generator in GENERATORS.items()}


@cache
def digests_under(hash_seed: str) -> Mapping[str, str]:
    """Return the digests in another process."""
    program = "import json; from tests.contract.test_generators import digests; print(json.dumps(digests()))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        check=True,
    )
    printed: dict[str, str] = json.loads(done.stdout)
    return printed


@each_generator
def test_a_seed_gives_the_same_case_in_every_process(generator: Generator) -> None:
    assert digests_under("1")[generator.name] == digests_under("2")[generator.name] == digest(generator)


@each_generator
def test_seeds_differ(generator: Generator) -> None:
    assert len(set(cases(generator))) == CASES


@each_generator
def test_only_the_given_randomness_is_used(generator: Generator) -> None:
    first = cases(generator)
    random.seed(99)
    before = random.getstate()
    assert made(generator) == first
    assert random.getstate() == before


@each_generator
def test_steps_are_single_statements_with_all_their_parameters(generator: Generator) -> None:
    for case in cases(generator):
        for step in case.all_steps:
            if step.may_fail:
                continue
            tree = parse_sql_json(step.sql)  # a tree of objects would take ten times as long
            assert len(json.loads(tree)["stmts"]) == 1, step.sql
            if step.kind is Kind.QUERY:  # PREPARE has parameters of its own
                params = {int(number) for number in re.findall(r'"ParamRef":\{"number":(\d+)', tree)}
                assert params == set(range(1, len(step.params) + 1)), step.sql


@each_generator
def test_steps_match_their_kinds(generator: Generator) -> None:
    for case in cases(generator):
        assert case.generator == generator.name
        for step in case.all_steps:
            assert (step.copy_data is None) == (step.kind is not Kind.COPY_IN), step.sql
            assert not step.params or step.kind is Kind.QUERY, step.sql
            assert not (step.ordered and step.kind is Kind.QUERY) or "ORDER BY" in step.sql, step.sql
            assert not step.sql.rstrip().endswith(";"), step.sql


@each_generator
def test_cases_can_be_sent_to_workers(generator: Generator) -> None:
    for case in cases(generator):
        assert pickle.loads(pickle.dumps(case)) == case


@each_generator
def test_scale_is_respected(generator: Generator) -> None:
    small = made(generator, Scale(rows=20, relations=2, partitions=2, queries=3))
    assert sum(map(_size, small)) < sum(map(_size, cases(generator))) * 2 / 3


def _size(case: Case) -> int:
    return sum(len(step.sql) + len(step.copy_data or b"") for step in case.all_steps)


class _Counted(StreamedRandom):
    """The choices of another source, and the number of actions that a generator marks."""

    def __init__(self, choices: random.Random) -> None:
        super().__init__(0)
        self._choices = choices
        self.actions = 0

    def begin(self, stream: Stream) -> None:
        self.actions += stream is Stream.ACTION

    def has_another_action(self) -> bool:
        return self.randrange(100) > 0

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return self._choices.randrange(start, stop, step)


def _actions(generator: Generator, choices: random.Random) -> int:
    """Return the number of actions in a case of a property test; of steps if the generator does not mark actions."""
    counted = _Counted(choices)
    case = draw_case(counted, generator, SMALL)
    return counted.actions or len(case.steps)


@each_generator
def test_some_cases_of_property_tests_have_several_actions(generator: Generator) -> None:
    """An action is a statement, or statements that belong together. Some faults need two of them."""
    numbers = st.randoms(use_true_random=False).map(lambda choices: _actions(generator, choices))
    found = find(numbers, lambda actions: actions >= 2, settings=settings(profile(), phases=[Phase.generate]))
    assert found >= 2


@each_generator
def test_each_mode_of_a_generator_is_drawn(generator: Generator) -> None:
    rng = random.Random(1)
    drawn = {mode.name for _ in range(500) for mode in draw_modes(rng, generator)}
    assert drawn == {name for entry in generator.modes for name in entry.split("+")}
    assert drawn <= set(MODES)


def test_modes_compose() -> None:
    class Composed(Generator):
        name = "composed"
        modes = ("hash_spilling+parallel", "prepared_generic")

        def generate(self, rng: random.Random, scale: Scale) -> Case:
            return Case(self.name, (), ())

    rng = random.Random(2)
    modes = [draw_case(rng, Composed(), Scale()).modes for _ in range(20)]
    drawn = {tuple(mode for mode in each if mode != ORDINARY) for each in modes}
    spilling, parallel, prepared = MODES["hash_spilling"], MODES["parallel"], MODES["prepared_generic"]
    assert drawn == {(spilling, parallel), (spilling, parallel, prepared)}
    assert protocol_of((spilling, parallel, prepared)) is prepared.protocol


def test_unknown_names_are_refused() -> None:
    class Unknown(Generator):
        name = "unknown"
        modes = ("silence",)

        def generate(self, rng: random.Random, scale: Scale) -> Case:
            return Case(self.name, (), ())

    with pytest.raises(CaseError, match=r"no mode is called 'silence'; give one of .*plain"):
        draw_modes(random.Random(3), Unknown())
    with pytest.raises(CaseError, match="no generator is called 'absent'"):
        workload_named("absent")
