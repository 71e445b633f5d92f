"""The arms of a continuous campaign on the present commits of its branches, also compiled while a run goes on."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Thread, get_native_id
from typing import Final

from fuzz.campaign.bug_history import CampaignRun
from fuzz.campaign.disk import note_build
from fuzz.cli.app import console
from fuzz.errors import BuildError, PgduelError, ServerError, SourceError
from fuzz.report.terminal import display
from fuzz.servers import Report
from fuzz.servers.arm import build_arms, open_arms, require_comparable
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.build import build_key, find_build
from fuzz.servers.series import apply_series

Builds = dict[str, str]  # arm → key
_POLLED: Final = 20.0  # seconds between two reads of the branches
_NICE: Final = 5  # of compilers beside a run, which then get a quarter of a busy processor


class _RunEnded(Exception):
    """The run ended before the build beside it."""


def present_arms(name: str, options: ArmOptions, runs: Sequence[CampaignRun]) -> tuple[ArmOptions, Builds]:
    """Return the arms on the present commits, or those of the last run if these cannot run. Raises PgduelError."""
    with display(console, None) as shown:
        try:
            present = options.pinned()
            builds = _built(name, present, shown.progress)
            if runs and builds != runs[-1].builds:
                _require_starts(present, shown.progress)
            return present, builds
        except (SourceError, BuildError, ServerError) as error:
            if not runs:
                raise
            shown.say(f"the present arms cannot run, so this run has those of campaign {runs[-1].number}: {error}")
        last = runs[-1].plan.arms
        return last, _built(name, last, shown.progress)


@contextmanager
def built_beside(name: str, options: ArmOptions, running: ArmOptions) -> Iterator[set[str]]:
    """Compile new commits of the branches while a run of the arms `running` goes on, so that the next one has them.

    Yield a set that gets the keys of complete builds.

    A build that is not complete when the context ends is abandoned; the next run compiles the rest. It also reports
    errors, so this ignores them.
    """
    ended, keys = Event(), set[str]()
    watching = Thread(target=_build_new_commits, args=(name, options, running, ended, keys), daemon=True)
    watching.start()
    try:
        yield keys
    finally:
        ended.set()
        watching.join()


def _build_new_commits(name: str, options: ArmOptions, seen: ArmOptions, ended: Event, keys: set[str]) -> None:
    # On Linux, a thread has a priority of its own, and its child processes inherit it.
    os.setpriority(os.PRIO_PROCESS, get_native_id(), _NICE)

    def abandon_after_run(_progress: str) -> None:
        if ended.is_set():
            raise _RunEnded

    while not ended.wait(_POLLED):
        with suppress(PgduelError, _RunEnded):
            present = options.pinned()
            if present != seen:
                seen = present  # only once, even if it does not compile
                keys.update(_built(name, present, abandon_after_run).values())


def _require_starts(options: ArmOptions, report: Report) -> None:
    """Raise ServerError if a server does not start, or if its sessions fail."""
    with open_arms(options.specs(report), report, allow_same_build=options.same_build_wanted):
        pass


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
