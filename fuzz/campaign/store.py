"""Store: one database per campaign. Findings are committed there before anything else is done with them.

Several processes write to it: each worker its findings, the campaign its progress. No result is kept in memory only.
Each method has one transaction, which may be repeated: after a loss of the connection, nobody knows whether its commit
succeeded.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    Column,
    Executable,
    RowMapping,
    ScalarSelect,
    Select,
    Table,
    delete,
    func,
    literal,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError

from fuzz import workdir
from fuzz.campaign.counters import KINDS, Counters, ProgressPoint
from fuzz.campaign.database import Database, Say, database_of, outlasted
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
)
from fuzz.documents import DocumentError
from fuzz.errors import CaseError
from fuzz.triage.blame import Blame
from fuzz.triage.findings import StoredFinding
from fuzz.triage.interestingness import ReducedCase
from fuzz.triage.replays import ReplayResult
from oracles.model.case import Case
from oracles.model.feature import Feature
from oracles.model.finding import Finding
from oracles.model.oracle import Inconclusive, Unstable

KEPT = 10  # doubts of one oracle, kind and reason: more are counted only

_COUNTING = {"preserve_rowcount": True}  # for insertions, too
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class StoredDoubt:
    """A case that an oracle could not decide, with the step in question and both sides where the oracle gave them.

    The only step of the case is the text of a spec if the comparison of isolation specs could not decide.
    """

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


@dataclass(frozen=True, slots=True)
class DoubtRecord:
    """A stored doubt without its case, which is much larger."""

    name: str
    oracle: str
    kind: str  # inconclusive or unstable
    reason: str
    case_id: str
    step: int | None
    outcome: str  # of later tries; "" before them


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

    def __init__(self, directory: Path, say: Say | None = None, database: Database | None = None) -> None:
        """Open or create the store. With `say`, each method outlasts a restart of its server, as `outlasted` does.

        `database` is another one than that of the directory. Raises StoreError, as all methods do.
        """
        self.directory = directory
        self._say = say
        self._database = database or database_of(directory)
        try:
            self._repeated(self._database.prepare)
        except StoreError:
            self.close()
            raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Convert the database's exceptions into StoreError."""
        try:
            yield
        except SQLAlchemyError as error:
            raise self._database.error(error) from error
        except DocumentError as error:
            raise StoreError(f"the store {self._database.name} is damaged: {error}") from error

    def _repeated(self, work: Callable[[], _Result]) -> _Result:
        """Return the result of `work`, which is repeated after a loss of the connection."""

        def tried() -> _Result:
            with self._errors():
                return work()

        return outlasted(tried, self._say)

    def read(self, query: Select[Any]) -> Sequence[RowMapping]:
        """Return the rows of a query."""

        def fetch() -> Sequence[RowMapping]:
            with self._database.reading() as connection:
                return connection.execute(query).mappings().all()

        return self._repeated(fetch)

    def write(self, *statements: Executable) -> bool:
        """Execute statements in one transaction, and return whether the last one changed a row."""
        changed = False

        def execute() -> None:
            nonlocal changed
            with self._database.begin() as connection:
                results = [connection.execute(each, execution_options=_COUNTING) for each in statements]
                changed = changed or results[-1].rowcount > 0  # a repeated insertion may find its own row, which is new

        self._repeated(execute)
        return changed

    def new(self, table: Table, **values: object) -> postgresql.Insert | sqlite.Insert:
        """Return the statement that inserts a row unless there is one with its key."""
        return self._database.insert(table).values(values).on_conflict_do_nothing()

    def close(self) -> None:
        """Close the database's connections."""
        self._database.close()

    def begin(self, plan: Plan, arms: Mapping[str, Any], last_seed: Callable[[], int] | None = None) -> None:
        """Record plan and arms of a new campaign; a resumed one keeps its plan and counts.

        With `last_seed`, which returns the highest seed of earlier campaigns, a new campaign gets a higher one. Of
        campaigns that begin at the same time, one after the other calls it.
        In a shared store, raises StoreError if another process runs this campaign, or a campaign of its name.
        """
        self._repeated(lambda: self._database.claim(*filter(None, [plan.name])))
        with workdir.writing(self.directory):
            self.directory.mkdir(exist_ok=True)  # a shared campaign may have begun on another machine
        row = {"only": 1, "arms": dict(arms), "counters": Counters()}
        if last_seed is None:
            self.write(self.new(CAMPAIGN, plan=plan, **row))
            return

        def begin_with_new_seed() -> None:
            with self._database.in_turn() as connection:
                seed = max(plan.seed, last_seed() + 1)
                connection.execute(self.new(CAMPAIGN, plan=replace(plan, seed=seed), **row))

        self._repeated(begin_with_new_seed)

    def _field(self, name: str) -> Any:
        return next((row[name] for row in self.read(select(CAMPAIGN.c[name]))), None)

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
        self.write(update(CAMPAIGN).values(canaries=dict(counts)))

    @property
    def counters(self) -> Counters:
        """Return the campaign's counters."""
        counters: Counters | None = self._field("counters")
        return counters or Counters()

    def record_start(self, features: Sequence[Feature], not_compared: Sequence[str]) -> None:
        """Record the arms' features, and the lines about oracles that do not judge an arm; forget an earlier end."""
        values = {"features": tuple(features), "not_compared": list(not_compared), "ended": None}
        self.write(update(CAMPAIGN).values(values))

    def record_end(self, why: str) -> None:
        """Record the reason for the campaign's end."""
        self.write(update(CAMPAIGN).values(ended=why))

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
        return tuple(ProgressPoint(**row) for row in self.read(select(SAMPLE).order_by(SAMPLE.c.cases)))

    def last_sample(self) -> ProgressPoint | None:
        """Return the last sample of progress, or None. At the end it has the counters, before a few cases less."""
        rows = self.read(select(SAMPLE).order_by(SAMPLE.c.cases.desc()).limit(1))
        return next((ProgressPoint(**row) for row in rows), None)

    def progress(self, counters: Counters, done: Mapping[int, int], samples: Sequence[ProgressPoint] = ()) -> None:
        """Record counters, ranges (number -> total of executed cases) and samples, in one transaction.

        The last sample replaces one of as many cases: cases that are abandoned at the end may reach edges, too.
        """
        latest = {sample.cases: sample for sample in samples}
        ranges = (self._database.insert(RANGE).values(number=number, done=cases) for number, cases in done.items())
        self.write(
            *(delete(SAMPLE).where(SAMPLE.c.cases == sample.cases) for sample in samples[-1:]),
            *(self.new(SAMPLE, **asdict(sample)) for sample in latest.values()),
            *(
                each.on_conflict_do_update(index_elements=["number"], set_={"done": each.excluded.done})
                for each in ranges
            ),
            update(CAMPAIGN).values(counters=counters),
        )

    def done(self) -> dict[int, int]:
        """Return the number of executed cases by range number."""
        return {row["number"]: row["done"] for row in self.read(select(RANGE))}

    def add_finding(self, finding: Finding, case_id: str, case: Case) -> bool:
        """Commit a finding, or count it if its fingerprint is known; return whether it is new.

        A case counts once for each finding.
        """
        return add(self, FINDING, finding, case_id, case_id=case_id, case=case)

    def take_over(self, found: StoredFinding) -> None:
        """Record a finding of an earlier run, to be reduced and blamed. It has no case here until one shows it."""
        kept = ("finding", "case_id", "case", "reproducer", "smallest", "reduced", "seconds", "blame")
        values = {name: getattr(found, name) for name in kept}
        self.write(self.new(FINDING, fingerprint=found.finding.fingerprint, **values))

    def replace_case(self, finding: Finding, case_id: str, case: Case) -> None:
        """Record another case of a finding in place of its case, to be reduced and blamed anew."""
        values = {"finding": finding, "case_id": case_id, "case": case}
        self._update(finding.fingerprint, **values, smallest=None, reduced=False, blame=None, seconds=None)

    def add_doubt(self, doubt: StoredDoubt) -> bool:
        """Commit a doubt unless it is known, or the store has enough of its kind. Returns whether it was committed."""
        row = {"name": doubt.name} | {each.name: getattr(doubt, each.name) for each in fields(doubt)}
        alike = (DOUBT.c[name] == row[name] for name in ("oracle", "kind", "reason"))
        stored = select(func.count().label("count")).where(*alike)
        if self.read(stored)[0]["count"] >= KEPT:  # of most doubts; without a lock, for which all workers would wait
            return False
        values = (literal(value, DOUBT.c[name].type) for name, value in row.items())
        unless_enough = select(*values).where(stored.scalar_subquery() < KEPT)
        insertion = self._database.insert(DOUBT).from_select([*row], unless_enough).on_conflict_do_nothing()
        return self.write(*self._database.locking(DOUBT), insertion)

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
        rows = self.read(query.order_by(DOUBT.c.number))
        return tuple(StoredDoubt(**row | {"sides": tuple(row["sides"])}) for row in map(dict, rows))

    def doubt_records(self) -> tuple[DoubtRecord, ...]:
        """Return all doubts without their cases, in the order in which they came."""
        columns = (DOUBT.c[each.name] for each in fields(DoubtRecord))
        return tuple(DoubtRecord(**row) for row in self.read(select(*columns).order_by(DOUBT.c.number)))

    def tried_again(self, name: str, outcome: str) -> None:
        """Record the outcome of later tries of a doubt."""
        self.write(update(DOUBT).where(DOUBT.c.name == name).values(outcome=outcome))

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
        self.write(update(FINDING).where(FINDING.c.fingerprint == fingerprint).values(values))

    def record_replay(self, outcome: ReplayResult) -> None:
        """Record the outcome of a finding of an earlier run on these arms."""
        self.write(self.new(REPLAY, **asdict(outcome)))

    def replays(self) -> tuple[ReplayResult, ...]:
        """Return the outcomes of findings of earlier runs, by fingerprint."""
        return tuple(ReplayResult(**row) for row in self.read(select(REPLAY).order_by(REPLAY.c.fingerprint)))

    @property
    def database_size(self) -> int:
        """Return the bytes on disk of the campaign's tables in a shared database; 0 if they are in a file."""
        return self._repeated(self._database.size)

    def drop_details(self) -> None:
        """Delete doubts, and all samples but the last, and return their space to the disk.

        A store that has none is not rewritten.
        """
        last = select(func.max(SAMPLE.c.cases)).scalar_subquery()
        earlier = SAMPLE.c.cases < last
        if not (
            self.read(select(DOUBT.c.number).limit(1)) or self.read(select(SAMPLE.c.cases).where(earlier).limit(1))
        ):
            return
        self.write(delete(DOUBT), delete(SAMPLE).where(earlier))
        self._repeated(lambda: self._database.vacuum(DOUBT, SAMPLE))

    def finding(self, fingerprint: str) -> StoredFinding:
        """Return a finding of the store by its fingerprint."""
        (found,) = self._findings(_FINDINGS.where(FINDING.c.fingerprint == fingerprint))
        return found

    def findings(self) -> tuple[StoredFinding, ...]:
        """Return all findings, in the order of their discovery."""
        return self._findings(_FINDINGS.order_by(FINDING.c.number))

    def _findings(self, query: Select[Any]) -> tuple[StoredFinding, ...]:
        return tuple(self._known_here(StoredFinding(**row)) for row in self.read(query))

    def _known_here(self, found: StoredFinding) -> StoredFinding:
        """Return a finding without its script if that is on another machine. Its statements are in the store."""
        elsewhere = self._database.is_shared and not os.path.isfile(found.reproducer or "")
        return replace(found, reproducer=None) if elsewhere else found


