"""Findings of isolation specs. These have several sessions, so there is no case to reduce or replay."""

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.dialects.sqlite import insert

from fuzz.campaign.schema import OCCURRENCE, SPEC_FINDING
from fuzz.campaign.store import Store, occurrences
from oracles.model.finding import Finding


@dataclass(frozen=True, slots=True)
class SpecFinding:
    """A finding, the number of specs and modes that showed it, and the file with the first spec."""

    finding: Finding
    count: int
    spec: Path


def add_spec_finding(store: Store, finding: Finding, shown_by: str, spec: Path) -> bool:
    """Commit a finding, or count it if its fingerprint is known; return whether it is new. Raises StoreError."""
    fingerprint = finding.fingerprint
    row = {"fingerprint": fingerprint, "finding": finding, "spec": spec}
    seen = {"fingerprint": fingerprint, "case_id": shown_by}
    with store.transaction() as connection:
        added = connection.execute(insert(SPEC_FINDING).values(row).on_conflict_do_nothing())
        connection.execute(insert(OCCURRENCE).values(seen).on_conflict_do_nothing())
    return added.rowcount == 1


def spec_findings(store: Store) -> tuple[SpecFinding, ...]:
    """Return all findings of specs, in the order of their discovery. Raises StoreError."""
    count = occurrences(SPEC_FINDING.c.fingerprint)
    query = select(SPEC_FINDING.c.finding, count, SPEC_FINDING.c.spec).order_by(SPEC_FINDING.c.number)
    with store.transaction() as connection:
        return tuple(SpecFinding(*row) for row in connection.execute(query))
