"""Turns of `concurrent_changes` about the target's row in pg_class, which PostgreSQL locks before it updates it.

Other rows need no such lock: pg_class is updated in place, too (src/backend/access/heap/README.tuplock). The statements
keep all values. An InitPlan lets the other session act, because catalogs have no triggers.
"""

import random
from typing import Final

from fuzz.generators.choices import pick
from fuzz.generators.concurrent_changes.scene import TARGET, Scene
from fuzz.generators.loopback import PENDING
from oracles.model.case import Step

_ROW: Final = f"x.oid = '{TARGET}'::regclass"
_ACTS: Final = "(SELECT elsewhere_pending()) = 0"
_MERGED: Final = (
    f"MERGE INTO pg_class AS x USING (SELECT 1 AS one) AS y ON {_ROW} AND {_ACTS} WHEN MATCHED {{}} RETURNING x.relname"
)
_STATEMENTS: Final = (
    f"UPDATE pg_class AS x SET relpages = x.relpages WHERE {_ROW} AND {_ACTS} RETURNING x.relname",
    _MERGED.format("AND x.relkind <> 'v' THEN UPDATE SET relpages = x.relpages"),
    _MERGED.format("THEN UPDATE SET relpages = x.relpages"),
    _MERGED.format("THEN DO NOTHING"),
)
_OTHERS: Final = (f"UPDATE pg_class AS x SET relpages = x.relpages WHERE {_ROW}", "")


def catalog_turn(rng: random.Random, _scene: Scene, _number: int) -> list[Step]:
    """Return a change of the row that the other session may have updated."""
    return [
        Step(f"SET {PENDING} = $s${pick(rng, _OTHERS)}$s$"),
        Step("BEGIN"),
        Step(pick(rng, _STATEMENTS), tags=("catalog",)),
        Step("ROLLBACK"),
        Step(f"SET {PENDING} = ''"),
    ]
