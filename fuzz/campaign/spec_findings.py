"""Findings of isolation specs: of several sessions, so no case has them, and nothing reduces or replays them as one."""

from dataclasses import asdict, dataclass
from pathlib import Path

from sqlalchemy import func, select
from sqlalchemy.dialects.sqlite import insert

from fuzz.campaign.finding_json import finding_of
from fuzz.campaign.store import Store
from fuzz.campaign.tables import OCCURRENCE, SPEC_FINDING
from oracles.model.finding import Finding


@dataclass(frozen=True, slots=True)
class SpecFinding:
    """A finding, how many specs and modes showed it, and the file that has the first of them."""

    finding: Finding
    count: int
    spec: Path


def add_spec_finding(store: Store, finding: Finding, shown_by: str, spec: Path) -> bool:
    """Commit a finding, or count it where its fingerprint is known. True if new. Raises StoreError."""
    fingerprint = finding.fingerprint
    row = {"fingerprint": fingerprint, "finding": asdict(finding), "spec": str(spec)}
    seen = {"fingerprint": fingerprint, "case_id": shown_by}
    with store.transaction() as connection:
        added = connection.execute(insert(SPEC_FINDING).values(row).on_conflict_do_nothing())
        connection.execute(insert(OCCURRENCE).values(seen).on_conflict_do_nothing())
    return added.rowcount == 1


def spec_findings(store: Store) -> tuple[SpecFinding, ...]:
    """Return all findings of specs, in the order in which they came. Raises StoreError."""
    of_it = OCCURRENCE.c.fingerprint == SPEC_FINDING.c.fingerprint
    count = select(func.count()).where(of_it).scalar_subquery()
    query = select(SPEC_FINDING.c.finding, count, SPEC_FINDING.c.spec).order_by(SPEC_FINDING.c.number)
    with store.transaction() as connection:
        rows = connection.execute(query).all()
    return tuple(SpecFinding(finding_of(told), number, Path(spec)) for told, number, spec in rows)
