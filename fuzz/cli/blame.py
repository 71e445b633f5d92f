"""`pgduel blame`: the patch that causes a finding."""

from pathlib import Path

from fuzz.campaign.catalog import opened
from fuzz.campaign.known import SHIPPED, corrections_of, read_known
from fuzz.cli import options
from fuzz.cli.app import app, say, write_json
from fuzz.cli.reported_finding import Named, progress, reported_finding
from fuzz.errors import CaseError
from fuzz.execution.executor import Executor
from fuzz.report.summary import blame_json
from fuzz.report.terminal import display
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.flavor import DEFAULT_FLAVOR
from fuzz.servers.series import Patch
from fuzz.triage.blame import blame_search
from fuzz.triage.correction import with_correction
from fuzz.triage.triage import note


@app.command()
def blame(
    *,
    named: Named,
    oracle: options.OracleOption = None,
    base: options.Base = None,
    series: options.SeriesOption = None,
    repo: options.Repo = None,
    commits: options.Range = None,
    arm: options.ArmOption = None,
    flavor: options.FlavorOption = DEFAULT_FLAVOR,
    manifest: options.Manifest = None,
    setting: options.SetOption = None,
    json_file: options.JsonFile = None,
) -> None:
    """Find the first patch, or commit of a range, that shows a finding, by bisection over builds.

    A finding of a campaign has its own arms, and its result is stored. For a reproducer, give the arms of its campaign
    unless they are the default. Missing builds are compiled, one per step.
    """
    given = ArmOptions.given(base, series, repo, commits, arm, flavor, manifest, setting)
    with display(progress, None) as shown:
        reported = reported_finding(named, given, shown.progress, oracle)
        with reported.opened() as there:
            for name in reported.arms:
                reported.arm(there, name)
            with Executor(there.arms, "blame") as executor:
                smallest = reported.measured_case(executor, there.arms)
            if not smallest.shown:
                raise CaseError(f"finding {reported.fingerprint} {smallest.how_often}: there is nothing to blame")
            found = blame_search(smallest, there.arms, shown.progress).blame(there.facts)
            found = with_correction(found, [smallest], there.arms, _corrections(reported.campaign), shown.progress)
    if reported.campaign is not None:
        with opened(reported.campaign, progress.say) as store:
            store.record_blame(reported.fingerprint, found)
    if reported.reproducer is not None:
        note(reported.reproducer, {"blame": str(found)})
    results = {length: "shows it" if shows else "does not" for length, shows in found.tried}
    for length, result in sorted((results | dict.fromkeys(found.uncompiled, "does not compile")).items()):
        say(f"{found.arm} with {length} of its {len(found.series)} patches: {result}")
    say(f"{smallest.how_often}; to blame: {found}")
    write_json(json_file, blame_json(found))


def _corrections(campaign: Path | None) -> tuple[Patch, ...]:
    """Return the corrections of the campaign's known faults, or of the shipped ones."""
    if campaign is None:
        return corrections_of(read_known(SHIPPED))
    with opened(campaign, progress.say) as store:
        return corrections_of(store.plan.known)
