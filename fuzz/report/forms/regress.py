"""A test for PostgreSQL's own suites: sql/x.sql, and expected/x.out with pg_regress's output on the sound arm."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from textwrap import wrap
from typing import ClassVar

from fuzz.errors import CaseError
from fuzz.execution.executor import Executor
from fuzz.output import visible_line
from fuzz.report.forms.form import Form, ReportedFinding, title_of
from fuzz.servers.arm_settings import Settings, texts
from fuzz.servers.regress import run_script
from fuzz.triage.blame import tries_for
from fuzz.triage.reproducer.markers import unmarked
from fuzz.triage.reproducer.reproducer import body
from oracles.model.case import Case
from oracles.model.finding import Finding

_WIDTH = 76


class Regress(Form):
    """A pair of files for a patch."""

    name: ClassVar[str] = "regress"
    one_file: ClassVar[bool] = False

    def files(self, reported: ReportedFinding) -> Mapping[str, str]:
        """Return script and expected output. Raises CaseError if a test of pg_regress has equal results on the arms."""
        sound, suspect = reported.arms
        if sound == suspect:
            raise CaseError(f"finding {reported.fingerprint} shows on all arms; add one without it by --arm")
        name = f"duel_{reported.fingerprint}"
        with reported.opened() as opened, Executor(opened.arms, "show") as executor:
            arms = [reported.arm(opened, arm) for arm in reported.arms]
            smallest = reported.measured_case(executor, opened.arms)
        if not smallest.shown:
            raise CaseError(f"finding {reported.fingerprint} {smallest.how_often} on these arms")
        script = regress_script(smallest.case, smallest.finding, arms[1].settings)
        of_sound, of_suspect = (partial(run_script, arm.build, name, script, arm.settings) for arm in arms)
        expected = of_sound()
        if of_sound() != expected:
            raise CaseError(f"the output of {sound} differs from run to run; use --as sql")
        if all(of_suspect() == expected for _ in range(tries_for(smallest))):
            raise CaseError(
                f"psql shows no difference of {suspect} from {sound}, only {reported.oracle} does; use --as pytest"
            )
        return {f"sql/{name}.sql": script, f"expected/{name}.out": expected}


def regress_script(case: Case, finding: Finding, settings: Settings = ()) -> str:
    """Return the script without comments for pgduel, and without EXPLAIN, whose output is not stable.

    Its comment names the settings of the server on which it fails.
    """
    evidence = tuple(each for each in finding.evidence if not each.explained and not each.planned)
    shown = replace(finding, evidence=evidence)
    needed = f"It needs in postgresql.conf: {', '.join(texts(settings))}" if settings else ""
    lines = (*wrap(title_of(finding), _WIDTH), *wrap(visible_line(needed), _WIDTH))
    comment = ["--", *(f"-- {line}" for line in lines), "--"]
    blocks = ["\n".join(comment), "CREATE SCHEMA duel;", *map(unmarked, body(case, shown, stable=True))]
    return "\n\n".join(block.strip("\n") for block in blocks if block.strip()) + "\n"
