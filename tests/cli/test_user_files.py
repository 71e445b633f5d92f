"""Test of the user's own generator and oracle, from a campaign to the replay of a finding."""

from pathlib import Path

import pytest

from fuzz.campaign.catalog import opened
from tests.cli.command import Command, json_of
from tests.user_files import written_examples

_ORACLE = """\
from oracles.framework.canaries import canary_case, query
from oracles.model.case import Kind
from oracles.model.finding import Finding
from oracles.model.observation import Run
from oracles.model.oracle import Agree, Canary, Oracle


class OddRows(Oracle):
    name = "odd_rows"
    needs_another_arm = False
    canaries = (Canary("drop_row", canary_case(query("SELECT n FROM canary"))),)

    def judge(self, case, arms, observations):
        seen = observations[Run(arms[0], case.modes)].steps
        for number, (step, each) in enumerate(zip(case.all_steps, seen, strict=True)):
            if step.kind is Kind.QUERY and len(each.rows) % 2:
                return (Finding(self.name, (arms[0], arms[0]), "rows", number, "odd rows", "even", "odd"),)
        return (Agree(len(seen)),)
"""


@pytest.mark.servers
@pytest.mark.timeout(900)
def test_own_generators_and_oracles_run_and_findings_are_replayed(pgduel: Command, tmp_path: Path) -> None:
    generator, example = written_examples(tmp_path)
    oracle, file = tmp_path / "odd_rows.py", tmp_path / "summary.json"
    oracle.write_text(_ORACLE)
    files = ("--generator", generator, "--oracle", oracle, "--oracle", example)
    ended = pgduel("fuzz", "--arm", "only=upstream", *files, "--cases", "8", "--seed", "1", "--json", file)
    summary = json_of(ended, file, 1)
    assert summary["generators"]["pairs"]["cases"] == 8
    assert summary["canaries"]["caught"] == summary["canaries"]["planted"]
    assert {"odd_rows", "as_nested_loops"} <= summary["verdicts"].keys()
    with opened(pgduel.campaigns / summary["campaign"]) as store:
        (found,) = store.findings()
    assert (found.finding.oracle, found.reduced, len(found.least.case.all_steps)) == ("odd_rows", True, 1)
    assert found.reproducer is not None
    assert f" --oracle {oracle}" in found.reproducer.read_text()

    oracle.write_text(_ORACLE.replace("len(each.rows) % 2", "False"))
    as_found = pgduel("replay", found.finding.fingerprint)
    assert f"{oracle} has changed; this campaign keeps the file with which it began" in as_found.out
    assert (as_found.status, "It still differs" in as_found.out) == (1, True)
    corrected = pgduel("replay", found.finding.fingerprint, "--oracle", oracle)
    assert (corrected.status, "has changed" in corrected.out) == (0, False)
    case = pgduel("replay", "1/pairs/0", "--generator", generator, "--arm", "only=upstream")
    assert case.status == 0, case.err
    assert "1/pairs/0 is the case of a campaign on one arm" in case.out

    generator.unlink()
    resumed = pgduel("fuzz", "--resume", summary["campaign"], "--cases", "12", "--json", file)
    assert json_of(resumed, file, 1)["generators"]["pairs"]["cases"] == 12
    assert f"{generator} cannot be read any more" in resumed.out
