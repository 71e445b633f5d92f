"""The schema of a campaign's store: its tables, its version, and the migrations of older stores.

Change a table, or a document in a way that `fuzz.documents` cannot read, together with a migration, which stays as it
is from then on. SQLite and PostgreSQL have the same tables and versions. PostgreSQL began with version 7, so older
migrations are SQL of SQLite; newer ones run in both.
"""

from pathlib import Path
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Connection,
    Dialect,
    Float,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)
from sqlalchemy.schema import CreateTable
from sqlalchemy.types import TypeDecorator

from fuzz import documents
from fuzz.campaign.counters import Counters
from fuzz.campaign.plan import Plan
from fuzz.errors import StorageError, TransientError
from fuzz.triage.blame import Blame
from fuzz.triage.interestingness import ReducedCase
from oracles.model.case import Case
from oracles.model.feature import Feature
from oracles.model.finding import Finding


class StoreError(StorageError):
    """A store that cannot be read or written."""


class StoreUnavailable(StoreError, TransientError):
    """A store that cannot be used now."""

    passed = "the store answers again"


class StoreUnreachable(StoreUnavailable):
    """A store whose server does not answer."""


class StoreBusy(StoreUnavailable):
    """A store that other processes use for long."""


class StoreFull(StoreUnavailable):
    """A store whose disk is full."""


