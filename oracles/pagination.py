"""Pagination: the rows of a query are those of its pages, which LIMIT and OFFSET cut from one total order.

For the first pages, the planner prefers paths that return few rows early, and the executor bounds sorts, also below
Append and Gather Merge. The last page has OFFSET only, and the query itself neither. Each page has the query's ORDER BY
and then all output columns, so rows with equal keys are equal. Columns of types without an order are sorted as text.

If a query returns aggregates of a subquery only, then the subquery is divided into pages. A query with LIMIT is divided
if its numbers are literals.
"""

from collections.abc import Collection, Iterator, Sequence
from copy import deepcopy
from functools import lru_cache
from typing import Any, ClassVar, Final, NamedTuple

from pglast import ast
from pglast.enums import LimitOption

from oracles.framework.canaries import canary_case, query
from oracles.framework.metamorphic import Metamorphic
from oracles.framework.relations import ArmRuns, MetamorphicRelation
from oracles.model.oracle import Canary, Sample
from oracles.sql.building import after_with, place, printed, put, snippet
from oracles.sql.core import summarized
from oracles.sql.determinism import deterministic_select
from oracles.sql.distinguishable_values import ANY_ROW
from oracles.sql.total_order import integer, shown_targets

CACHED: Final = 4096  # statements
PAGED: Final = Sample("paged", 32)
_STARTS: Final = (0, 1, 10)  # the rows before each page
# OIDs of types without a btree operator class: xid, cid, json, xml, geometric types, aclitem, txid_snapshot, gtsvector,
# jsonpath, and their arrays
_UNORDERED: Final = frozenset(
    {
        *("28", "29", "114", "142", "143", "199", "600", "601", "602", "603", "604", "628", "629", "718", "719"),
        *("1011", "1012", "1017", "1018", "1019", "1020", "1027", "1033", "1034", "2949", "2970", "3642", "3644"),
        *("4072", "4073"),
    }
)


class Paged(NamedTuple):
    """A query over pages, and whether they are those of a subquery, whose columns the result does not show."""

    sql: str
    is_within: bool


@lru_cache(CACHED)
def paged(sql: str, types: Sequence[str] = ()) -> Paged | None:
    """Return the query over the pages of its rows, or of its subquery's rows; None if they cannot be divided.

    `types` are those of its columns.
    """
    statement = deterministic_select(sql)
    around, select = summarized(statement)
    unordered = {position for position, each in enumerate(types, 1) if each in _UNORDERED and around is None}
    pages = "" if select is None else _pages(select, unordered)
    if not pages or around is None:
        return Paged(pages, is_within=False) if pages else None
    around.fromClause[0].subquery = place()
    text = put(printed(statement), pages)
    return Paged(text, is_within=True) if text else None


def _pages(select: Any, unordered: Collection[int]) -> str:
    """Return the union of two or three pages of a query, whose tree changes; "" if it cannot be divided.

    PostgreSQL 17 does not sort by a constant that grouping sets replace by NULL, so queries with grouping sets have no
    total order (4cfb7a7b549e in corpus/README.md).
    """
    targets, limits = shown_targets(select), _limits(select)
    if not targets or not limits or any(isinstance(each, ast.GroupingSet) for each in select.groupClause or ()):
        return ""
    common, select.withClause = select.withClause, None
    select.limitCount = select.limitOffset = None
    select.limitOption = LimitOption.LIMIT_OPTION_DEFAULT
    keys = tuple(select.sortClause or ())
    others = sorted({*range(1, len(targets) + 1)} - {integer(key.node) for key in keys})
    more = tuple(_as_text(targets[each - 1]) if each in unordered else _key(str(each)) for each in others)
    select.sortClause = (*keys, *more)
    text = printed(select)
    if not text:
        return ""
    return after_with(common, " UNION ALL ".join(f"SELECT * FROM ({text}{limit}) AS page" for limit in limits))


def _key(sql: str) -> Any:
    return snippet(f"SELECT ORDER BY {sql}").sortClause[0]


def _as_text(target: Any) -> Any:
    key = _key('x::text COLLATE "C"')
    key.node.arg.arg = deepcopy(target.val)
    return key


def _limits(select: Any) -> list[str]:
    """Return LIMIT and OFFSET of each page of a query; none if its own are unknown, or keep one row at most."""
    skipped = 0 if select.limitOffset is None else integer(select.limitOffset)
    kept = None if select.limitCount is None else integer(select.limitCount)
    if skipped is None or (kept is None and select.limitCount is not None) or (kept is not None and kept < 2):
        return []
    if select.limitOption == LimitOption.LIMIT_OPTION_WITH_TIES:
        return []
    starts = [start for start in _STARTS if kept is None or start < kept]
    limits = []
    for start, end in zip(starts, [*starts[1:], kept], strict=True):
        limit = "" if end is None else f" LIMIT {end - start}"
        limits.append(f"{limit} OFFSET {skipped + start}" if skipped + start else limit)
    return limits


class Pagination(Metamorphic):
    """Queries whose rows are not those of their pages."""

    name: ClassVar[str] = "pagination"
    samples: ClassVar[tuple[Sample, ...]] = (PAGED,)
    canaries: ClassVar[tuple[Canary, ...]] = (
        # the pages are the only branches of an Append
        Canary("lose_appended", canary_case(query("SELECT n FROM canary"), samples=(PAGED,))),
    )

    def relations(self, arm_runs: ArmRuns) -> Iterator[MetamorphicRelation]:
        """Yield the relation between the case and its queries over pages."""
        queries, is_determined = arm_runs.exact_queries(), arm_runs.determination()
        types = arm_runs.shown_types(queries)
        made = {step: pages for step, sql in queries.items() if (pages := paged(sql, types[step]))}
        changed = {
            step: sql
            for step, (sql, is_within) in made.items()
            if is_determined(sql, ANY_ROW if is_within else types[step])
        }
        yield from arm_runs.relation_to_case("rows are not those of the pages", changed)
