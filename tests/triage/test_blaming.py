"""The patch to blame is found on real builds, and told from a fault of PostgreSQL's own."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fuzz import workdir
from fuzz.campaign.store import Store
from fuzz.cli.options import arms_json
from fuzz.execution.executor import Executor
from fuzz.servers.arm import Arm, open_arms
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.known_good import newer_than_known
from fuzz.triage.blame import blame_search
from fuzz.triage.interestingness import measured_case
from fuzz.triage.reduced_case import ReducedCase
from fuzz.triage.reproducer.load import load
from fuzz.triage.reproducer.reproducer import parse
from fuzz.triage.stored_finding import StoredFinding
from fuzz.triage.triage import Triage
from oracles.model.case import Case
from oracles.model.finding import Finding
from tests.cli.bug import BUG, JOIN_AT_BOUNDS, bugged_arms

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

UPSTREAM = workdir.PROJECT / "corpus" / "upstream"
Facts = dict[str, Any]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, Arm], Facts]]:
    """Arms by name, and what is recorded of them."""
    named = bugged_arms(tmp_path_factory.mktemp("bug"))[1::2]
    specs = ArmOptions.given(None, None, None, None, named, "assert").specs(print)
    with open_arms(specs, print) as arms:
        yield {arm.name: arm for arm in arms}, arms_json(specs, [arm.build.key for arm in arms])


def looked_at(
    opened: tuple[dict[str, Arm], Facts], case: Case, oracle: str, names: tuple[str, str]
) -> tuple[list[Arm], ReducedCase]:
    """Return the arms, and what the case shows on them."""
    arms = [opened[0][name] for name in dict.fromkeys(names)]
    with Executor(arms, "look") as executor:
        smallest = measured_case(executor, arms, case, Finding(oracle, names, "", None, "", "", ""))
    assert smallest.always
    return arms, smallest


def blamed(opened: tuple[dict[str, Arm], Facts], case: Case, oracle: str, names: tuple[str, str]) -> tuple[str, str]:
    """Return the arm whose series is blamed, and the patch. Only prefixes that are built are tried."""
    arms, smallest = looked_at(opened, case, oracle, names)
    blame = blame_search(smallest, arms, print, built_only=True).blame(opened[1])
    return blame.arm, blame.key


def test_the_patch_with_the_bug_is_to_blame(opened: tuple[dict[str, Arm], Facts]) -> None:
    assert blamed(opened, parse(JOIN_AT_BOUNDS), "result", ("patched", "bugged")) == ("bugged", BUG.name)


def test_what_all_arms_show_is_upstream_s(opened: tuple[dict[str, Arm], Facts]) -> None:
    version = opened[0]["patched"].build.version
    if newer_than_known(version):
        pytest.skip(f"{version} may have mended the fault: pgduel corpus run tells")
    crashing = load(str(UPSTREAM / "14484eee70d8.sql")).case
    assert blamed(opened, crashing, "crash", ("patched", "patched")) == ("patched", "upstream")


def test_what_the_smallest_case_does_not_show_any_more_is_blamed_by_the_whole_one(
    opened: tuple[dict[str, Arm], Facts],
    tmp_path: Path,
) -> None:
    arms, smallest = looked_at(opened, parse(JOIN_AT_BOUNDS), "result", ("patched", "bugged"))
    found = StoredFinding(smallest.finding, "1/partitioned_joins/1", smallest.case, 1, None, reduced=True)
    with closing(Store(tmp_path)) as store:
        blame = Triage("", opened[1], store).blame(found, replace(smallest, case=parse("SELECT 1;\n")), arms)
    assert blame.key == BUG.name
