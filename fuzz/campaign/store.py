"""Store: one SQLite database a campaign, in which a finding is committed before anything else is done with it.

Several processes write to it (each worker its findings, the campaign its progress), so it keeps a write-ahead log
and waits for locks. A row is written in the transaction that makes it true; nothing is kept in memory only.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, select, update
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.schema import CreateTable

from fuzz.campaign import case_json
from fuzz.campaign.counters import Counters
from fuzz.campaign.findings import read_findings
from fuzz.campaign.tables import (
    BESIDE,
    BLAME,
    CAMPAIGN,
    EFFORT,
    FINDING,
    METADATA,
    OCCURRENCE,
    RANGE,
    REDUCTION,
    SMALLEST,
    VOTE,
)
from fuzz.errors import StorageError, first_line
from fuzz.triage.blame import Blame
from fuzz.triage.reduced_case import ReducedCase
from fuzz.triage.stored_finding import StoredFinding
from oracles.model.case import Case
from oracles.model.finding import Finding

FILE = "store.sqlite"
_NO_ROOM = ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE")


class StoreError(StorageError):
    """The store cannot be read or written: nothing may be found that is not kept."""


class Store:
    """The store of one campaign, in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        """Open or make the store. Raises StoreError, as all methods do."""
        self.directory = directory
        self._engine = create_engine(f"sqlite:///{directory / FILE}", connect_args={"timeout": 60})
        try:
            self._make_tables()
        except StoreError:
            self.close()
            raise

    def _make_tables(self) -> None:
        with self.transaction() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")  # which the file remembers
            for table in METADATA.sorted_tables:
                connection.execute(CreateTable(table, if_not_exists=True))  # another process may be at it too

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Open a transaction that is committed in the end. Raises StoreError."""
        try:
            with self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            cause = first_line(str(error.__cause__ or error))
            advice = "; make room there" if getattr(error.__cause__, "sqlite_errorname", "") in _NO_ROOM else ""
            raise StoreError(f"the store {self.directory / FILE} cannot be used: {cause}{advice}") from error

    def close(self) -> None:
        """Close the database's connections."""
        self._engine.dispose()

    def begin(self, options: Mapping[str, Any], arms: Mapping[str, Any]) -> None:
        """Record what the campaign runs, once; a campaign that is resumed keeps its options and counts."""
        row = {"only": 1, "options": dict(options), "arms": dict(arms), "tally": Counters().to_json()}
        with self.transaction() as connection:
            connection.execute(insert(CAMPAIGN).values(row).on_conflict_do_nothing())

    def _field(self, name: str) -> Any:
        with self.transaction() as connection:
            return connection.execute(select(CAMPAIGN.c[name])).scalar()

    @property
    def options(self) -> dict[str, Any]:
        """Return what `begin` was given, or {} if it was not called."""
        return self._field("options") or {}

    @property
    def arms(self) -> dict[str, Any]:
        """Return the arms that `begin` was given, or {}."""
        return self._field("arms") or {}

    @property
    def canaries(self) -> dict[str, int]:
        """Return how many canaries were planted, caught, and caught only when planted again, when last tried."""
        return {"planted": 0, "caught": 0, "retried": 0} | (self._field("canaries") or {})

    def canaries_tried(self, counts: Mapping[str, int]) -> None:
        """Record the outcome of the canaries, as `canaries.counts` has it."""
        with self.transaction() as connection:
            connection.execute(update(CAMPAIGN).values(canaries=dict(counts)))

    @property
    def counters(self) -> Counters:
        """Return the counts of all that is done."""
        return Counters.from_json(self._field("tally") or {})

    def progress(self, counters: Counters, done: Mapping[int, int]) -> None:
        """Record the campaign's counts together with the ranges they come from (number -> cases done, in all)."""
        with self.transaction() as connection:
            connection.execute(update(CAMPAIGN).values(tally=counters.to_json()))
            for number, cases in done.items():
                row = insert(RANGE).values(number=number, done=cases)
                connection.execute(row.on_conflict_do_update(["number"], set_={"done": cases}))

    def done(self) -> dict[int, int]:
        """Return range number -> cases done."""
        with self.transaction() as connection:
            rows = connection.execute(select(RANGE)).mappings().all()
        return {row["number"]: row["done"] for row in rows}

    def add_finding(self, finding: Finding, case_id: str, case: Case) -> bool:
        """Commit a finding, or count it where its fingerprint is known; the same case counts once. True if new."""
        row = {
            "fingerprint": finding.fingerprint,
            "oracle": finding.oracle,
            "expected_arm": finding.arms[0],
            "suspect_arm": finding.arms[1],
            "origin": finding.origin,
            "step": finding.step,
            "summary": finding.summary,
            "expected": finding.expected,
            "actual": finding.actual,
            "case_id": case_id,
            "case": case_json.dumps(case),
        }
        seen = {"fingerprint": finding.fingerprint, "case_id": case_id}
        with self.transaction() as connection:
            added = connection.execute(insert(FINDING).values(row).on_conflict_do_nothing())
            connection.execute(insert(OCCURRENCE).values(seen).on_conflict_do_nothing())
            if finding.beside:
                queries = [asdict(each) for each in finding.beside]
                beside = {"fingerprint": finding.fingerprint, "queries": queries}
                connection.execute(insert(BESIDE).values(beside).on_conflict_do_nothing())
            if finding.vote:
                vote = {"fingerprint": finding.fingerprint, **asdict(finding.vote)}
                connection.execute(insert(VOTE).values(vote).on_conflict_do_nothing())
        return added.rowcount == 1

    def written(self, fingerprint: str, reproducer: Path) -> None:
        """Record where the finding's reproducer is."""
        with self.transaction() as connection:
            found = update(FINDING).where(FINDING.c.fingerprint == fingerprint)
            connection.execute(found.values(reproducer=str(reproducer)))

    def came_to(self, fingerprint: str, smallest: ReducedCase) -> None:
        """Record what the finding's reduction has come to so far, from where it can be taken up again."""
        with self.transaction() as connection:
            _keep(connection, fingerprint, smallest)

    def reduced(self, fingerprint: str, smallest: ReducedCase, seconds: float) -> None:
        """Record that the finding's reproducer is as small as it gets, what it shows, and how long that took."""
        with self.transaction() as connection:
            connection.execute(insert(REDUCTION).values(fingerprint=fingerprint).on_conflict_do_nothing())
            _keep(connection, fingerprint, smallest)
            effort = insert(EFFORT).values(fingerprint=fingerprint, seconds=seconds)
            connection.execute(effort.on_conflict_do_update(["fingerprint"], set_={"seconds": seconds}))

    def blamed(self, fingerprint: str, blame: Blame) -> None:
        """Record what is to blame for the finding."""
        told = {"told": blame.to_json()}
        with self.transaction() as connection:
            kept = insert(BLAME).values(fingerprint=fingerprint, **told)
            connection.execute(kept.on_conflict_do_update(["fingerprint"], set_=told))

    def finding(self, fingerprint: str) -> StoredFinding:
        """Return a finding that is in the store."""
        return next(each for each in self.findings() if each.finding.fingerprint == fingerprint)

    def findings(self) -> tuple[StoredFinding, ...]:
        """Return all findings, in the order in which they came."""
        with self.transaction() as connection:
            return read_findings(connection)


def _keep(connection: Connection, fingerprint: str, smallest: ReducedCase) -> None:
    row = {
        "case": case_json.dumps(smallest.case),
        "finding": asdict(smallest.finding),
        "shown": smallest.shown,
        "runs": smallest.runs,
    }
    kept = insert(SMALLEST).values(fingerprint=fingerprint, **row)
    connection.execute(kept.on_conflict_do_update(["fingerprint"], set_=row))
