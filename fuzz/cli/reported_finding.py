"""The finding of a command's argument: a fingerprint, or a reproducer."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import typer

from fuzz import workdir
from fuzz.campaign.catalog import find_finding, opened
from fuzz.campaign.user_files import FileKind, load_recorded, read_and_load
from fuzz.cli.options import facts_of, other_builds
from fuzz.errors import CaseError
from fuzz.report.console import Console
from fuzz.report.forms.form import Facts, Opened, ReportedFinding
from fuzz.servers import Report
from fuzz.servers.arm import open_arms
from fuzz.servers.arm_options import ArmOptions
from fuzz.triage.findings import StoredFinding
from fuzz.triage.reproducer.reproducer import load, noted, render

Named = Annotated[
    str, typer.Argument(metavar="FINDING", help="A finding, [CAMPAIGN/]FINGERPRINT, or the path of its reproducer.")
]
progress = Console(stderr=True)  # progress is no part of a command's result


def reported_finding(
    named: str, given: ArmOptions, report: Report, oracle_files: Sequence[str] | None = None
) -> ReportedFinding:
    """Return the finding, with the oracles of files loaded. Raises CaseError.

    One of a campaign has its own arms, and the campaign's own oracles unless files are given.
    """
    judges = read_and_load(FileKind.ORACLE, oracle_files or ())
    if Path(named).is_file():
        return _in_script(Path(named), given, report)
    directory, found = find_finding(named)
    with opened(directory) as store:
        facts = store.arms
        plan = store.plan
    for line in () if judges else load_recorded(plan.judging):
        progress.say(line)
    options = given.instead_of(plan.arms)
    reproducer = found.reproducer if found.reproducer is not None and found.reproducer.is_file() else None
    known = replace(_stored(found, facts, options, report), campaign=directory, reproducer=reproducer)
    if found.smallest is not None or reproducer is None:
        return known
    left = _in_script(reproducer, options, report)  # it was reduced by a version whose store has no reduced cases
    return replace(left, campaign=directory, blame=known.blame)


def _in_script(path: Path, options: ArmOptions, report: Report) -> ReportedFinding:
    loaded = load(str(path))
    about = loaded.about
    if about is None or len(about.arms) != 2:
        raise CaseError(f"{path} lacks the header of a reproducer; use pgduel replay for other scripts")
    arms = (about.arms[0], about.arms[1])
    script = path.read_text(encoding="utf-8")
    opener = partial(_opened, options, report)
    return ReportedFinding(
        about.fingerprint, about.oracle, arms, loaded.case, script, options.command_line(), opener, reproducer=path
    )


def _stored(found: StoredFinding, facts: Facts, options: ArmOptions, report: Report) -> ReportedFinding:
    finding, case = found.least.finding, found.least.case
    fingerprint = found.finding.fingerprint
    script = render(case, finding, facts, found.case_id, f"{workdir.COMMAND} replay {fingerprint}")
    notes = {} if found.smallest is None else {"shows": found.smallest.how_often}
    blame = "" if found.blame is None else str(found.blame)
    return ReportedFinding(
        fingerprint,
        finding.oracle,
        finding.arms,
        case,
        noted(script, notes | ({"blame": blame} if blame else {})),
        options.command_line(),
        partial(_opened, options, report, facts),
        finding,
        blame,
    )


@contextmanager
def _opened(options: ArmOptions, report: Report, recorded: Facts = MappingProxyType({})) -> Iterator[Opened]:
    specs = options.specs(report)
    with open_arms(specs, report, allow_same_build=True) as arms:
        for line in other_builds(recorded, arms):
            progress.say(line)
        yield Opened(arms, facts_of(specs, arms))
