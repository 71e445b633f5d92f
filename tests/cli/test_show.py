"""Tests of the forms of a finding on real servers, one of which has a bug."""

from pathlib import Path

import pytest

from fuzz.campaign.catalog import opened
from fuzz.campaign.store import add_spec_finding
from fuzz.servers.arm import build_arms
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.regress import run_script
from fuzz.triage.reproducer.reproducer import parse, render
from oracles.model.finding import Finding
from tests.cli.bug import BUG, JOIN_AT_BOUNDS
from tests.cli.command import Command

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]


@pytest.fixture
def reproducer(tmp_path: Path) -> Path:
    case = parse(JOIN_AT_BOUNDS)
    finding = Finding("result", ("patched", "bugged"), "rows", len(case.all_steps) - 1, "1 row missing", "", "")
    path = tmp_path / "reproducer.sql"
    path.write_text(render(case, finding, {}, "1/g/2", "./pgduel replay FILE"))
    return path


def test_a_test_of_pg_regress_passes_on_the_sound_arm_only(
    pgduel: Command, bugged: tuple[str, ...], reproducer: Path, tmp_path: Path
) -> None:
    ended = pgduel("show", reproducer, "--as", "regress", "--into", tmp_path, *bugged)
    assert ended.status == 0, ended.out + ended.err
    (sql,), (expected,) = tmp_path.glob("sql/*.sql"), tmp_path.glob("expected/*.out")
    assert sql.stem == expected.stem
    assert expected.read_text().startswith(sql.read_text()[:20])  # psql -a
    specs = ArmOptions.given(None, None, None, None, bugged[1::2], "assert").specs(print)
    (sound, _), (buggy, _) = build_arms(specs, print)
    assert run_script(sound, sql.stem, sql.read_text()) == expected.read_text()
    assert run_script(buggy, sql.stem, sql.read_text()) != expected.read_text()


def test_a_finding_that_psql_does_not_show_has_no_test_of_pg_regress(
    pgduel: Command, reproducer: Path, tmp_path: Path
) -> None:
    arms = ("--arm", "patched=upstream", "--arm", "bugged=upstream")
    ended = pgduel("show", reproducer, "--as", "regress", "--into", tmp_path, *arms)
    assert ended.status == 2
    assert "did not show again in 20 runs on these arms" in ended.err


def test_a_mail_has_results_and_plans_of_the_servers(
    pgduel: Command, bugged: tuple[str, ...], reproducer: Path
) -> None:
    ended = pgduel("show", reproducer, "--as", "mail", *bugged)
    assert ended.status == 0, ended.err
    assert BUG.name in ended.out
    assert ended.out.count("Index Only Scan") >= 2  # in the plans of both arms
    assert "10 | 10" in ended.out  # the missing row
    assert "did not show again" not in ended.out


def test_a_test_for_pytest_fails_as_long_as_the_finding_occurs(
    pgduel: Command, bugged: tuple[str, ...], reproducer: Path, tmp_path: Path
) -> None:
    for arms, status in ((bugged, 1), (("--arm", "a=upstream", "--arm", "b=upstream"), 0)):
        ended = pgduel("show", reproducer, "--as", "pytest", *arms)
        assert ended.status == 0, ended.err
        file = tmp_path / "test_it.py"
        file.write_text(ended.out)
        run = pgduel.run(["-m", "pytest", str(file), "-q", "-p", "no:cacheprovider"])
        assert run.status == status, run.out + run.err


def test_a_finding_of_an_isolation_spec_is_shown_even_if_its_file_is_gone(pgduel: Command) -> None:
    directory = pgduel.campaigns / "1"
    directory.mkdir(parents=True)
    spec, finding = directory / "it.spec", Finding("isolation", ("a", "b"), "it", None, "differs", "", "")
    spec.write_text("setup { SELECT 1; }\n")
    with opened(directory) as store:
        add_spec_finding(store, finding, "it under plain", spec, spec.read_bytes())
    text = spec.read_text()
    assert pgduel("show", finding.fingerprint).out == text
    spec.unlink()
    assert pgduel("show", f"1/{finding.fingerprint}").out == text
