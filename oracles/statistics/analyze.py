"""Analysis: what one ANALYZE made of a relation, all that it could have seen, and what it said on its way."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy
import numpy.typing

from oracles.framework.difference_text import row_values
from oracles.model.observation import Observation
from oracles.statistics.remote_sql import Asked, samples

Numbers = numpy.typing.NDArray[numpy.int64]

_NAME: Final = r'"(?:[^".]+\.)?(?P<name>[^"]+)"'
_BEGINS: Final = re.compile(rf"analyzing {_NAME}(?P<tree> inheritance tree)?")
_FAR: Final = re.compile(rf"{_NAME}: table contains (?P<total>\d+) rows, (?P<kept>\d+) rows in sample")
_NEAR: Final = re.compile(
    rf"{_NAME}: scanned (?P<scanned>\d+) of (?P<pages>\d+) pages, .*; (?P<kept>\d+) rows in sample, (?P<total>\d+) .*"
)


@dataclass(frozen=True, slots=True)
class Acquired:
    """The rows that ANALYZE got of one table: how many it kept, of how many it believes there are."""

    table: str
    kept: int
    total: float
    whole: bool = True  # no block of a local table was left out


@dataclass(frozen=True, slots=True)
class Column:
    """A column's values and statistics; ranks number its values, in their order, from 1 on, in each row (0: NULL)."""

    name: str
    ranks: Numbers
    values: tuple[str, ...]
    widest: int  # bytes of the longest value, as text
    null_frac: float | None = None  # None: there are no statistics
    n_distinct: float = 0.0
    common: tuple[str, ...] = ()
    frequencies: tuple[float, ...] = ()
    bounds: tuple[str, ...] = ()
    correlation: float | None = None


@dataclass(frozen=True, slots=True)
class Analysis:
    """A relation, its rows in the order of a scan, and what ANALYZE stored about it.

    `quoted` is what the remote catalogs say of its number of rows; they are `current` where that must be right.
    """

    remote: str | None  # what a foreign table stands for; None: it is a tree of tables
    method: str | None  # of analyze_sampling
    wanted: int  # rows that ANALYZE wants to keep
    rows: int
    estimate: float
    quoted: float
    current: bool
    blocks: Numbers | None  # of each row, numbered from 1 on; None: not stored over there
    members: tuple[str, ...]  # the table that each row is in; empty where there is one only
    columns: tuple[Column, ...]
    acquired: tuple[Acquired, ...] = ()
    asked: Mapping[str, Asked] = field(default_factory=dict)  # by remote relation

    @property
    def sample(self) -> Asked | None:
        """Return what was asked for of the foreign table that this is."""
        return self.asked.get(self.remote) if self.remote else None


def analysis(table: str, analyzed: Observation, told: Observation, remote: Sequence[str]) -> Analysis | None:
    """Return the analysis of a table; None if ANALYZE did not do it.

    `analyzed` is what ANALYZE VERBOSE did, `told` what pgduel_tools.analyzed returned, and `remote` what the remote
    sessions logged meanwhile.
    """
    row = row_values(told.rows[0]) if told.rows else None
    if row is None or None in row:
        return None
    facts, seen = (json.loads(value or b"null") for value in row)
    acquired = _acquired(table, analyzed, tree=facts["remote"] is None)
    if not acquired:
        return None
    blocks, rows = seen["blocks"], seen["rows"]
    current = facts["current"] and _alike(facts["quoted"], rows) and _alike(facts["quoted_parts"], rows)
    return Analysis(
        facts["remote"],
        facts["method"],
        facts["wanted"],
        rows,
        facts["estimate"],
        facts["quoted"],
        bool(current),
        None if blocks is None else numpy.array(blocks, dtype=numpy.int64),
        tuple(seen["members"] or ()),
        tuple(map(_column, seen["columns"])),
        acquired,
        {asked.relation: asked for asked in samples(_first_transaction(remote))},
    )


def _column(told: Mapping[str, Any]) -> Column:
    return Column(
        told["name"],
        numpy.array(told["ranks"] or (), dtype=numpy.int64),
        tuple(told["values"] or ()),
        told["widest"] or 0,
        told["null_frac"],
        told["n_distinct"] or 0.0,
        tuple(told["common"] or ()),
        tuple(told["frequencies"] or ()),
        tuple(told["bounds"] or ()),
        told["correlation"],
    )


def _acquired(table: str, analyzed: Observation, *, tree: bool) -> tuple[Acquired, ...]:
    """Return what ANALYZE got for a table's statistics: those of its tree, if it has one.

    A parent's own rows, and those of its partitions, are analyzed by themselves besides.
    """
    found: list[Acquired] = []
    own = False
    for message in analyzed.messages:
        line = message.text.partition("\n")[0]
        if begins := _BEGINS.fullmatch(line):
            own = begins["name"] == table and bool(begins["tree"]) == tree
        elif own and (far := _FAR.fullmatch(line)):
            found.append(Acquired(far["name"], int(far["kept"]), float(far["total"])))
        elif own and (near := _NEAR.fullmatch(line)):
            found.append(
                Acquired(near["name"], int(near["kept"]), float(near["total"]), near["scanned"] == near["pages"])
            )
    return tuple(found)


def _first_transaction(remote: Sequence[str]) -> Sequence[str]:
    ends = (number for number, line in enumerate(remote) if line.endswith("COMMIT TRANSACTION"))
    return remote[: next(ends, len(remote))]


def _alike(estimate: float, rows: int) -> bool:
    return abs(estimate - rows) <= rows / 100
