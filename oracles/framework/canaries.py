"""The scene of canaries.

The fault injector acts on statements that mention the view `canary`, so the table below keeps its rows.
"""

from typing import Final

from oracles.model.case import Case, Kind, Step
from oracles.model.mode import Mode
from oracles.model.oracle import Sample

_SCENE: Final = (
    Step("CREATE TABLE flock (n integer, name text)"),
    Step("INSERT INTO flock SELECT n, 'bird ' || n FROM generate_series(1, 4) AS n"),
    Step("CREATE VIEW canary AS SELECT n, name FROM flock"),
    Step("CREATE TABLE nest (n integer, name text)"),
)


def canary_case(*steps: Step, modes: tuple[Mode, ...] = (), samples: tuple[Sample, ...] = ()) -> Case:
    """Return a case over `canary` (n 1 to 4, name) and the empty table `nest` (same columns)."""
    return Case("canary", _SCENE, steps, modes, samples=tuple(sample.name for sample in samples))


def query(sql: str, *, may_fail: bool = False) -> Step:
    """Return a step that only reads."""
    return Step(sql, Kind.QUERY, may_fail=may_fail)
