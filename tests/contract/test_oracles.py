"""Tests of each oracle's contract: runs, canaries, samples, and a pure judgement of arbitrary observations."""

import copy
import os
import pickle
import pkgutil
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pglast
import pytest

import oracles
from fuzz.execution.judging import judge_case
from fuzz.servers.modules import FAULT_INJECTOR
from fuzz.triage.interestingness import sampled_by_name
from oracles.framework.metamorphic import Metamorphic
from oracles.model.case import Case, Kind, Step
from oracles.model.finding import Finding
from oracles.model.observation import (
    CaseObservation,
    Message,
    Observation,
    Outcome,
    Residue,
    Resources,
    ResultColumn,
    Run,
)
from oracles.model.oracle import Inconclusive, Oracle, Unstable, all_oracles
from tests.oracles.observed import StubExecutor, agreed, assigned, ok, row

CHECKOUT = Path(__file__).parents[2]
ORACLES = all_oracles()
SAMPLES = tuple(dict.fromkeys(sample for oracle in ORACLES for sample in oracle.samples))
JUDGE_EACH_STATEMENT = {"crash", "leak", "result"}  # others judge only statements of their kind
COUNTED = [("patched",), ("patched", "third")]
SEEDS = range(10**9)
KINDS, OUTCOMES = list(Kind), list(Outcome)

each_oracle = pytest.mark.parametrize("oracle", ORACLES, ids=[oracle.name for oracle in ORACLES])


@contextmanager
def noted(seed: int) -> Iterator[None]:
    """Name the seed in any error. Hypothesis would do no more with a seed, and take as long as the tests themselves."""
    try:
        yield
    except Exception as error:
        error.add_note(f"with seed {seed}")
        raise


def random_case(rng: random.Random) -> Case:
    """Return a case of a few steps of each kind."""
    kinds = rng.choices(KINDS, k=rng.randint(0, 6))
    steps = [Step(f"-- {number}", kind, ordered=rng.random() < 0.3) for number, kind in enumerate(kinds)]
    return Case("by_hand", tuple(steps[:2]), tuple(steps[2:]))


def random_step(rng: random.Random) -> Observation:
    return replace(random_reply(rng), read_back=rng.choice([None, random_reply(rng)]))


def random_reply(rng: random.Random) -> Observation:
    outcome = rng.choice(OUTCOMES)
    state = "22012" if outcome is Outcome.ERROR else ""
    return Observation(
        outcome,
        state,
        tags=rng.choice([(), ("SELECT 1",), ("INSERT 0 2",)]),
        columns=rng.choice([(), (ResultColumn("a", "23"),)]),
        rows=tuple(row(rng.choice(["1", "2", None])) for _ in range(rng.randint(0, 2))),
        messages=rng.choice([(), (Message("WARNING", "01000", "resource was not closed: it"),)]),
        plan=rng.choice([None, {}, {"Plan": {"Node Type": "Result"}}]),
        transaction=rng.choice(["", "I", "T", "E"]),
        protocol=rng.choice([(), ("NotificationResponse: a = 1",)]),
        earlier_columns=rng.choice([(), ((ResultColumn("b", "23"),),)]),
    )


def random_observation(case: Case, run: Run, rng: random.Random) -> CaseObservation:
    """Return an arbitrary observation, also one that no server would cause, with each step of the case."""
    repetitions = rng.randint(0, run.repeats)
    return CaseObservation(
        run.arm,
        tuple(random_step(rng) for _ in case.all_steps),
        digests=tuple(
            (name, rng.choice(["1 7", "2 7", "9 unused", "error 42P01"])) for name in "ts" if rng.random() < 0.8
        ),
        residue=rng.choice([None, Residue(), Residue(pins=1, locks=("advisory ExclusiveLock 0/1/1",))]),
        resources=tuple(Resources(rng.randint(3, 9), 1, {"A": (1, rng.randint(0, 99))}) for _ in range(repetitions)),
        log=rng.choice([(), ("WARNING:  resource was not closed: it",)]),
        crash=rng.choice([None, None, "", "terminated by signal 11", "terminated by signal 9"]),
        closing=rng.choice([(), (Message("ERROR", rng.choice(["XX000", "57014", "2BP01"]), "it failed"),)]),
        earlier=tuple(tuple(random_step(rng) for _ in case.all_steps) for _ in range(repetitions - 1)),
    )


def respond_at_random(case: Case, seed: int) -> StubExecutor:
    return StubExecutor(lambda run: random_observation(case, run, random.Random(f"{seed} {run}")))


def test_names_are_those_of_the_files_or_folders() -> None:
    assert [oracle.name for oracle in ORACLES] == [type(oracle).__module__.split(".")[1] for oracle in ORACLES]


def test_the_top_level_has_only_oracles() -> None:
    shared = {"framework", "model", "sql", "explain"}
    assert {module.name for module in pkgutil.iter_modules(oracles.__path__)} == {o.name for o in ORACLES} | shared


@each_oracle
def test_each_oracle_has_canaries_that_are_cases(oracle: Oracle) -> None:
    assert oracle.canaries
    for canary in oracle.canaries:
        for step in canary.case.all_steps:
            pglast.parse_sql(step.sql)
        assert any("canary" in step.sql for step in canary.case.steps)


@each_oracle
def test_runs_are_requested_for_the_given_arms(oracle: Oracle) -> None:
    for canary in oracle.canaries:
        runs = oracle.runs(canary.case, ("master", "patched", "third"))
        assert len(set(runs)) == len(runs)
        assert {run.arm for run in runs} == {"master", "patched", "third"}
        assert all(run.modes[: len(canary.case.modes)] == canary.case.modes and not run.fault for run in runs)


