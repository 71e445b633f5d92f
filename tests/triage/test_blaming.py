"""Tests of blame on real builds: the patch with the bug, and a fault of PostgreSQL itself."""

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
from fuzz.triage.findings import StoredFinding
from fuzz.triage.interestingness import ReducedCase, measured_case
from fuzz.triage.reproducer.reproducer import load, parse
from fuzz.triage.triage import Triage
from oracles.model.case import Case
from oracles.model.finding import Finding
from tests.cli.bug import BUG, JOIN_AT_BOUNDS, bugged_arms

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

UPSTREAM = workdir.PROJECT / "corpus" / "upstream"
Facts = dict[str, Any]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, Arm], Facts]]:
    """Yield arms by name, and their records."""
    named = bugged_arms(tmp_path_factory.mktemp("bug"))[1::2]
    specs = ArmOptions.given(None, None, None, None, named, "assert").specs(print)
    with open_arms(specs, print) as arms:
        yield {arm.name: arm for arm in arms}, arms_json(specs, [arm.build.key for arm in arms])


def measured(
    opened: tuple[dict[str, Arm], Facts], case: Case, oracle: str, names: tuple[str, str]
) -> tuple[list[Arm], ReducedCase]:
    """Return the arms, and the case's finding on them."""
    arms = [opened[0][name] for name in dict.fromkeys(names)]
    with Executor(arms, "measured") as executor:
        smallest = measured_case(executor, arms, case, Finding(oracle, names, "", None, "", "", ""))
    assert smallest.always
    return arms, smallest


def blamed(opened: tuple[dict[str, Arm], Facts], case: Case, oracle: str, names: tuple[str, str]) -> tuple[str, str]:
    """Return the arm whose series is blamed, and the patch. Only built prefixes are tried."""
    arms, smallest = measured(opened, case, oracle, names)
    blame = blame_search(smallest, arms, print, built_only=True).blame(opened[1])
    return blame.arm, blame.key


def test_the_patch_with_the_bug_is_blamed(opened: tuple[dict[str, Arm], Facts]) -> None:
    assert blamed(opened, parse(JOIN_AT_BOUNDS), "result", ("patched", "bugged")) == ("bugged", BUG.name)


def test_a_prefix_that_does_not_compile_is_left_out(opened: tuple[dict[str, Arm], Facts], tmp_path: Path) -> None:
    part, file = tmp_path / "part.patch", "src/port/pgsleep.c"
    line, error = "/*-------------------------------------------------------------------------", "#error a part"
    head = f"diff --git a/{file} b/{file}\n--- a/{file}\n+++ b/{file}\n"
    part.write_text(f"{BUG.read_text()}{head}@@ -1,1 +1,2 @@\n+{error}\n {line}\n")
    (tmp_path / "rest.patch").write_text(f"{head}@@ -1,2 +1,1 @@\n-{error}\n {line}\n")
    named = ["patched", f"bugged=patched,{part},{tmp_path / 'rest.patch'}"]
    specs = ArmOptions.given(None, None, None, None, named, "assert").specs(print)
    with open_arms(specs, print) as arms:  # `bugged` is the build of the other tests
        records = arms_json(specs, [arm.build.key for arm in arms])
        pair, smallest = measured(
            ({arm.name: arm for arm in arms}, records), parse(JOIN_AT_BOUNDS), "result", ("patched", "bugged")
        )
        blame = blame_search(smallest, pair, print).blame(records)
    length = len(specs[1].series.patches)
    assert (dict(blame.tried), blame.uncompiled) == ({length - 2: False, length: True}, (length - 1,))
    assert blame.patches == ("part.patch", "rest.patch")


def test_a_fault_of_all_arms_is_one_of_upstream(opened: tuple[dict[str, Arm], Facts]) -> None:
    version = opened[0]["patched"].build.version
    if newer_than_known(version):
        pytest.skip(f"{version} may have the fault fixed; pgduel corpus run shows it")
    crashing = load(str(UPSTREAM / "14484eee70d8.sql")).case
    assert blamed(opened, crashing, "crash", ("patched", "patched")) == ("patched", "upstream")


def test_blame_uses_the_whole_case_if_the_smallest_one_does_not_show_the_finding(
    opened: tuple[dict[str, Arm], Facts],
    tmp_path: Path,
) -> None:
    arms, smallest = measured(opened, parse(JOIN_AT_BOUNDS), "result", ("patched", "bugged"))
    found = StoredFinding(smallest.finding, "1/partitioned_joins/1", smallest.case, 1, None, reduced=True)
    with closing(Store(tmp_path)) as store:
        blame = Triage("", opened[1], store).blame(found, replace(smallest, case=parse("SELECT 1;\n")), arms)
    assert blame.key == BUG.name
