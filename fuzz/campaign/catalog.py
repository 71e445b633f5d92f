"""Catalog of campaigns: numbered directories, each with a store and reproducers."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from fuzz import workdir
from fuzz.campaign.spec_findings import SpecFinding, spec_findings
from fuzz.campaign.store import FILE, Store
from fuzz.errors import CaseError
from fuzz.triage.stored_finding import StoredFinding

_Found = TypeVar("_Found", StoredFinding, SpecFinding)


def all_campaigns() -> tuple[Path, ...]:
    """Return the directories of all campaigns, oldest first."""
    found = (path.parent for path in workdir.campaigns().glob(f"*/{FILE}") if path.parent.name.isdigit())
    return tuple(sorted(found, key=lambda path: int(path.name)))


def new_campaign() -> Path:
    """Create and return the directory of a new campaign, numbered one above the highest."""
    numbers = [int(path.name) for path in workdir.campaigns().iterdir() if path.name.isdigit()]
    number = max(numbers, default=0)
    while True:
        number += 1
        directory = workdir.campaigns() / str(number)
        with workdir.writing(directory), suppress(FileExistsError):  # another process was faster
            directory.mkdir()
            return directory


def campaign_named(name: str) -> Path:
    """Return the directory of a campaign by its number, or of the newest by `last`. Raises CaseError."""
    campaigns = all_campaigns()
    if not campaigns:
        raise CaseError("there is no campaign yet; start one with pgduel fuzz")
    if name == "last":
        return campaigns[-1]
    for directory in campaigns:
        if directory.name == name:
            return directory
    raise CaseError(f"no campaign is called {name!r}; pgduel list campaigns names them")


@contextmanager
def opened(directory: Path) -> Iterator[Store]:
    """Open a campaign's store, and close it at the end. Raises PgduelError."""
    store = Store(directory)
    try:
        yield store
    finally:
        store.close()


def find_finding(name: str) -> tuple[Path, StoredFinding]:
    """Return the finding [CAMPAIGN/]FINGERPRINT and its campaign's directory. Raises CaseError."""
    if found := _found(name, Store.findings):
        return found
    if of_spec := find_spec_finding(name):
        raise CaseError(f"finding {name} is one of an isolation spec: see it with ./pgduel isolation {of_spec.spec}")
    raise CaseError(f"no finding is called {name!r}; pgduel list findings names them")


def find_spec_finding(name: str) -> SpecFinding | None:
    """Return the finding [CAMPAIGN/]FINGERPRINT if it is one of an isolation spec, else None. Raises CaseError."""
    found = _found(name, spec_findings)
    return found and found[1]


def _found(name: str, findings: Callable[[Store], Sequence[_Found]]) -> tuple[Path, _Found] | None:
    campaign, _, fingerprint = name.rpartition("/")
    for directory in [campaign_named(campaign)] if campaign else reversed(all_campaigns()):
        with opened(directory) as store:
            for found in findings(store):
                if found.finding.fingerprint == fingerprint:
                    return directory, found
    return None