def occurrences(fingerprint: Column[Any]) -> ScalarSelect[int]:
    """Return the subquery for the number of cases that showed a finding."""
    return select(func.count()).where(OCCURRENCE.c.fingerprint == fingerprint).scalar_subquery()


_FINDINGS = select(
    *(column for column in FINDING.columns if column.name not in ("number", "fingerprint")),
    occurrences(FINDING.c.fingerprint).label("count"),
)
_DOUBTS = select(*(column for column in DOUBT.columns if column.name not in ("number", "name")))


def add(store: Store, table: Table, finding: Finding, shown_by: str, **values: object) -> bool:
    """Commit a finding, or count it if its fingerprint is known; return whether it is new. Raises StoreError."""
    fingerprint = finding.fingerprint
    return store.write(
        store.new(OCCURRENCE, fingerprint=fingerprint, case_id=shown_by),
        store.new(table, fingerprint=fingerprint, finding=finding, **values),
    )


def add_spec_finding(store: Store, finding: Finding, shown_by: str, spec: Path, content: bytes) -> bool:
    """Commit a finding, or count it if its fingerprint is known; return whether it is new. Raises StoreError.

    `spec` is the path of a file with this content.
    """
    return add(store, SPEC_FINDING, finding, shown_by, spec=spec, content=content)


