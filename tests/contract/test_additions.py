"""Tests that a new generator, source, oracle, mode or form is one file and its documentation.

The files of `additions` are copied into a copy of the checkout, where the command then runs. No line of the copy's code
is changed.
"""

import json
import re
import shutil
from collections.abc import Mapping
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Final

import pytest

from fuzz import workdir
from fuzz.campaign.catalog import opened
from fuzz.engines.seeded import case_of
from fuzz.execution.source_database import SourceDatabase
from fuzz.generators.generator import Scale
from fuzz.servers.arm import open_arms, parse_arm
from fuzz.servers.base import resolve_base
from fuzz.servers.flavor import FLAVORS
from fuzz.sources.source import Source, UserInput
from fuzz.sources.workloads import all_workloads
from oracles.model.case import CaseId
from tests.cli.bug import bugged_arms
from tests.cli.command import Command, Ended, json_of

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

_PLACES: Final = {
    "generator": "fuzz/generators/added_generator.py",
    "source": "fuzz/sources/added_source.py",
    "oracle": "oracles/added_oracle.py",
    "mode": "fuzz/execution/modes/added_mode.py",
    "form": "fuzz/report/forms/added_form.py",
}
_SECTIONS: Final = ("generators", "sources", "oracles")
_LINES: Final = {
    "modes": (
        "| `added_mode` | | `enable_hashjoin=off` `enable_mergejoin=off` `enable_seqscan=off` |",
        "| `added_sample` | 1/2 | `added_oracle` |",
    ),
    "findings": ("| `added_form` | a line |",),
}
_SMALL: Final = Scale(rows=60, queries=8)


@pytest.fixture(scope="module")
def pgduel(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Return the command of a copy of the checkout with the additions."""
    copy = tmp_path_factory.mktemp("additions") / "checkout"
    shutil.copytree(workdir.PROJECT, copy, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    for kind, place in _PLACES.items():
        shutil.copy(Path(__file__).with_name("additions") / f"{kind}.py", copy / place)
    return Command(copy / "campaigns", project=copy)


def _pytest(pgduel: Command, *arguments: str) -> Ended:
    """Run tests of the command's checkout."""
    return pgduel.run(["-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments])


def test_additions_are_listed(pgduel: Command) -> None:
    for section in ("generators", "sources", "oracles", "modes"):
        assert re.search(rf"^added_{section[:-1]} ", pgduel("list", section).out, re.MULTILINE)
    assert "added_form" in pgduel("show", "--help").out


def test_additions_run_and_a_finding_is_reduced(pgduel: Command, tmp_path: Path) -> None:
    file = tmp_path / "summary.json"
    workloads = ("--generator", "added_generator", "--generator", "added_source")
    ended = pgduel("fuzz", *bugged_arms(tmp_path), *workloads, "--cases", "16", "--seed", "1", "--json", file)
    summary = json_of(ended, file, 1)
    assert [summary["generators"][name]["cases"] for name in ("added_generator", "added_source")] == [8, 8]
    assert {"finding", "not_applicable"} <= summary["verdicts"]["added_oracle"]["added_generator"].keys()  # a sample
    with opened(pgduel.campaigns / summary["campaign"]) as store:
        (found,) = (each for each in store.findings() if each.finding.oracle == "added_oracle")
    assert found.case.modes[0].name == "added_mode"
    assert found.least.shown
    assert found.least.case.samples == ("added_sample",)
    assert len(found.least.case.all_steps) < len(found.case.all_steps)
    handed_on = pgduel("show", found.finding.fingerprint, "--as", "added_form")
    assert handed_on.out == f"added_oracle: {len(found.least.case.all_steps)} statements\n"


def digests() -> dict[str, str]:
    """Return a hash of a few cases of each workload that needs no input."""
    arm = parse_arm("upstream", resolve_base("pg17", print), FLAVORS["assert"], print)
    with open_arms([arm], print) as arms, closing(SourceDatabase(arms[0], "additions", UserInput())) as target:
        usable = {
            name: 2 if isinstance(workload, Source) else 25
            for name, workload in all_workloads().items()
            if not (isinstance(workload, Source) and workload.lacks(target.given))
        }
        cases = {
            name: [case_of(CaseId(3, name, index), _SMALL, target) for index in range(count)]
            for name, count in usable.items()
        }
    return {name: sha256(repr(made).encode()).hexdigest() for name, made in cases.items()}


def _digests(pgduel: Command) -> Mapping[str, str]:
    """Return the digests of the cases in the command's checkout."""
    program = "import json; from tests.contract.test_additions import digests; print(json.dumps(digests()))"
    ended = pgduel.run(["-c", program])
    assert ended.status == 0, ended.err
    made: dict[str, str] = json.loads(ended.out.splitlines()[-1])
    return made


def test_no_other_case_changes(pgduel: Command, tmp_path: Path) -> None:
    before, after = _digests(Command(tmp_path)), _digests(pgduel)
    assert {"typed", "qpg"} <= before.keys()  # their cases depend on those of generators
    assert after.keys() - before.keys() == {"added_generator", "added_source"}
    assert {name: after[name] for name in before} == before


def test_the_contract_holds_for_additions(pgduel: Command) -> None:
    ended = _pytest(pgduel, "tests/contract", "-m", "not servers", "-k", "added or files_or_folders or action_of_each")
    assert ended.status == 0, ended.out


def test_missing_documentation_is_an_error(pgduel: Command) -> None:
    documents = ("tests/project/test_documents.py", "-k", "test_each_has_a or test_a_mode or test_a_sample")
    ended = _pytest(pgduel, *documents)
    assert ended.status == 1
    failed = set(re.findall(r"^FAILED \S+::test_each\w+\[([\w ]+)\]", ended.out, re.MULTILINE))
    assert failed == {*_SECTIONS, "modes", "samples", "forms"}
    for page in _SECTIONS:
        _append(pgduel, page, f"## `added_{page[:-1]}`")
    for page, lines in _LINES.items():
        _append(pgduel, page, *lines)
    ended = _pytest(pgduel, *documents)
    assert ended.status == 0, ended.out


def _append(pgduel: Command, page: str, *lines: str) -> None:
    with (pgduel.project / "docs" / f"{page}.md").open("a") as text:
        text.write("\n".join(["", *lines, ""]))
