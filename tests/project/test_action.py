"""Tests of action.yml and the workflows of docs: steps run in bash, and their command lines are parsed by pgduel.

GitHub is not there. `pgduel`, `gh`, `pipx` and `sudo` are scripts that record their arguments.
"""

import importlib
import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import typer

from fuzz import workdir
from fuzz.cli import COMMANDS
from fuzz.cli.app import app

STEPS = workdir.PROJECT / ".ci" / "action"
ACTION = (workdir.PROJECT / "action.yml").read_text()
WORKFLOWS = sorted((workdir.PROJECT / "docs" / "workflows").glob("*.yml"))
INPUTS = set(re.findall(r"^  (\w+):$", ACTION.partition("\noutputs:")[0], re.MULTILINE))
_RECORDING = """#!/bin/bash
printf '%s\\0' "${0##*/}" "$@" >> "$CALLS"
printf '\\n' >> "$CALLS"
if [[ $1 == report ]]; then
    printf '%s' "$REPORT" > "${@: -1}/pgduel-1.md"
elif [[ $1 == pr ]]; then
    cat > "$CALLS.body"
fi
exit "${STATUS:-0}"
"""


class _Runner:
    """A runner of steps with GitHub's variables."""

    def __init__(self, home: Path) -> None:
        self.home = home
        for name in ("pgduel", "gh", "pipx", "sudo"):
            (home / name).write_text(_RECORDING)
            (home / name).chmod(0o755)

    def run(self, step: str, **variables: str) -> int:
        """Run a step and return its exit status."""
        github = {name: str(self.home / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "RUNNER_TEMP")}
        action = {"GITHUB_ACTION_PATH": str(workdir.PROJECT), "PATH": f"{self.home}:{os.environ['PATH']}"}
        own = {"CALLS": str(self.home / "calls"), "REPORT": "# 1 bug\n"}
        done = subprocess.run([STEPS, step], cwd=self.home, env=os.environ | github | action | own | variables)
        return done.returncode

    def text(self, name: str) -> str:
        """Return the text of a file that a step wrote."""
        return (self.home / name).read_text()

    def calls(self) -> list[list[str]]:
        """Return the recorded command lines."""
        return [line.split("\0")[:-1] for line in self.text("calls").splitlines()]


@pytest.fixture
def runner(tmp_path: Path) -> _Runner:
    return _Runner(tmp_path)


def _parsed(command: list[str]) -> Mapping[str, Any]:
    """Return the options of a command line of pgduel, which is parsed but not run."""
    program, name, *arguments = command
    assert program == "pgduel"
    importlib.import_module(f"fuzz.cli.{COMMANDS[name]}")
    group: Any = typer.main.get_command(app)
    options: Mapping[str, Any] = group.commands[name].make_context(name, arguments).params
    return options


def test_missing_packages_are_installed_before_pgduel(runner: _Runner) -> None:
    installed = runner.home / "dpkg-query"
    installed.write_text("#!/bin/sh\necho installed gcc\n")
    installed.chmod(0o755)
    assert runner.run("install") == 0
    update, packages, pgduel = runner.calls()
    assert update[:3] == ["sudo", "apt-get", "update"]
    assert packages[:3] == ["sudo", "apt-get", "install"]
    assert "bison" in packages
    assert not {"gcc", "sqlsmith", "clang-19"} & set(packages)
    assert pgduel == ["pipx", "install", "--force", str(workdir.PROJECT)]


def _fuzz(**inputs: str) -> dict[str, str]:
    defaults = {"BASE": "", "RANGE": "", "SERIES": "", "MINUTES": "30", "FLAVOR": "assert"}
    return {f"DUEL_{name}": value for name, value in (defaults | inputs).items()}


def test_fuzz_takes_a_range_of_the_workspace(runner: _Runner) -> None:
    assert runner.run("fuzz", **_fuzz(RANGE="main..topic", MINUTES="5")) == 0
    (command,) = runner.calls()
    options = _parsed(command)
    assert (options["minutes"], options["repo"], options["commits"]) == (5.0, Path(), "main..topic")
    assert (options["base"], options["series"], options["arm"]) == (None, (), ())
    assert runner.text("GITHUB_OUTPUT") == "status=0\n"


def test_fuzz_takes_a_base_and_a_line_for_each_series(runner: _Runner) -> None:
    assert runner.run("fuzz", **_fuzz(BASE="pg18", SERIES="mails/one $(id).mbox\n\nb.patch\n", FLAVOR="release")) == 0
    options = _parsed(runner.calls()[0])
    assert (options["base"], options["flavor"]) == ("pg18", "release")
    assert list(options["series"]) == ["mails/one $(id).mbox", "b.patch"]


