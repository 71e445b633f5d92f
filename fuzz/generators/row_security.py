"""Row security for a case's tables, with policies that every row meets.

The rows of a query are the same as without. But its security quals come first: leaky conditions are neither pushed down
nor used by indexes (src/backend/utils/adt/selfuncs.c, src/backend/optimizer/util/restrictinfo.c).
"""

import random
import re
from dataclasses import replace
from typing import Final

from fuzz.generators.choices import chance
from oracles.model.case import Case, Step

_TABLE: Final = re.compile(r'CREATE (?:UNLOGGED )?TABLE ((?:\w|"[^"]*")+) \(', re.IGNORECASE)
_SHARE: Final = 70  # percent of the tables


def with_row_security(rng: random.Random, case: Case) -> Case:
    """Return the case with row security on some tables of its scene, enforced for their owner, too.

    The case itself if it copies rows into tables after the scene, which row security forbids.
    """
    if any(step.copy_data is not None for step in case.steps):
        return case
    tables = [found[1] for step in case.scene if (found := _TABLE.match(step.sql))]
    secured = [step for table in tables if chance(rng, _SHARE) for step in _secured(table)]
    return replace(case, scene=(*case.scene, *secured))


def _secured(table: str) -> tuple[Step, ...]:
    """Return the steps that enable row security. A row is always distinct from NULL, even one of NULLs."""
    return (
        Step(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"),
        Step(f"CREATE POLICY every_row ON {table} USING ({table}.* IS DISTINCT FROM NULL)"),
    )
