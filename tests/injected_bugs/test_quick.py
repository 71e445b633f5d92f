"""Tests of some injected bugs: each is found within a few cases of the generator in its header."""

from collections.abc import Callable

import pytest

from fuzz.engines.seeded import case_of
from fuzz.execution.executor import Executor
from fuzz.execution.judging import assignments, judge_case
from fuzz.generators.generator import Scale
from fuzz.servers.arm import ArmSpec, features_of, open_arms
from fuzz.servers.base import resolve_base
from fuzz.servers.flavor import FLAVORS
from fuzz.servers.series import series_from_files
from oracles.model.case import CaseId
from oracles.model.oracle import all_oracles
from tests.injected_bugs.injected_bug import Bug, all_bugs, sound_patches

BUGS = [bug for bug in all_bugs() if bug.quick]
SEED = 1
CASES = 40


@pytest.mark.servers
@pytest.mark.quick
@pytest.mark.timeout(900)
@pytest.mark.parametrize("bug", BUGS, ids=[bug.name for bug in BUGS])
def test_an_injected_bug_is_found(bug: Bug, record_property: Callable[[str, object], None]) -> None:
    base, flavor = resolve_base("pg17", print), FLAVORS["assert"]
    sound = sound_patches(bug)
    specs = [
        ArmSpec(name, base, series_from_files(patches), flavor)
        for name, patches in (("sound", sound), ("bugged", [*sound, bug.patch]))
    ]
    with open_arms(specs, print) as arms, Executor(arms) as executor:
        judges = assignments([oracle for oracle in all_oracles() if oracle.name in bug.oracles], arms)
        ids = (CaseId(SEED, bug.quick or "", index) for index in range(CASES))
        cases = (case_of(case_id, Scale(), features=features_of(arms)) for case_id in ids)
        findings = (found for case in cases for found in judge_case(executor, judges, case).findings)
        found = next(findings, None)
    assert found, f"none of the first {CASES} cases shows it"
    assert found.arms == ("sound", "bugged")
    record_property("injected bugs", bug.name)