class _Document(TypeDecorator[Any]):
    """A document of one class, or several in a tuple, as JSON."""

    impl = Text
    cache_ok = True

    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.kind = kind

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        """Return the stored form of a document."""
        return None if value is None else documents.dumps(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """Return the document of a column. Raises DocumentError."""
        return None if value is None else documents.loads(value, self.kind)


class _Path(TypeDecorator[Path]):
    """A path."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Path | None, dialect: Dialect) -> str | None:
        """Return the stored form of a path."""
        return None if value is None else str(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Path | None:
        """Return the path of a column."""
        return None if value is None else Path(value)


_Count = BigInteger().with_variant(Integer(), "sqlite")  # SQLite's integers have 64 bits
METADATA = MetaData()
CAMPAIGN = Table(
    "campaign",
    METADATA,
    Column("only", Integer, primary_key=True, autoincrement=False),
    Column("plan", _Document(Plan), nullable=False),
    Column("arms", JSON, nullable=False, comment="arm -> build, base and series"),
    Column("canaries", JSON, comment="planted and caught, when last tried"),
    Column("counters", _Document(Counters), nullable=False),
    Column("ended", String, comment="reason for the end; null while it runs, or if it was killed"),
    Column("features", _Document(tuple[Feature, ...]), comment="of the arms"),
    Column("not_compared", JSON, comment="lines about oracles that do not judge an arm"),
)
SAMPLE = Table(
    "sample",
    METADATA,
    Column("cases", _Count, primary_key=True, autoincrement=False),
    Column("at", Float, nullable=False, comment="seconds since the epoch; displayed only"),
    Column("seconds", Float, nullable=False, comment="elapsed in all parts of the campaign"),
    Column("statements", _Count, nullable=False, comment="compared"),
    Column("shapes", _Count, nullable=False, comment="distinct plan shapes"),
    Column("findings", _Count, nullable=False, comment="distinct fingerprints"),
    Column("unstable", _Count, nullable=False, comment="verdicts"),
    Column("inconclusive", _Count, nullable=False, comment="verdicts"),
    Column("memory", _Count, nullable=False, default=0, comment="bytes; 0 before version 9, as the next columns"),
    Column("disk", _Count, nullable=False, default=0, comment="bytes of the campaign and of its servers"),
    Column("files", _Count, nullable=False, default=0, comment="open in all processes"),
    Column("edges", _Count, nullable=False, default=0, comment="reached; 0 before version 10, or if builds count none"),
)
RANGE = Table(
    "range",
    METADATA,
    Column("number", _Count, primary_key=True, autoincrement=False, comment="position in the schedule"),
    Column("done", _Count, nullable=False, comment="number of executed cases, from the first on"),
)
FINDING = Table(
    "finding",
    METADATA,
    Column("number", Integer, primary_key=True),
    Column("fingerprint", String, unique=True, nullable=False),
    Column("finding", _Document(Finding), nullable=False),
    Column("case_id", String, nullable=False),
    Column("case", _Document(Case), nullable=False, comment="the whole case"),
    Column("reproducer", _Path),
    Column("smallest", _Document(ReducedCase), comment="the reduced case, or the smallest so far"),
    Column("reduced", Boolean, nullable=False, default=False, comment="whether its reduction has ended"),
    Column("seconds", Float, comment="duration of its reduction since the start or last resumption"),
    Column("blame", _Document(Blame)),
)
OCCURRENCE = Table(
    "occurrence",
    METADATA,
    Column("fingerprint", String, primary_key=True),
    Column(
        "case_id",
        String,
        primary_key=True,
        comment="for a finding of a spec: the spec and its modes; of a harness: the input",
    ),
)
REPLAY = Table(
    "replay",
    METADATA,
    Column("fingerprint", String, primary_key=True, comment="of a finding of an earlier run, tried on these arms"),
    Column("shown", Boolean, nullable=False),
    Column("of_base", Boolean, nullable=False, comment="whether all arms show it"),
)
SPEC_FINDING = Table(
    "spec_finding",
    METADATA,
    Column("number", Integer, primary_key=True),
    Column("fingerprint", String, unique=True, nullable=False),
    Column("finding", _Document(Finding), nullable=False),
    Column("spec", _Path, nullable=False, comment="the spec that shows it"),
    Column("content", _Document(bytes), comment="of that file; null before version 8"),
)
HARNESS_FINDING = Table(
    "harness_finding",
    METADATA,
    Column("number", Integer, primary_key=True),
    Column("fingerprint", String, unique=True, nullable=False),
    Column("finding", _Document(Finding), nullable=False),
    Column("harness", String, nullable=False),
    Column("input", _Path, nullable=False, comment="the input that shows it"),
    Column("content", _Document(bytes), comment="of that file; null before version 8"),
)
DOUBT = Table(
    "doubt",
    METADATA,
    Column("number", Integer, primary_key=True),
    Column("name", String, unique=True, nullable=False),
    Column("oracle", String, nullable=False),
    Column("kind", String, nullable=False, comment="inconclusive or unstable"),
    Column("reason", String, nullable=False),
    Column("case_id", String, nullable=False),
    Column("case", _Document(Case), nullable=False),
    Column("step", Integer, comment="position of the step in question"),
    Column("sides", JSON, nullable=False, comment="what was expected and seen"),
    Column("outcome", String, nullable=False, comment="of later tries"),
)

# Version 0 had a table for each part of a finding, because it could only add tables. The oldest stores lack some.
_TO_1 = (
    "ALTER TABLE campaign RENAME COLUMN options TO plan",
    "ALTER TABLE campaign RENAME COLUMN tally TO counters",
    "CREATE TABLE IF NOT EXISTS beside (fingerprint, queries)",
    "CREATE TABLE IF NOT EXISTS vote (fingerprint, suspect, agreeing)",
    'CREATE TABLE IF NOT EXISTS smallest (fingerprint, "case", finding, shown, runs)',
    "CREATE TABLE IF NOT EXISTS reduction (fingerprint)",
    "CREATE TABLE IF NOT EXISTS effort (fingerprint, seconds)",
    "CREATE TABLE IF NOT EXISTS blame (fingerprint, told)",
    """CREATE TABLE IF NOT EXISTS spec_finding (
        number INTEGER NOT NULL PRIMARY KEY,
        fingerprint VARCHAR NOT NULL UNIQUE,
        finding JSON NOT NULL,
        spec TEXT NOT NULL)""",
    "ALTER TABLE finding RENAME TO finding_0",
    """CREATE TABLE finding (
        number INTEGER NOT NULL PRIMARY KEY,
        fingerprint VARCHAR NOT NULL UNIQUE,
        finding TEXT NOT NULL,
        case_id VARCHAR NOT NULL,
        "case" TEXT NOT NULL,
        reproducer TEXT,
        smallest TEXT,
        reduced BOOLEAN NOT NULL,
        seconds FLOAT,
        blame TEXT)""",
    """INSERT INTO finding
    SELECT f.number, f.fingerprint,
        json_object(
            'oracle', f.oracle,
            'arms', json_array(f.expected_arm, f.suspect_arm),
            'origin', f.origin,
            'step', f.step,
            'summary', f.summary,
            'expected', f.expected,
            'actual', f.actual,
            'beside', json(coalesce(b.queries, '[]')),
            'vote', json(iif(
                v.suspect IS NULL, NULL, json_object('suspect', v.suspect, 'agreeing', json(v.agreeing))))),
        f.case_id, f."case", f.reproducer,
        iif(s.runs IS NULL, NULL, json_object(
            'case', json(s."case"), 'finding', json(s.finding), 'shown', s.shown, 'runs', s.runs)),
        f.fingerprint IN (SELECT fingerprint FROM reduction), e.seconds, t.told
    FROM finding_0 AS f
    LEFT JOIN beside AS b USING (fingerprint)
    LEFT JOIN vote AS v USING (fingerprint)
    LEFT JOIN smallest AS s USING (fingerprint)
    LEFT JOIN effort AS e USING (fingerprint)
    LEFT JOIN blame AS t USING (fingerprint)""",
    *(f"DROP TABLE {name}" for name in ("finding_0", "beside", "vote", "smallest", "reduction", "effort", "blame")),
)
_TO_2 = (
    """CREATE TABLE doubt (
        number INTEGER NOT NULL PRIMARY KEY,
        name VARCHAR NOT NULL UNIQUE,
        oracle VARCHAR NOT NULL,
        kind VARCHAR NOT NULL,
        reason VARCHAR NOT NULL,
        case_id VARCHAR NOT NULL,
        "case" TEXT NOT NULL,
        step INTEGER,
        sides JSON NOT NULL,
        outcome VARCHAR NOT NULL)""",
)
# Plans have weights. Older versions would ignore them, and resume a campaign with other cases.
_TO_3 = (
    """UPDATE campaign SET plan = json_set(
        plan, '$.generators', json((SELECT json_group_object(value, 1) FROM json_each(plan, '$.generators'))))""",
)
# Findings have `evidence` instead of `beside`, whose queries have `simple_protocol` instead of `plainly`. In a string,
# JSON escapes the quotes of a name.
_RENAMED = """json_set(
    json_remove({0}, '$.beside'),
    '$.evidence', json(replace(json_extract({0}, '$.beside'), '"plainly":', '"simple_protocol":')))"""
_TO_4 = (
    *(
        f"UPDATE {table} SET finding = {_RENAMED.format('finding')} WHERE json_extract(finding, '$.beside') IS NOT NULL"
        for table in ("finding", "spec_finding")
    ),
    f"""UPDATE finding
        SET smallest = json_set(smallest, '$.finding', {_RENAMED.format("json_extract(smallest, '$.finding')")})
        WHERE json_extract(smallest, '$.finding.beside') IS NOT NULL""",
)
_TO_5 = (
    "ALTER TABLE campaign ADD COLUMN ended VARCHAR",
    "ALTER TABLE campaign ADD COLUMN features TEXT",
    "ALTER TABLE campaign ADD COLUMN not_compared JSON",
    """CREATE TABLE sample (
        cases INTEGER NOT NULL PRIMARY KEY,
        at FLOAT NOT NULL,
        seconds FLOAT NOT NULL,
        statements INTEGER NOT NULL,
        shapes INTEGER NOT NULL,
        findings INTEGER NOT NULL,
        unstable INTEGER NOT NULL,
        inconclusive INTEGER NOT NULL)""",
)
_TO_6 = (
    """CREATE TABLE replay (
        fingerprint VARCHAR NOT NULL PRIMARY KEY,
        shown BOOLEAN NOT NULL,
        of_base BOOLEAN NOT NULL)""",
)
_TO_7 = (
    """CREATE TABLE harness_finding (
        number INTEGER NOT NULL PRIMARY KEY,
        fingerprint VARCHAR NOT NULL UNIQUE,
        finding TEXT NOT NULL,
        harness VARCHAR NOT NULL,
        input TEXT NOT NULL)""",
)
_TO_8 = (
    "ALTER TABLE spec_finding ADD COLUMN content TEXT",
    "ALTER TABLE harness_finding ADD COLUMN content TEXT",
)
_TO_9 = tuple(f"ALTER TABLE sample ADD COLUMN {name} BIGINT NOT NULL DEFAULT 0" for name in ("memory", "disk", "files"))
_TO_10 = ("ALTER TABLE sample ADD COLUMN edges BIGINT NOT NULL DEFAULT 0",)
_MIGRATIONS = (_TO_1, _TO_2, _TO_3, _TO_4, _TO_5, _TO_6, _TO_7, _TO_8, _TO_9, _TO_10)  # to version 1, 2 ...
VERSION = len(_MIGRATIONS)


def require_readable(version: int, name: str) -> None:
    """Raise StoreError if a newer pgduel wrote the store."""
    if version > VERSION:
        raise StoreError(
            f"the store {name} has version {version}, this pgduel reads versions up to {VERSION}; "
            "use the newer pgduel that wrote it"
        )


def create_tables(connection: Connection) -> None:
    """Create the tables of the present version, except those that exist."""
    for table in METADATA.sorted_tables:
        connection.execute(CreateTable(table, if_not_exists=True))


def migrate(connection: Connection, version: int) -> None:
    """Change the tables of an older version to the present one."""
    for migration in _MIGRATIONS[version:]:
        for statement in migration:
            connection.exec_driver_sql(statement)
