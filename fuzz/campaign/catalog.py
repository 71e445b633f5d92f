"""Catalog of campaigns: numbered directories, each with a store and reproducers.

A shared store has the numbers of all its campaigns. Their directories have the files of this machine.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import select

from fuzz import workdir
from fuzz.campaign.database import Say, home, outlasted
from fuzz.campaign.plan import Plan
from fuzz.campaign.postgresql import shared
from fuzz.campaign.schema import CAMPAIGN, StoreUnreachable
from fuzz.campaign.sqlite import FILE
from fuzz.campaign.store import (
    HarnessFinding,
    SpecFinding,
    Store,
    StoredDoubt,
    harness_findings,
    spec_findings,
    spec_of_doubt,
)
from fuzz.engines import isolation
from fuzz.engines.guided.inputs import Corpus, stored_input
from fuzz.engines.libfuzzer.run import INPUT_NAME
from fuzz.errors import CaseError, PgduelError, TransientError
from fuzz.output import note
from fuzz.triage.findings import StoredFinding

_Finding = TypeVar("_Finding", StoredFinding, SpecFinding, HarnessFinding)
_Record = TypeVar("_Record")


def require_store() -> None:
    """Raise StoreError if a shared store cannot have new campaigns, before a command builds servers."""
    server = shared()
    if server is not None:
        server.require_usable()


def all_campaigns() -> tuple[Path, ...]:
    """Return the directories of all campaigns, oldest first. Raises StoreError."""
    server = shared()
    if server is not None:
        return tuple(home() / str(number) for number in server.numbers())
    found = (path.parent for path in workdir.campaigns().glob(f"*/{FILE}") if path.parent.name.isdigit())
    return tuple(sorted(found, key=lambda path: int(path.name)))


def new_campaign() -> Path:
    """Create and return the directory of a new campaign, numbered one above the highest. Raises StorageError."""
    server = shared()
    if server is not None:
        directory = home() / str(server.reserve())
        with workdir.writing(directory):
            directory.mkdir(exist_ok=True)  # it may be left of a database that was deleted
        return directory
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
def opened(directory: Path, say: Say | None = None) -> Iterator[Store]:
    """Open a campaign's store, and close it at the end. With `say`, it outlasts its server. Raises PgduelError."""
    store = Store(directory, say)
    try:
        yield store
    finally:
        store.close()


@cache
def warn(line: str) -> None:
    """Print a line to stderr, once in a process."""
    note(line)


@contextmanager
def opened_new(say: Say) -> Iterator[Store]:
    """Open the store of a new campaign, which outlasts its server, and close it at the end. Raises PgduelError."""
    with opened(outlasted(new_campaign, say), say) as store:
        yield store


@contextmanager
def unless_unreadable(say: Say | None = None) -> Iterator[None]:
    """Leave the context if a store cannot be read, and pass the reason to `say`.

    Raises StoreUnreachable, because others cannot be read then. Without `say`, prints the reason, and raises any
    TransientError: what is decided without the store would differ later.
    """
    try:
        yield
    except PgduelError as error:
        if isinstance(error, StoreUnreachable) or (say is None and isinstance(error, TransientError)):
            raise
        (say or warn)(str(error))


def last_seed(arms: Mapping[str, Any]) -> int:
    """Return the highest seed of all campaigns on these arms, as `Store.begin` records them; 0 if there are none.

    Stores that cannot be read do not count.
    """
    seeds = [0]
    for directory in all_campaigns():
        with unless_unreadable(), opened(directory) as store:
            recorded = store.read(select(CAMPAIGN.c.plan, CAMPAIGN.c.arms))
            seeds += [row["plan"].seed for row in recorded if row["arms"] == arms]
    return max(seeds)


def find_finding(name: str) -> tuple[Path, StoredFinding]:
    """Return the finding [CAMPAIGN/]FINGERPRINT and its campaign's directory. Raises CaseError."""
    if found := _found(name, partial(_of_fingerprint, Store.findings)):
        return found
    if of_spec := find_spec_finding(name):
        raise CaseError(
            f"finding {name} is one of an isolation spec: see it with {workdir.COMMAND} isolation {of_spec.spec}"
        )
    if of_harness := find_harness_finding(name):
        raise CaseError(f"finding {name} is one of a harness: run it again with {of_harness[1]}")
    raise CaseError(f"no finding is called {name!r}; pgduel list findings names them")


def find_doubt(name: str) -> tuple[Path, StoredDoubt] | None:
    """Return a doubt by [CAMPAIGN/]NAME, and its campaign's directory; None if there is none.

    Raises CaseError, also for the doubt of an isolation spec.
    """
    found = _found(name, Store.doubt)
    if found and found[1].oracle == isolation.NAME:
        with opened(found[0]) as store:
            spec, options = spec_of_doubt(store, found[1]), store.plan.arms.command_line()
        command = f"{workdir.COMMAND} isolation {shlex.quote(str(spec))}{options}"
        raise CaseError(f"doubt {name} is one of an isolation spec: run it again with {command}")
    return found


def find_spec_finding(name: str) -> SpecFinding | None:
    """Return the finding [CAMPAIGN/]FINGERPRINT if it is one of an isolation spec, else None. Raises CaseError."""
    found = _found(name, partial(_of_fingerprint, spec_findings))
    return found and found[1]


def find_harness_finding(name: str) -> tuple[HarnessFinding, str] | None:
    """Return the finding [CAMPAIGN/]FINGERPRINT of a harness and the command that runs its input, or None.

    Raises CaseError.
    """
    found = _found(name, partial(_of_fingerprint, harness_findings))
    if found is None:
        return None
    directory, finding = found
    with opened(directory) as store:
        return finding, harness_replay(finding, store.plan)


def harness_replay(found: HarnessFinding, plan: Plan) -> str:
    """Return the command that runs a harness on the input of a finding."""
    file = shlex.quote(str(found.input))
    return f"{workdir.COMMAND} harness {found.harness} --replay {file}{plan.arms.command_line()}"


def find_input(generator: str, name: str) -> bytes:
    """Return an input of libFuzzer by its name, from a campaign or the generator's corpus. Raises CaseError."""
    if not INPUT_NAME.fullmatch(name):
        raise CaseError(f"{name!r} is no name of an input: it has 40 hexadecimal digits")
    for directory in reversed(all_campaigns()):
        if (data := stored_input(directory, name)) is not None:
            return data
    if (data := Corpus.of(generator).read(name)) is not None:
        return data
    raise CaseError(f"neither a campaign nor the corpus of {generator} has the input {name}; replay its finding")


def _of_fingerprint(findings: Callable[[Store], Sequence[_Finding]], store: Store, fingerprint: str) -> _Finding | None:
    return next((found for found in findings(store) if found.finding.fingerprint == fingerprint), None)


def _found(name: str, record_of: Callable[[Store, str], _Record | None]) -> tuple[Path, _Record] | None:
    """Return the newest record of [CAMPAIGN/]NAME, and its campaign's directory."""
    campaign, _, wanted = name.rpartition("/")
    if campaign:
        directory = campaign_named(campaign)
        with opened(directory) as store:
            found = record_of(store, wanted)
        return (directory, found) if found else None
    for directory in reversed(all_campaigns()):
        with unless_unreadable(warn), opened(directory) as store:
            if found := record_of(store, wanted):
                return directory, found
    return None
