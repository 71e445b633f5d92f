"""A test for PostgreSQL's own suites: sql/x.sql and expected/x.out, as pg_regress printed it on the sound arm."""

from collections.abc import Mapping
from dataclasses import replace
from textwrap import wrap
from typing import ClassVar

from fuzz.errors import CaseError
from fuzz.execution.executor import Executor
from fuzz.report.forms.form import Form, ReportedFinding, title_of
from fuzz.servers.regress import run_script
from fuzz.triage.blame import tries_for
from fuzz.triage.reproducer.markers import unmarked
from fuzz.triage.reproducer.reproducer import body
from oracles.model.case import Case
from oracles.model.finding import Finding

_WIDTH = 76


class Regress(Form):
    """A pair of files, ready to be added to a patch."""

    name: ClassVar[str] = "regress"
    one_file: ClassVar[bool] = False

    def files(self, reported: ReportedFinding) -> Mapping[str, str]:
        """Return script and expected output. Raises CaseError where a test of this kind cannot tell the arms apart."""
        sound, suspect = reported.arms
        if sound == suspect:
            raise CaseError(f"finding {reported.fingerprint} shows on all arms: none is left to expect the right from")
        name = f"duel_{reported.fingerprint}"
        with reported.opened() as opened, Executor(opened.arms, "show") as executor:
            builds = {arm: reported.arm(opened, arm).build for arm in reported.arms}
            smallest = reported.measured_case(executor, opened.arms)
        if not smallest.shown:
            raise CaseError(f"finding {reported.fingerprint} {smallest.how_often} on these arms")
        script = regress_script(smallest.case, smallest.finding)
        expected = run_script(builds[sound], name, script)
        if run_script(builds[sound], name, script) != expected:
            raise CaseError(f"{sound} does not print the same twice, so this cannot be a test of pg_regress")
        if all(run_script(builds[suspect], name, script) == expected for _ in range(tries_for(smallest))):
            raise CaseError(
                f"{suspect} prints what {sound} does: what the oracle {reported.oracle} saw is nothing that psql shows"
            )
        return {f"sql/{name}.sql": script, f"expected/{name}.out": expected}


def regress_script(case: Case, finding: Finding) -> str:
    """Return the script without what only pgduel reads, and without EXPLAINs, whose output nobody can expect."""
    beside = tuple(each for each in finding.beside if not each.explained and not each.planned)
    # Not what a session holds in the end, as scripts about leaks show it: numbers there differ from run to run.
    told = replace(finding, oracle="result", beside=beside)
    comment = ["--", *(f"-- {line}" for line in wrap(title_of(finding), _WIDTH)), "--"]
    blocks = ["\n".join(comment), "CREATE SCHEMA duel;", *map(unmarked, body(case, told))]
    return "\n\n".join(block.strip("\n") for block in blocks if block.strip()) + "\n"
