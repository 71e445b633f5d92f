"""Tests of corrections: which finding is the fault that a correction hides, on builds with it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fuzz.campaign.known import SHIPPED, corrections_of, read_known
from fuzz.execution.executor import Executor
from fuzz.servers.arm import Arm, open_arms
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.known_good import newer_than_known
from fuzz.servers.series import Patch
from fuzz.triage.blame import Blame
from fuzz.triage.correction import is_corrected, with_correction
from fuzz.triage.interestingness import ReducedCase, measured_case
from fuzz.triage.reproducer.reproducer import load
from oracles.model.finding import Finding

pytestmark = [pytest.mark.servers, pytest.mark.timeout(3600)]

PRUNING, JSON = "2e463b541e5e", "a639e3dc2ada"
BLAME = Blame("upstream", (), ((0, True),))
PATCHES = {patch.name: patch for patch in corrections_of(read_known(SHIPPED))}


@pytest.fixture(scope="module")
def upstream() -> Iterator[Arm]:
    options = ArmOptions.given(None, None, None, None, ["upstream"], "assert")
    with open_arms(options.specs(print), print) as (arm,):
        if newer_than_known(arm.build.version):
            pytest.skip(f"{arm.build.version} may have the faults corrected; pgduel corpus run shows it")
        yield arm


def measured(arm: Arm, script: str) -> ReducedCase:
    """Return the case of a reproducer, and the finding that the arm shows."""
    replay = load(str(SHIPPED.parent / f"{script}.sql"))
    assert replay.about is not None
    expected = Finding(replay.about.oracle, (arm.name, arm.name), "", None, "", "", "")
    with Executor([arm], "measured") as executor:
        smallest = measured_case(executor, [arm], replay.case, expected)
    assert smallest.shown
    return smallest


@pytest.mark.long
def test_a_finding_that_a_correction_hides_is_its_fault(upstream: Arm) -> None:
    other_version = Patch("other.patch", PATCHES[f"{JSON}.patch"].content.replace(b"resnull", b"renamed"))
    pruning = PATCHES[f"{PRUNING}.patch"]
    smallest = measured(upstream, PRUNING)
    blame = with_correction(BLAME, [smallest], [upstream], [other_version, pruning], print)
    assert (blame.correction, blame.key) == (pruning.name, pruning.name)
    assert str(blame) == f"a known fault of all arms, which {pruning.name} corrects"
    other_fault = measured(upstream, JSON)
    assert with_correction(BLAME, [other_fault], [upstream], [other_version, pruning], print) == BLAME
    assert with_correction(BLAME, [smallest, other_fault], [upstream], [other_version, pruning], print) == BLAME
    assert is_corrected(smallest, [upstream], [other_version, pruning])
    assert not is_corrected(other_fault, [upstream], [other_version, pruning])
    assert with_correction(BLAME, [smallest], [upstream], [other_version], print) == BLAME


@pytest.mark.long(group="corrections")
def test_a_finding_that_does_not_occur_again_is_no_known_fault(upstream: Arm) -> None:
    smallest = measured(upstream, PRUNING)
    once = replace(smallest, case=replace(smallest.case, steps=()))
    corrections = [PATCHES[f"{PRUNING}.patch"]]
    assert with_correction(BLAME, [once], [upstream], corrections, print) == BLAME
    assert not is_corrected(once, [upstream], corrections)


@pytest.mark.long(group="corrections")
@pytest.mark.parametrize("name", [name for name in PATCHES if (SHIPPED.parent / name).with_suffix(".sql").exists()])
def test_each_shipped_correction_hides_its_reproducer(upstream: Arm, name: str) -> None:
    smallest = measured(upstream, Path(name).stem)
    blame = with_correction(BLAME, [smallest], [upstream], tuple(PATCHES.values()), print)
    assert blame.correction == name
