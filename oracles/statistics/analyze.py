"""Analysis: the results and messages of one ANALYZE, all rows of the relation, and the samples that ANALYZE requested.

A case's foreign server leads back to the same server, so its log has the statements of both sessions. The samples that
were requested from the remote server are in that log, and so are all other queries.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import numpy
import numpy.typing

from oracles.framework.difference_text import row_values
from oracles.model.observation import CaseObservation, Observation

STATEMENT: Final = "LOG:  statement: "
ALIKE: Final = 0.01  # largest relative error of a number of rows that counts as correct

_OWN = re.compile(r"LOG:  (?:statement|execute \S+): ")
# a statement that the remote server must plan; others control transactions and cursors, or set parameters
_QUERY: Final = re.compile(rf"{STATEMENT}(?:SELECT|EXPLAIN|DECLARE)\b")
_SAMPLE: Final = re.compile(
    rf"{STATEMENT}DECLARE c\d+ CURSOR FOR SELECT .* FROM (?:ONLY )?(?P<relation>\S+)"
    r"(?: TABLESAMPLE (?P<method>\w+) ?\((?P<percent>[^)]+)\))?"
    r"(?: WHERE pg_catalog\.random\(\) < (?P<fraction>\S+))?"
    r"(?: ORDER BY \d+ LIMIT (?P<limit>\d+))?",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class RequestedSample:
    """A sample in the remote SQL: all rows of the relation, or a part."""

    relation: str
    tablesample: str = ""  # SYSTEM or BERNOULLI, in capitals
    tablesample_fraction: float = 1.0
    random_fraction: float = 1.0
    limit: int = 0  # number of rows, in random order; 0: no limit

    @property
    def fraction(self) -> float:
        """Return the probability that a row is returned, if there is no limit."""
        return self.tablesample_fraction * self.random_fraction

    @property
    def everything(self) -> bool:
        """Return whether the sample has all rows."""
        return not self.tablesample and self.random_fraction >= 1 and not self.limit

    def __str__(self) -> str:
        parts = [f"{self.tablesample} {self.tablesample_fraction:.6g}"] if self.tablesample else []
        parts += [f"random {self.random_fraction:.6g}"] if self.random_fraction < 1 else []
        parts += [f"limit {self.limit}"] if self.limit else []
        return " and ".join(parts) or "everything"


def statements(observed: CaseObservation) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each statement in the session's log, and the log lines behind its foreign servers during it."""
    own = [index for index, line in enumerate(observed.log) if _OWN.match(line)]
    for index, end in pairwise([*own, len(observed.log)]):
        line = observed.log[index]
        yield line.removeprefix(STATEMENT), tuple(each.text for each in observed.remote if index < each.after <= end)


def requested_samples(lines: Sequence[str]) -> Iterator[RequestedSample]:
    """Yield the requested samples in order; a later one of a relation replaces an earlier one, which was abandoned."""
    for found in filter(None, map(_SAMPLE.fullmatch, lines)):
        yield RequestedSample(
            found["relation"],
            (found["method"] or "").upper(),
            float(found["percent"]) / 100 if found["percent"] else 1.0,
            float(found["fraction"]) if found["fraction"] else 1.0,
            int(found["limit"] or 0),
        )


Numbers = numpy.typing.NDArray[numpy.int64]

_NAME: Final = r'"(?:[^".]+\.)?(?P<name>[^"]+)"'
_BEGINS: Final = re.compile(rf"analyzing {_NAME}(?P<tree> inheritance tree)?")
_FAR: Final = re.compile(rf"{_NAME}: table contains (?P<total>\d+) rows, (?P<kept>\d+) rows in sample")
_NEAR: Final = re.compile(
    rf"{_NAME}: scanned (?P<scanned>\d+) of (?P<pages>\d+) pages, .*; (?P<kept>\d+) rows in sample, (?P<total>\d+) .*"
)


@dataclass(frozen=True, slots=True)
class TableSample:
    """The sample of one table: the number of rows that ANALYZE kept, and its estimate of all rows."""

    table: str
    kept: int
    total: float
    whole: bool = True  # all blocks of a local table were scanned


@dataclass(frozen=True, slots=True)
class AnalyzedColumn:
    """A column's values and statistics."""

    name: str
    ranks: Numbers  # of each row: number of its value in sort order, from 1; 0: NULL
    values: tuple[str, ...]
    widest: int  # bytes of the longest value, as text
    null_frac: float | None = None  # None: there are no statistics
    n_distinct: float = 0.0
    common: tuple[str, ...] = ()
    frequencies: tuple[float, ...] = ()
    bounds: tuple[str, ...] = ()
    correlation: float | None = None


@dataclass(frozen=True, slots=True)
class ForeignMember:
    """A foreign table of a tree: its remote relation, and the number of rows in the remote catalogs.

    `current` means that the number must be correct.
    """

    remote: str
    quoted: float
    current: bool