def add_harness_finding(
    store: Store, finding: Finding, shown_by: str, harness: str, file: Path, content: bytes
) -> bool:
    """Commit a finding, or count it if its fingerprint is known; return whether it is new. Raises StoreError.

    `shown_by` is the name of the input, and `file` has the smallest one, whose bytes are `content`.
    """
    return add(store, HARNESS_FINDING, finding, shown_by, harness=harness, input=file, content=content)


def record_input(store: Store, fingerprint: str, content: bytes) -> None:
    """Record a smaller input of a finding of a harness. Raises StoreError."""
    store.write(update(HARNESS_FINDING).where(HARNESS_FINDING.c.fingerprint == fingerprint).values(content=content))


def spec_findings(store: Store) -> tuple[SpecFinding, ...]:
    """Return all findings of specs, in the order of their discovery. Raises StorageError."""
    return tuple(
        SpecFinding(row["finding"], row["count"], _file_here(store, row["spec"], row["content"]))
        for row in _of_files(store, SPEC_FINDING)
    )


def spec_file(doubt: StoredDoubt) -> str:
    """Return the name of the file with the isolation spec of a doubt."""
    return f"{doubt.name}.spec"


def spec_of_doubt(store: Store, doubt: StoredDoubt) -> Path:
    """Return the file with the isolation spec of a doubt, whose case has its text as only step."""
    (spec,) = doubt.case.steps
    return _file_here(store, store.directory / spec_file(doubt), spec.sql.encode())


def harness_findings(store: Store) -> tuple[HarnessFinding, ...]:
    """Return all findings of harnesses, in the order of their discovery. Raises StorageError."""
    return tuple(
        HarnessFinding(row["finding"], row["count"], row["harness"], _file_here(store, row["input"], row["content"]))
        for row in _of_files(store, HARNESS_FINDING)
    )


def _of_files(store: Store, table: Table) -> Sequence[RowMapping]:
    count = occurrences(table.c.fingerprint).label("count")
    return store.read(select(*table.columns, count).order_by(table.c.number))


def _file_here(store: Store, path: Path, content: bytes | None) -> Path:
    """Return the path of a finding's file. If this machine lacks it, it is written from the store."""
    if content is None or os.path.isfile(path):
        return path
    here = store.directory / path.name
    if not here.exists():
        with workdir.writing(store.directory):
            store.directory.mkdir(exist_ok=True)
        workdir.write(here, content)
    return here