def requested_runs(oracle: Oracle, case: Case) -> int:
    """Return the number of runs that the oracle requests for a case without errors, with rows where ORDER BY is."""
    rows = replace(ok("1", "2"), columns=(ResultColumn("n", "23"),))
    steps = tuple(rows if "ORDER BY" in step.sql else ok() for step in case.all_steps)
    stub = StubExecutor(lambda run: CaseObservation("", steps, (), Residue(), ()))
    judge_case(stub, assigned((oracle,), ("master", "patched")), case)
    return len(set(stub.requested))


@each_oracle
def test_an_oracle_declares_the_samples_that_it_judges(oracle: Oracle) -> None:
    """Reduction judges smaller cases by the named samples only, so findings of other samples would disappear."""
    if isinstance(oracle, Metamorphic):  # they judge only cases of their samples
        assert oracle.samples
        return
    cases = {replace(canary.case, modes=(), samples=()) for canary in oracle.canaries}
    for sample in SAMPLES:
        judged = any(
            requested_runs(oracle, replace(case, samples=(sample.name,), sampled_by_content=False))
            > requested_runs(oracle, replace(case, samples=(), sampled_by_content=False))
            for case in cases
        )
        assert judged == (sample in oracle.samples), sample.name


@each_oracle
def test_a_case_that_is_reduced_stays_in_the_samples_of_its_oracle(oracle: Oracle) -> None:
    case = Case("by_hand", (), (Step("SELECT 1", Kind.QUERY),))
    named = sampled_by_name(case, oracle, alone=True)
    for sample in oracle.samples:
        assert (replace(named, sampled_by_content=False) in sample) == (case in sample.alone)


@each_oracle
def test_any_observations_give_a_verdict_on_each_other_arm(oracle: Oracle) -> None:
    for seed in random.sample(SEEDS, 200):
        with noted(seed):
            require_verdicts(oracle, seed, COUNTED[seed % 2])


def require_verdicts(oracle: Oracle, seed: int, others: tuple[str, ...]) -> None:
    case = random_case(random.Random(seed))
    arms = ("master", *others)
    judged = judge_case(respond_at_random(case, seed), assigned((oracle,), arms), case)
    assert len(judged.verdicts) >= len(others)
    doubts = [verdict for _, verdict in judged.verdicts if isinstance(verdict, (Inconclusive, Unstable))]
    assert all(any(doubt.sides) for doubt in doubts), doubts
    for found in judged.findings:
        assert found.oracle == oracle.name
        assert set(found.arms) <= set(arms)
        assert found.origin
        assert found.step is None or 0 <= found.step < len(case.all_steps)
        assert "\n" not in found.summary
    pickle.loads(pickle.dumps(judged.verdicts))


@each_oracle
def test_judging_is_pure(oracle: Oracle) -> None:
    for seed in random.sample(SEEDS, 50):
        with noted(seed):
            require_pure(oracle, seed)


def require_pure(oracle: Oracle, seed: int) -> None:
    case = random_case(random.Random(seed))
    arms = ("master", "patched")
    observations = dict(judge_case(respond_at_random(case, seed), assigned((oracle,), arms), case).observations)
    before = copy.deepcopy(observations)
    verdicts = oracle.judge(case, arms, observations)
    assert observations == before
    assert oracle.judge(case, arms, dict(reversed(observations.items()))) == verdicts


@each_oracle
def test_equal_and_sound_observations_agree(oracle: Oracle) -> None:
    for seed in random.sample(SEEDS, 100):
        with noted(seed):
            require_agreement(oracle, seed)


def require_agreement(oracle: Oracle, seed: int) -> None:
    rng = random.Random(seed)
    case = random_case(rng)
    steps = tuple(
        replace(random_reply(rng), outcome=rng.choice([Outcome.OK, Outcome.ERROR]), messages=()) for _ in case.all_steps
    )
    sound = CaseObservation("", steps, (("t", "1 7"),), Residue(), ())
    judged = judge_case(StubExecutor(lambda run: sound), assigned((oracle,), ("master", "patched", "third")), case)
    least = len(steps) if oracle.name in JUDGE_EACH_STATEMENT else 0
    assert judged.verdicts in [((oracle.name, agreed(judged)),) * 2 for judged in range(least, len(steps) + 1)]


def test_verdicts_do_not_depend_on_the_hash_seed() -> None:
    program = (
        "import random; from tests.contract.test_oracles import *\n"
        "for seed in range(40):\n"
        "    case = random_case(random.Random(seed))\n"
        "    assignments = assigned(ORACLES, ('master', 'patched', 'third'))\n"
        "    print(judge_case(respond_at_random(case, seed), assignments, case).verdicts)\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=CHECKOUT,
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert Finding.__name__.encode() in outputs.pop()


def test_the_fault_injector_has_the_action_of_each_canary() -> None:
    """Otherwise only campaigns on real servers would miss a canary with a misspelt action."""
    module = (CHECKOUT / "fuzz" / "servers" / "modules" / f"{FAULT_INJECTOR}.c").read_text()
    actions = set(re.findall(r'^\t\{"(\w+)", ', module, re.MULTILINE))
    planted = {canary.fault.partition(":")[0] for oracle in all_oracles() for canary in oracle.canaries}
    assert planted <= actions
