"""A continuous campaign from start to stop: run after run, each on the present commits of its branches."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import inf

from fuzz.campaign.bug_history import BugStatus, CampaignRun, history, to_replay
from fuzz.campaign.continuous import discoveries_of, next_plan, runs_of
from fuzz.campaign.database import home, outlasted
from fuzz.campaign.disk import DISK, make_room, note_build
from fuzz.campaign.edges import reached_edges
from fuzz.campaign.notification import notified_of_errors, notify_of_bugs
from fuzz.campaign.plan import Plan
from fuzz.campaign.pool import processors
from fuzz.campaign.stop import INTERRUPTED
from fuzz.cli.app import console, say
from fuzz.cli.run_campaign import run_campaign
from fuzz.errors import BuildError, CanaryMissed, SourceError
from fuzz.report.summary import print_summary
from fuzz.report.terminal import display
from fuzz.servers import Report
from fuzz.servers.arm import build_arms, require_comparable
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.build import build_key, find_build
from fuzz.servers.series import apply_series

Builds = dict[str, str]  # arm → key


def run_continuous(
    plan: Plan, minutes: float | None, run_minutes: float, *, dask: str | None = None, new_options: bool
) -> int:
    """Run until the time is up, or the user ends it.

    Return the exit status: 1 if a run showed a bug that is new, or back again. Raises PgduelError.
    """
    with notified_of_errors(plan, say):
        return _run_continuous(plan, minutes, run_minutes, dask, new_options=new_options)


def _run_continuous(
    plan: Plan, minutes: float | None, run_minutes: float, dask: str | None, *, new_options: bool
) -> int:
    left = inf if minutes is None else minutes
    codes, builds = {0}, Builds()
    while left > 0:
        runs = outlasted(partial(runs_of, plan.name), say)
        notify_of_bugs(plan, runs, say)
        arms, builds = _present_arms(plan, () if new_options and not builds else runs)
        _make_room(plan, builds)
        found = outlasted(partial(discoveries_of, runs), say)
        following = replace(next_plan(plan, runs, arms, min(left, run_minutes)), discoveries=found)
        bugs = to_replay(runs, builds, plan.known)
        summary = run_campaign(None, following, processors(), console, dask=dask, known_bugs=bugs)
        if summary.missed:
            raise CanaryMissed(summary.missed)
        print_summary(console, summary)
        if edges := reached_edges(home() / summary.campaign):
            say(str(edges))
        codes |= {summary.exit_code, _code_of(outlasted(partial(runs_of, plan.name), say))}
        left -= summary.counters.seconds / 60
        if summary.why == INTERRUPTED:
            break
    notify_of_bugs(plan, outlasted(partial(runs_of, plan.name), say), say)
    _make_room(plan, builds)
    return 1 if 1 in codes else max(codes)


def _code_of(runs: Sequence[CampaignRun]) -> int:
    return int(any(bug.status is BugStatus.BACK_AGAIN for bug in history(runs)))


def _make_room(plan: Plan, builds: Builds) -> None:
    def lines() -> list[str]:
        return list(make_room(plan.name, runs_of(plan.name), plan.disk or DISK, builds))

    for line in outlasted(lines, say):
        say(line)


def _present_arms(plan: Plan, runs: Sequence[CampaignRun]) -> tuple[ArmOptions, Builds]:
    """Return the arms on the present commits, or those of the last run if these cannot be built. Raises PgduelError."""
    with display(console, None) as shown:
        try:
            present = plan.arms.pinned()
            return present, _built(plan.name, present, shown.progress)
        except (SourceError, BuildError) as error:
            if not runs:
                raise
            shown.say(f"the present arms cannot be built, so this run has those of campaign {runs[-1].number}: {error}")
        last = runs[-1].plan.arms
        return last, _built(plan.name, last, shown.progress)


def _built(name: str, options: ArmOptions, report: Report) -> Builds:
    """Return the builds of arms, and note those that are compiled now. Raises SourceError, BuildError."""
    specs = options.specs(report)
    for spec in specs:
        tree = apply_series(spec.base.tree, spec.series)[-1]
        if find_build(tree, spec.flavor) is None:
            note_build(name, build_key(tree, spec.flavor))
    builds = {spec.name: build for spec, (build, _) in zip(specs, build_arms(specs, report), strict=True)}
    differing = len({spec.settings for spec in specs}) > 1
    require_comparable(builds, allow_same_build=options.same_build_wanted or differing)
    return {arm: build.key for arm, build in builds.items()}
