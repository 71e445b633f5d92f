"""Joining reduction, which knows nothing of oracles, to the oracle whose finding is reduced."""

from collections.abc import Sequence
from pathlib import Path

from fuzz.campaign.store import StoredFinding
from fuzz.errors import CaseError
from fuzz.execution.stage import Stage
from fuzz.servers.arm import Arm


def reduce_stored(stage: Stage, arms: Sequence[Arm], found: StoredFinding, directory: Path) -> Path:
    """Reduce."""
    raise CaseError("not there yet")
