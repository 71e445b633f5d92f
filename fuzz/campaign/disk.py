"""Disk of a continuous campaign: old builds of its branches, and details of old runs, are deleted.

Details are doubts, samples, and all files but the store and reproducers. Findings with their cases, bugs and their
history stay.
"""

import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

from fuzz import documents, workdir
from fuzz.campaign.bug_history import BugStatus, CampaignRun, history, is_replayed
from fuzz.campaign.catalog import all_campaigns, opened, unless_unreadable
from fuzz.campaign.continuous import directory_of, file_of
from fuzz.campaign.known import KnownFault
from fuzz.campaign.plan import Plan
from fuzz.campaign.sqlite import FILE
from fuzz.campaign.usage import size_of
from fuzz.errors import TransientError
from fuzz.servers.build import delete_build, last_use
from fuzz.triage.blame import Blame
from fuzz.triage.triage import DIRECTORY as REPRODUCERS

GB: Final = 1_000_000_000
DISK: Final = 20.0  # GB
REVISIONS: Final = 3  # whose builds are kept, the newest ones
UNUSED: Final = 86400.0  # seconds after which a worker's machine deletes a build
_BUILDS: Final = ".builds.json"


def note_build(name: str, key: str) -> None:
    """Note a build that the campaign is about to compile. Raises StorageError."""
    with workdir.locked(file_of(name, _BUILDS)):
        _write_builds(name, {*own_builds(name), key})


def own_builds(name: str) -> frozenset[str]:
    """Return the keys of the builds that were compiled for the campaign."""
    with suppress(FileNotFoundError):
        return frozenset(documents.loads(file_of(name, _BUILDS).read_text(encoding="utf-8"), tuple[str, ...]))
    return frozenset()


def _write_builds(name: str, keys: Iterable[str]) -> None:
    workdir.write(file_of(name, _BUILDS), documents.dumps(sorted(keys)))


def size_of_builds(name: str) -> int:
    """Return the bytes on disk of the builds that were compiled for the campaign."""
    return sum(size_of(workdir.builds() / key) for key in own_builds(name))


def size_of_run(run: CampaignRun) -> int:
    """Return the bytes on disk of a run: its files on this machine, and its tables in a shared database."""
    return size_of(directory_of(run)) + run.database_size


def size_of_campaign(name: str, runs: Sequence[CampaignRun]) -> int:
    """Return the bytes on disk of a campaign: the builds that were compiled for it, and its runs."""
    return size_of_builds(name) + sum(map(size_of_run, runs))


def make_room(plan: Plan, runs: Sequence[CampaignRun], used: Iterable[str]) -> Iterator[str]:
    """Delete old builds, then details of old runs above the limit. Yield a line for each kind of deletion.

    Builds with the keys `used` stay. Raises StorageError.
    """
    name, gigabytes = plan.name, plan.disk or DISK
    deleted: Sequence[str] = ()
    with suppress(TransientError):  # of another campaign's store, whose builds are not known now
        deleted = _delete_builds(name, {*used, *_needed(runs, plan.known), *_of_others(name)})
    if deleted:
        yield f"builds of older revisions that no bug needs are deleted: {', '.join(deleted)}"
    limit = round(gigabytes * GB)
    total = size_of_campaign(name, runs)
    thinned = []
    for run in runs[:-1]:
        if total <= limit:
            break
        if freed := _drop_details(directory_of(run)):
            thinned.append(run.number)
            total -= freed
    if thinned:
        yield f"details of campaigns {thinned[0]} to {thinned[-1]} are deleted, because of --disk {gigabytes:g}"
    if total > limit:
        yield (
            f"campaign {name} has {total / GB:.1f} GB, more than --disk {gigabytes:g}, in findings, history and builds "
            "in use, which stay; give a larger --disk"
        )


def delete_builds_of_worker(name: str, used: AbstractSet[str]) -> None:
    """Delete the builds that a worker's machine compiled for a campaign, and that nothing used in the last day.

    Builds with the keys `used` stay. Bugs need none there, because the campaign's own machine replays them. Raises
    StorageError.
    """
    before = time.time() - UNUSED
    _delete_builds(name, {*used, *(key for key in own_builds(name) if last_use(key) > before)})


def _needed(runs: Sequence[CampaignRun], expected: Sequence[KnownFault]) -> Iterator[str]:
    """Yield the builds of the newest revisions, and of bugs that are not fixed: where found, and around the blame.

    Bugs that are not replayed need none, because they are never found to be fixed.
    """
    newest = dict.fromkeys(tuple(sorted(run.builds.items())) for run in reversed(runs))
    yield from (key for builds in islice(newest, REVISIONS) for _, key in builds)
    by_number = {run.number: run for run in runs}
    for bug in history(runs):
        builds = by_number[bug.run].builds
        replayed = any(is_replayed(found, tuple(builds), expected) for found in bug.findings)
        if replayed and bug.status is not BugStatus.FIXED:
            yield from builds.values()
            yield from (key for found in bug.findings if found.blame for key in _around(found.blame, runs))


def _around(blame: Blame, runs: Sequence[CampaignRun]) -> Iterator[str]:
    """Yield the builds with the patch to blame and before it, so that further findings of the bug are blamed on it."""
    if blame.first is not None:
        prefixes = {blame.series[:length] for length in (blame.first - len(blame.patches), blame.first)}
        yield from (run.builds[blame.arm] for run in runs if run.series.get(blame.arm) in prefixes)


def _of_others(name: str) -> Iterator[str]:
    """Yield the builds of all other campaigns. Stores that cannot be read have none. Raises TransientError."""
    for directory in all_campaigns():
        with unless_unreadable(), opened(directory) as store:
            if store.begun and store.plan.name != name:
                yield from (facts["build"] for facts in store.arms.values())


def _delete_builds(name: str, needed: set[str]) -> list[str]:
    deleted = [key for key in sorted(own_builds(name) - needed) if delete_build(key)]
    if deleted:
        with workdir.locked(file_of(name, _BUILDS)):
            _write_builds(name, own_builds(name) - set(deleted))
    return deleted


def _drop_details(directory: Path) -> int:
    """Delete the details of a run, and return the number of freed bytes. Stores that cannot be read stay."""
    before = size_of(directory)
    for path in directory.glob("*"):  # a run of another machine has no directory here
        if path.name == REPRODUCERS or path.name.startswith(FILE):
            continue
        with workdir.writing(path):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    with unless_unreadable(), opened(directory) as store:
        before += store.database_size
        store.drop_details()
        before -= store.database_size
    return max(0, before - size_of(directory))
