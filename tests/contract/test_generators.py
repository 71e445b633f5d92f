"""Tests of each generator's contract: determinism, single statements, scale and modes."""

import os
import pickle
import random
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pglast
import pytest
from pglast.ast import Node, ParamRef
from pglast.visitors import Visitor

from fuzz.engines.seeded import case_of, draw_case, draw_modes
from fuzz.errors import CaseError
from fuzz.execution.modes import MODES
from fuzz.execution.modes.roles import ORDINARY
from fuzz.generators.generator import Generator, Scale, all_generators
from fuzz.sources.workloads import workload_named
from oracles.model.case import Case, CaseId, Kind
from oracles.model.mode import protocol_of

CHECKOUT = Path(__file__).parents[2]
GENERATORS = all_generators()
CASES = 25

each_generator = pytest.mark.parametrize("generator", GENERATORS.values(), ids=list(GENERATORS))


def cases(generator: Generator, scale: Scale | None = None) -> Iterator[Case]:
    for index in range(CASES):
        yield case_of(CaseId(3, generator.name, index), scale or Scale())


def digest(name: str) -> str:
    """Return a hash of many cases. Other processes call it."""
    return sha256("".join(map(repr, cases(GENERATORS[name]))).encode()).hexdigest()


@each_generator
def test_a_seed_gives_the_same_case_in_every_process(generator: Generator) -> None:
    program = f"from tests.contract.test_generators import digest; print(digest({generator.name!r}))"
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=CHECKOUT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert digests == {digest(generator.name)}


@each_generator
def test_seeds_differ(generator: Generator) -> None:
    assert len(set(cases(generator))) == CASES


@each_generator
def test_only_the_given_randomness_is_used(generator: Generator) -> None:
    before = random.getstate()
    first = list(cases(generator))
    assert random.getstate() == before
    random.seed(99)
    assert list(cases(generator)) == first


class _Params(Visitor):
    def __init__(self) -> None:
        self.numbers: set[int] = set()

    def visit_ParamRef(self, _: object, node: Node) -> None:
        assert isinstance(node, ParamRef)
        self.numbers.add(node.number or 0)


@each_generator
def test_steps_are_single_statements_with_all_their_parameters(generator: Generator) -> None:
    for case in cases(generator):
        for step in case.all_steps:
            if step.may_fail:
                continue
            statements = pglast.parse_sql(step.sql)
            assert len(statements) == 1, step.sql
            if step.kind is not Kind.QUERY:  # PREPARE has parameters of its own
                continue
            params = _Params()
            params(statements)
            assert params.numbers == set(range(1, len(step.params) + 1)), step.sql


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
    small = list(cases(generator, Scale(rows=20, relations=2, partitions=2, queries=3)))
    large = list(cases(generator))
    assert sum(map(_size, small)) < sum(map(_size, large)) * 2 / 3


def _size(case: Case) -> int:
    return sum(len(step.sql) + len(step.copy_data or b"") for step in case.all_steps)


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
