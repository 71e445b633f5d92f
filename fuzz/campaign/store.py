"""Store: one SQLite database per campaign. Findings are committed there before anything else is done with them.

Several processes write to it: each worker its findings, the campaign its progress. So it has a write-ahead log, and
waits for locks. No result is kept in memory only.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from sqlalchemy import Column, Connection, ScalarSelect, Select, Table, create_engine, delete, func, select, update
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.exc import SQLAlchemyError

from fuzz.campaign.counters import KINDS, Counters, ProgressPoint
from fuzz.campaign.plan import Plan
from fuzz.campaign.schema import (
    CAMPAIGN,
    DOUBT,
    FINDING,
    HARNESS_FINDING,
    OCCURRENCE,
    RANGE,
    REPLAY,
    SAMPLE,
    SPEC_FINDING,
    StoreError,
    prepare,
)
from fuzz.documents import DocumentError
from fuzz.errors import CaseError, first_line
from fuzz.triage.blame import Blame
from fuzz.triage.findings import StoredFinding
from fuzz.triage.interestingness import ReducedCase
from fuzz.triage.replays import ReplayResult
from oracles.model.case import Case
from oracles.model.feature import Feature
from oracles.model.finding import Finding
from oracles.model.oracle import Inconclusive, Unstable

FILE = "store.sqlite"
KEPT = 10  # doubts of one oracle, kind and reason: more are counted only
_ADVICE = {
    "SQLITE_FULL": "; make room there",
    "SQLITE_IOERR_SHMSIZE": "; make room there",
    "SQLITE_BUSY": "; another process uses it: try again when that has ended",
}


@dataclass(frozen=True, slots=True)
class StoredDoubt:
    """A case that an oracle could not decide, with the step in question and both sides where the oracle gave them."""

    oracle: str
    kind: str  # inconclusive or unstable
    reason: str
    case_id: str
    case: Case
    step: int | None = None
    sides: tuple[str, str] = ("", "")
    outcome: str = field(default="", compare=False)  # of later tries; "" before them

    @property
    def name(self) -> str:
        """Return 12 hexadecimal digits that identify oracle, kind, reason and case."""
        text = "\0".join((self.oracle, self.kind, self.reason, self.case_id))
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def doubt_of(oracle: str, verdict: Inconclusive | Unstable, case_id: str, case: Case) -> StoredDoubt:
    """Return the doubt of a verdict on a case."""
    return StoredDoubt(oracle, KINDS[type(verdict)], verdict.reason, case_id, case, verdict.step, verdict.sides)


@dataclass(frozen=True, slots=True)
class SpecFinding:
    """A finding, the number of specs and modes that showed it, and the file with the first spec."""

    finding: Finding
    count: int
    spec: Path


@dataclass(frozen=True, slots=True)
class HarnessFinding:
    """A finding of a native harness, the number of inputs that showed it, the harness, and the file of an input."""

    finding: Finding
    count: int
    harness: str
    input: Path


class Store:
    """The store of one campaign, in its own directory."""

    def __init__(self, directory: Path) -> None:
        """Open or create the store. Raises StoreError, as all methods do."""
        self.directory = directory
        self._engine = create_engine(f"sqlite:///{directory / FILE}", connect_args={"timeout": 60})
        try:
            with self._errors():
                prepare(self._engine)
        except StoreError:
            self.close()
            raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Convert the database's exceptions into StoreError."""
        file = self.directory / FILE
        try:
            yield
        except SQLAlchemyError as error:
            cause = first_line(str(error.__cause__ or error))
            advice = _ADVICE.get(getattr(error.__cause__, "sqlite_errorname", ""), "")
            raise StoreError(f"the store {file} cannot be used: {cause}{advice}") from error
        except DocumentError as error:
            raise StoreError(f"the store {file} is damaged: {error}") from error

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Open a transaction, and commit it at the end. Raises StoreError."""
        with self._errors(), self._engine.begin() as connection:
            yield connection

    def close(self) -> None:
        """Close the database's connections."""
        self._engine.dispose()

    def begin(self, plan: Plan, arms: Mapping[str, Any]) -> None:
        """Record plan and arms of a new campaign; a resumed one keeps its plan and counts."""
        row = {"only": 1, "plan": plan, "arms": dict(arms), "counters": Counters()}
        with self.transaction() as connection:
            connection.execute(insert(CAMPAIGN).values(row).on_conflict_do_nothing())

    def _field(self, name: str) -> Any:
        with self.transaction() as connection:
            return connection.execute(select(CAMPAIGN.c[name])).scalar()

    @property
    def begun(self) -> bool:
        """Return whether `begin` was called."""
        return self._field("only") is not None

    @property
    def plan(self) -> Plan:
        """Return the campaign's plan. Raises CaseError if the campaign ended before it recorded one."""
        plan: Plan | None = self._field("plan")
        if plan is None:
            raise CaseError(f"campaign {self.directory.name} ended before its first case; start another one")
        return plan

    @property
    def arms(self) -> dict[str, Any]:
        """Return the arms that `begin` recorded, or {}."""
        return self._field("arms") or {}

    @property
    def canaries(self) -> dict[str, int]:
        """Return the last numbers of canaries planted, caught, and caught only in a later try."""
        return {"planted": 0, "caught": 0, "retried": 0} | (self._field("canaries") or {})

    def record_canaries(self, counts: Mapping[str, int]) -> None:
        """Record the result of the canaries, in the form of `canaries.counts`."""
        with self.transaction() as connection:
            connection.execute(update(CAMPAIGN).values(canaries=dict(counts)))

    @property
    def counters(self) -> Counters:
        """Return the campaign's counters."""
        counters: Counters | None = self._field("counters")
        return counters or Counters()

    def record_start(self, features: Sequence[Feature], not_compared: Sequence[str]) -> None:
        """Record the arms' features, and the lines about oracles that do not judge an arm; forget an earlier end."""
        values = {"features": tuple(features), "not_compared": list(not_compared), "ended": None}
        with self.transaction() as connection:
            connection.execute(update(CAMPAIGN).values(values))

    def record_end(self, why: str) -> None:
        """Record the reason for the campaign's end."""
        with self.transaction() as connection:
            connection.execute(update(CAMPAIGN).values(ended=why))

    @property
    def features(self) -> tuple[Feature, ...]:
        """Return the arms' features, as far as recorded."""
        return self._field("features") or ()

    @property
    def not_compared(self) -> tuple[str, ...]:
        """Return a line for each arm that an oracle does not judge, as far as recorded."""
        return tuple(self._field("not_compared") or ())

    @property
    def ended(self) -> str:
        """Return the reason for the campaign's end; "" while it runs, or if it was killed."""
        return self._field("ended") or ""

    def samples(self) -> tuple[ProgressPoint, ...]:
        """Return the samples of progress, by number of cases."""
        with self.transaction() as connection:
            rows = connection.execute(select(SAMPLE).order_by(SAMPLE.c.cases)).mappings()
            return tuple(ProgressPoint(**row) for row in rows)

    def progress(self, counters: Counters, done: Mapping[int, int], sample: ProgressPoint | None = None) -> None:
        """Record counters, ranges (number -> total of executed cases) and perhaps a sample, in one transaction."""
        with self.transaction() as connection:
            connection.execute(update(CAMPAIGN).values(counters=counters))
            if sample is not None:
                connection.execute(insert(SAMPLE).values(asdict(sample)).on_conflict_do_nothing())
            for number, cases in done.items():
                row = insert(RANGE).values(number=number, done=cases)
                connection.execute(row.on_conflict_do_update(["number"], set_={"done": cases}))

    def done(self) -> dict[int, int]:
        """Return the number of executed cases by range number."""
        with self.transaction() as connection:
            rows = connection.execute(select(RANGE)).mappings().all()
        return {row["number"]: row["done"] for row in rows}

    def add_finding(self, finding: Finding, case_id: str, case: Case) -> bool:
        """Commit a finding, or count it if its fingerprint is known; return whether it is new.

        A case counts once for each finding.
        """
        fingerprint = finding.fingerprint
        row = {"fingerprint": fingerprint, "finding": finding, "case_id": case_id, "case": case}
        seen = {"fingerprint": fingerprint, "case_id": case_id}
        with self.transaction() as connection:
            added = connection.execute(insert(FINDING).values(row).on_conflict_do_nothing())
            connection.execute(insert(OCCURRENCE).values(seen).on_conflict_do_nothing())
        return added.rowcount == 1

    def add_doubt(self, doubt: StoredDoubt) -> bool:
        """Commit a doubt unless it is known, or the store has enough of its kind. Returns whether it was committed."""
        row = {"name": doubt.name} | {each.name: getattr(doubt, each.name) for each in fields(doubt)}
        alike = (DOUBT.c[name] == row[name] for name in ("oracle", "kind", "reason"))
        with self.transaction() as connection:
            if connection.execute(select(func.count()).where(*alike)).scalar_one() >= KEPT:
                return False
            return connection.execute(insert(DOUBT).values(row).on_conflict_do_nothing()).rowcount == 1

    def doubt(self, name: str) -> StoredDoubt | None:
        """Return the doubt of this name, or None."""
        return next(iter(self._doubts(_DOUBTS.where(DOUBT.c.name == name))), None)

    def untried_doubt(self) -> StoredDoubt | None:
        """Return the oldest doubt that was not tried again, or None."""
        return next(iter(self._doubts(_DOUBTS.where(DOUBT.c.outcome == "").limit(1))), None)

    def doubts(self) -> tuple[StoredDoubt, ...]:
        """Return all doubts, in the order in which they came."""
        return self._doubts(_DOUBTS)

    def _doubts(self, query: Select[Any]) -> tuple[StoredDoubt, ...]:
        with self.transaction() as connection:
            rows = connection.execute(query.order_by(DOUBT.c.number)).mappings()
            return tuple(StoredDoubt(**row | {"sides": tuple(row["sides"])}) for row in map(dict, rows))

    def tried_again(self, name: str, outcome: str) -> None:
        """Record what later tries of a doubt came to."""
        with self.transaction() as connection:
            connection.execute(update(DOUBT).where(DOUBT.c.name == name).values(outcome=outcome))

    def record_reproducer(self, fingerprint: str, reproducer: Path) -> None:
        """Record the path of the finding's reproducer."""
        self._update(fingerprint, reproducer=reproducer)

    def record_progress(self, fingerprint: str, smallest: ReducedCase) -> None:
        """Record the smallest case so far, with which the finding's reduction can be resumed."""
        self._update(fingerprint, smallest=smallest)

    def record_reduction(self, fingerprint: str, smallest: ReducedCase, seconds: float) -> None:
        """Record the end of the finding's reduction: its result and duration."""
        self._update(fingerprint, smallest=smallest, reduced=True, seconds=seconds)

    def record_blame(self, fingerprint: str, blame: Blame) -> None:
        """Record the patch to blame for the finding."""
        self._update(fingerprint, blame=blame)

    def _update(self, fingerprint: str, **values: object) -> None:
        with self.transaction() as connection:
            connection.execute(update(FINDING).where(FINDING.c.fingerprint == fingerprint).values(values))

    def record_replay(self, outcome: ReplayResult) -> None:
        """Record the outcome of a finding of an earlier run on these arms."""
        with self.transaction() as connection:
            connection.execute(insert(REPLAY).values(asdict(outcome)).on_conflict_do_nothing())

    def replays(self) -> tuple[ReplayResult, ...]:
        """Return the outcomes of findings of earlier runs, by fingerprint."""
        with self.transaction() as connection:
            rows = connection.execute(select(REPLAY).order_by(REPLAY.c.fingerprint)).mappings()
            return tuple(ReplayResult(**row) for row in rows)

    def drop_details(self) -> None:
        """Delete doubts, and all samples but the last, and return their space to the disk."""
        last = select(func.max(SAMPLE.c.cases)).scalar_subquery()
        with self.transaction() as connection:
            connection.execute(delete(DOUBT))
            connection.execute(delete(SAMPLE).where(SAMPLE.c.cases < last))
        with self._errors(), self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM")

    def finding(self, fingerprint: str) -> StoredFinding:
        """Return a finding of the store by its fingerprint."""
        (found,) = self._findings(_FINDINGS.where(FINDING.c.fingerprint == fingerprint))
        return found

    def findings(self) -> tuple[StoredFinding, ...]:
        """Return all findings, in the order of their discovery."""
        return self._findings(_FINDINGS.order_by(FINDING.c.number))

    def _findings(self, query: Select[Any]) -> tuple[StoredFinding, ...]:
        with self.transaction() as connection:
            return tuple(StoredFinding(**row) for row in connection.execute(query).mappings())


