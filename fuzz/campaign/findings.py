"""Reading of findings from the store."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, func, select

from fuzz.campaign import case_json
from fuzz.campaign.finding_json import beside_of, finding_of
from fuzz.campaign.tables import BESIDE, BLAME, EFFORT, FINDING, OCCURRENCE, REDUCTION, SMALLEST, VOTE
from fuzz.triage.blame import Blame
from fuzz.triage.reduced_case import ReducedCase
from fuzz.triage.stored_finding import StoredFinding
from oracles.model.finding import Finding, Vote

_SMALLEST = [
    column.label(f"smallest_{column.name}") for column in SMALLEST.columns if column is not SMALLEST.c.fingerprint
]


def read_findings(connection: Connection) -> tuple[StoredFinding, ...]:
    """Return all findings, in the order in which they came."""
    counts = select(OCCURRENCE.c.fingerprint, func.count().label("count")).group_by(OCCURRENCE.c.fingerprint)
    counted = counts.subquery()
    reduced = FINDING.c.fingerprint.in_(select(REDUCTION.c.fingerprint)).label("reduced")
    query = select(
        FINDING,
        counted.c.count,
        reduced,
        BESIDE.c.queries,
        BLAME.c.told,
        VOTE.c.suspect,
        VOTE.c.agreeing,
        EFFORT.c.seconds,
        *_SMALLEST,
    )
    query = query.join(counted, FINDING.c.fingerprint == counted.c.fingerprint)
    for more in (BESIDE, VOTE, SMALLEST, BLAME, EFFORT):
        query = query.join(more, FINDING.c.fingerprint == more.c.fingerprint, isouter=True)
    rows = connection.execute(query.order_by(FINDING.c.number)).mappings().all()
    return tuple(_stored(dict(row)) for row in rows)


def _stored(row: Mapping[str, Any]) -> StoredFinding:
    finding = Finding(
        oracle=row["oracle"],
        arms=(row["expected_arm"], row["suspect_arm"]),
        origin=row["origin"],
        step=row["step"],
        summary=row["summary"],
        expected=row["expected"],
        actual=row["actual"],
        beside=beside_of(row["queries"] or ()),
        vote=None if row["suspect"] is None else Vote(row["suspect"], tuple(row["agreeing"])),
    )
    reproducer = None if row["reproducer"] is None else Path(row["reproducer"])
    case = case_json.loads(row["case"])
    blame = None if row["told"] is None else Blame.from_json(row["told"])
    return StoredFinding(
        finding,
        row["case_id"],
        case,
        row["count"],
        reproducer,
        bool(row["reduced"]),
        _smallest_of(row),
        blame,
        row["seconds"],
    )


def _smallest_of(row: Mapping[str, Any]) -> ReducedCase | None:
    if row["smallest_runs"] is None:  # nothing smaller was found, or it was before that was recorded
        return None
    finding = finding_of(row["smallest_finding"])
    return ReducedCase(case_json.loads(row["smallest_case"]), finding, row["smallest_shown"], row["smallest_runs"])