@pytest.mark.parametrize("status", ["1", "2", "3"])
def test_the_status_of_fuzz_is_an_output_and_the_next_steps_run(runner: _Runner, status: str) -> None:
    assert runner.run("fuzz", STATUS=status, **_fuzz()) == 0
    assert runner.text("GITHUB_OUTPUT") == f"status={status}\n"


def test_report_writes_files_and_the_summary(runner: _Runner) -> None:
    assert runner.run("report") == 0
    options = _parsed(runner.calls()[0])
    assert ([str(each) for each in options["formats"]], options["campaign"]) == (["markdown", "sarif", "junit"], "last")
    assert options["into"] == runner.home / "RUNNER_TEMP" / "pgduel" / "report"
    assert runner.text("GITHUB_STEP_SUMMARY") == "# 1 bug\n"
    assert runner.text("GITHUB_OUTPUT") == "written=true\n"


def test_a_campaign_that_could_not_start_has_no_report(runner: _Runner) -> None:
    assert runner.run("report", STATUS="2") == 0
    assert not (runner.home / "GITHUB_OUTPUT").exists()


def test_a_comment_has_the_beginning_of_a_long_report_and_a_link(runner: _Runner) -> None:
    run = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "me/postgresql", "GITHUB_RUN_ID": "7"}
    assert runner.run("report", REPORT="x" + "ä" * 50_000) == 0
    assert runner.run("comment", DUEL_PULL_REQUEST="12", **run) == 0
    assert runner.calls()[1] == ["gh", "pr", "comment", "12", "--repo", "me/postgresql", "--body-file", "-"]
    link = "\n\n[Report and reproducers](https://github.com/me/postgresql/actions/runs/7)\n"
    assert runner.text("calls.body") == "x" + "ä" * 29_999 + link


def test_the_key_of_the_cache_is_that_of_the_base(runner: _Runner) -> None:
    keys = set()
    for inputs in ({"DUEL_BASE": "pg17"}, {"DUEL_BASE": "pg18"}, {}, {"DUEL_BASE": str(workdir.PROJECT)}):
        assert runner.run("cache_key", **{"DUEL_BASE": "", "DUEL_RANGE": ""} | inputs) == 0
        prefix, key = runner.text("GITHUB_OUTPUT").splitlines()[-2:]
        assert key.removeprefix("key=").startswith(prefix.removeprefix("prefix="))
        keys.add(key)
    assert len(keys) == 4


def test_each_step_of_the_action_exists_and_has_its_variables() -> None:
    bodies = dict(re.findall(r"^(\w+)\(\) \{\n(.*?)^\}$", STEPS.read_text(), re.MULTILINE | re.DOTALL))
    called = re.findall(r"^    - (.*?)(?=^    - |\Z)", ACTION, re.MULTILINE | re.DOTALL)
    steps = {found[1]: step for step in called if (found := re.search(r'\.ci/action" (\w+)', step))}
    assert steps.keys() == {"install", "cache_key", "fuzz", "report", "comment"} == bodies.keys() - {"first"}
    for name, step in steps.items():
        assert set(re.findall(r"DUEL_\w+", bodies[name])) == set(
            re.findall(r"^        (DUEL_\w+):", step, re.MULTILINE)
        )
    assert set(re.findall(r"inputs\.(\w+)", ACTION)) == INPUTS


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_have_inputs_of_the_action_only(workflow: Path) -> None:
    (given,) = re.findall(r"uses: OWNER/pgduel@main\n {8}with:\n((?: {10}.*\n)+)", workflow.read_text())
    assert set(re.findall(r"^ {10}(\w+):", given, re.MULTILINE)) <= INPUTS


def test_the_queue_has_a_job_for_each_mail(tmp_path: Path) -> None:
    (tmp_path / "mails" / "new").mkdir(parents=True)
    for name in ("b.mbox", "new/a ä.eml", "README.md"):
        (tmp_path / "mails" / name).touch()
    text = (workdir.PROJECT / "docs" / "workflows" / "queue.yml").read_text()
    (script,) = re.findall(r"run: \|\n((?: {10}.*\n)+)", text)
    output = tmp_path / "output"
    environment = os.environ | {"GITHUB_OUTPUT": str(output)}
    subprocess.run(["bash", "-eo", "pipefail", "-c", script], cwd=tmp_path, env=environment, check=True)
    name, mails = output.read_text().split("=", 1)
    assert (name, json.loads(mails)) == ("mails", ["mails/b.mbox", "mails/new/a ä.eml"])