def occurrences(fingerprint: Column[Any]) -> ScalarSelect[int]:
    """Return the subquery for the number of cases that showed a finding."""
    return select(func.count()).where(OCCURRENCE.c.fingerprint == fingerprint).scalar_subquery()


_FINDINGS = select(
    *(column for column in FINDING.columns if column.name not in ("number", "fingerprint")),
    occurrences(FINDING.c.fingerprint).label("count"),
)
_DOUBTS = select(*(column for column in DOUBT.columns if column.name not in ("number", "name")))


def add_spec_finding(store: Store, finding: Finding, shown_by: str, spec: Path) -> bool:
    """Commit a finding, or count it if its fingerprint is known; return whether it is new. Raises StoreError."""
    return _add(store, SPEC_FINDING, finding, shown_by, spec=spec)


def add_harness_finding(store: Store, finding: Finding, shown_by: str, harness: str, file: Path) -> bool:
    """Commit a finding, or count it if its fingerprint is known; return whether it is new. Raises StoreError.

    `shown_by` is the name of the input, and `file` has the smallest one.
    """
    return _add(store, HARNESS_FINDING, finding, shown_by, harness=harness, input=file)


def _add(store: Store, table: Table, finding: Finding, shown_by: str, **values: object) -> bool:
    fingerprint = finding.fingerprint
    row = {"fingerprint": fingerprint, "finding": finding, **values}
    seen = {"fingerprint": fingerprint, "case_id": shown_by}
    with store.transaction() as connection:
        added = connection.execute(insert(table).values(row).on_conflict_do_nothing())
        connection.execute(insert(OCCURRENCE).values(seen).on_conflict_do_nothing())
    return added.rowcount == 1


def spec_findings(store: Store) -> tuple[SpecFinding, ...]:
    """Return all findings of specs, in the order of their discovery. Raises StoreError."""
    count = occurrences(SPEC_FINDING.c.fingerprint)
    query = select(SPEC_FINDING.c.finding, count, SPEC_FINDING.c.spec).order_by(SPEC_FINDING.c.number)
    with store.transaction() as connection:
        return tuple(SpecFinding(*row) for row in connection.execute(query))


def harness_findings(store: Store) -> tuple[HarnessFinding, ...]:
    """Return all findings of harnesses, in the order of their discovery. Raises StoreError."""
    columns = HARNESS_FINDING.c
    query = select(columns.finding, occurrences(columns.fingerprint), columns.harness, columns.input)
    with store.transaction() as connection:
        return tuple(HarnessFinding(*row) for row in connection.execute(query.order_by(columns.number)))
