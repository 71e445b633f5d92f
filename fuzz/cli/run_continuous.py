"""A continuous campaign from start to stop: run after run, each on the present commits of its branches."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from math import inf

from fuzz.campaign.bug_history import BugStatus, CampaignRun, history, to_replay
from fuzz.campaign.continuous import cases_left, discoveries_of, left_over, next_plan, runs_of
from fuzz.campaign.database import home, outlasted
from fuzz.campaign.disk import make_room
from fuzz.campaign.edges import reached_edges
from fuzz.campaign.notification import notified_of_errors, notify_of_bugs
from fuzz.campaign.plan import Plan
from fuzz.campaign.pool import processors
from fuzz.campaign.stop import INTERRUPTED
from fuzz.cli.app import console, say
from fuzz.cli.present_arms import Builds, built_beside, present_arms
from fuzz.cli.run_campaign import run_campaign
from fuzz.errors import CanaryMissed
from fuzz.report.summary import print_summary


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
    used: set[str] = set()  # keys of the builds of the last run and, perhaps, of the next one
    while left > 0:
        runs = outlasted(partial(runs_of, plan.name), say)
        notify_of_bugs(plan, runs, say)
        arms, builds = present_arms(plan.name, plan.arms, () if new_options and not builds else runs)
        _make_room(plan, builds.values())
        found = outlasted(partial(discoveries_of, runs), say)
        begin = outlasted(partial(cases_left, plan, runs, builds), say)
        following = replace(next_plan(plan, runs, arms, min(left, run_minutes), begin), discoveries=found)
        bugs, unreduced = to_replay(runs, builds, plan.known), left_over(runs, builds)
        del runs  # all findings with their cases, which the run does not need
        with built_beside(plan.name, plan.arms, arms) as beside:
            summary = run_campaign(
                None, following, processors(), console, dask=dask, known_bugs=bugs, unreduced=unreduced
            )
        used = {*builds.values(), *beside}
        if summary.missed:
            raise CanaryMissed(summary.missed)
        print_summary(console, summary)
        if edges := reached_edges(home() / summary.campaign):
            say(str(edges))
        codes |= {summary.exit_code, _code_of(outlasted(partial(runs_of, plan.name), say))}
        left -= summary.counters.seconds / 60
        if summary.why == INTERRUPTED:  # as requested, so a status above 1 would be no answer to it
            codes -= {2}
            break
    notify_of_bugs(plan, outlasted(partial(runs_of, plan.name), say), say)
    _make_room(plan, used)
    return 1 if 1 in codes else max(codes)


def _code_of(runs: Sequence[CampaignRun]) -> int:
    return int(any(bug.status is BugStatus.BACK_AGAIN for bug in history(runs)))


def _make_room(plan: Plan, used: Collection[str]) -> None:
    def lines() -> list[str]:
        return list(make_room(plan, runs_of(plan.name), used))

    for line in outlasted(lines, say):
        say(line)