@dataclass(frozen=True, slots=True)
class Analysis:
    """A relation, its rows in the order of a scan, and the statistics that ANALYZE stored for it.

    `quoted` is the number of rows in the remote catalogs; `current` means that it must be correct. `in_tree` means that
    the table is part of an inheritance tree, or its root.
    """

    remote: str | None  # the remote relation of a foreign table; None: it is a tree of tables
    method: str | None  # of analyze_sampling
    wanted: int  # target number of rows in the sample
    rows: int
    estimate: float
    quoted: float
    current: bool
    in_tree: bool
    blocks: Numbers | None  # of each row, numbered from 1; None: the remote relation has no storage
    members: tuple[str, ...]  # the table of each row; empty if there is only one table
    columns: tuple[AnalyzedColumn, ...]
    table_samples: tuple[TableSample, ...] = ()
    requests: Mapping[str, RequestedSample] = field(default_factory=dict)  # by remote relation
    queries: tuple[str, ...] = ()  # all that the remote server had to plan
    foreign: Mapping[str, ForeignMember] = field(default_factory=dict)  # foreign tables below the root, by name

    @property
    def request(self) -> RequestedSample | None:
        """Return the sample that ANALYZE requested from the remote relation, if this is a foreign table."""
        return self.requests.get(self.remote) if self.remote else None


def analysis(table: str, analyzed: Observation, read: Observation, remote: Sequence[str]) -> Analysis | None:
    """Return the analysis of a table; None if ANALYZE did not analyze it.

    `analyzed` is the observation of ANALYZE VERBOSE, and `read` that of pgduel_tools.analyzed. `remote` has the log
    lines of the remote sessions during ANALYZE.
    """
    row = row_values(read.rows[0]) if read.rows else None
    if row is None or None in row:
        return None
    facts, seen = (json.loads(value or b"null") for value in row)
    table_samples = _table_samples(table, analyzed, tree=facts["remote"] is None)
    if not table_samples:
        return None
    blocks, rows, members = seen["blocks"], seen["rows"], tuple(seen["members"] or ())
    lines = _first_transaction(remote)
    return Analysis(
        facts["remote"],
        facts["method"],
        facts["wanted"],
        rows,
        facts["estimate"],
        facts["quoted"],
        _is_current(facts, rows),
        facts["in_tree"],
        None if blocks is None else numpy.array(blocks, dtype=numpy.int64),
        members,
        tuple(map(_column, seen["columns"])),
        table_samples,
        {request.relation: request for request in requested_samples(lines)},
        tuple(line.removeprefix(STATEMENT) for line in lines if _QUERY.match(line)),
        dict(_foreign_members(facts["foreign"] or {}, members)),
    )


def _foreign_members(
    facts: Mapping[str, Mapping[str, Any]], members: Sequence[str]
) -> Iterator[tuple[str, ForeignMember]]:
    rows = Counter(members)
    for table, each in facts.items():
        yield table, ForeignMember(each["remote"], each["quoted"], _is_current(each, rows[table]))


def _is_current(facts: Mapping[str, Any], rows: int) -> bool:
    """Return whether the catalogs' numbers of rows are up to date."""
    return bool(facts["current"]) and _alike(facts["quoted"], rows) and _alike(facts["quoted_parts"], rows)


def _column(values: Mapping[str, Any]) -> AnalyzedColumn:
    return AnalyzedColumn(
        values["name"],
        numpy.array(values["ranks"] or (), dtype=numpy.int64),
        tuple(values["values"] or ()),
        values["widest"] or 0,
        values["null_frac"],
        values["n_distinct"] or 0.0,
        tuple(values["common"] or ()),
        tuple(values["frequencies"] or ()),
        tuple(values["bounds"] or ()),
        values["correlation"],
    )


def _table_samples(table: str, analyzed: Observation, *, tree: bool) -> tuple[TableSample, ...]:
    """Return the samples for a table's statistics, or (`tree`) for those of its inheritance tree.

    ANALYZE also analyzes a parent's own rows and each partition separately; these samples are omitted.
    """
    found: list[TableSample] = []
    own = False
    for message in analyzed.messages:
        line = message.text.partition("\n")[0]
        if begins := _BEGINS.fullmatch(line):
            own = begins["name"] == table and bool(begins["tree"]) == tree
        elif own and (far := _FAR.fullmatch(line)):
            found.append(TableSample(far["name"], int(far["kept"]), float(far["total"])))
        elif own and (near := _NEAR.fullmatch(line)):
            found.append(
                TableSample(near["name"], int(near["kept"]), float(near["total"]), near["scanned"] == near["pages"])
            )
    return tuple(found)


def _first_transaction(remote: Sequence[str]) -> Sequence[str]:
    ends = (number for number, line in enumerate(remote) if line.endswith("COMMIT TRANSACTION"))
    return remote[: next(ends, len(remote))]


def _alike(estimate: float, rows: int) -> bool:
    return abs(estimate - rows) <= rows * ALIKE
