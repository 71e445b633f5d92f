"""Join rewriting: other queries whose rows must be the same, made on the syntax tree.

An outer join is an inner join and the rows without a match; a query is the sum of its rows that have a match somewhere
(EXISTS) and of those that have none. Rows without a match are written as a join ON FALSE, which extends them by nulls
whatever the columns are, and NOT EXISTS: the planner makes an anti join of that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from pglast import ast
from pglast.enums import BoolExprType, JoinType, SubLinkType

from oracles.determinism import has_parameters, is_deterministic
from oracles.plain_select import parsed, plain
from oracles.query_building import all_of, conjuncts, digest, expression, negated, printed, snippet, union_all

CACHED: Final = 4096  # statements; the rewriting of one is asked for several times in a row

# Which side of the join is looked up for rows that have no match on it.
_LOOKED_UP: Final = {JoinType.JOIN_LEFT: "rarg", JoinType.JOIN_RIGHT: "larg", JoinType.JOIN_FULL: "larg"}
_MATCHED_PART: Final = {
    JoinType.JOIN_LEFT: JoinType.JOIN_INNER,
    JoinType.JOIN_RIGHT: JoinType.JOIN_INNER,
    JoinType.JOIN_FULL: JoinType.JOIN_LEFT,
}


@dataclass(frozen=True, slots=True)
class Rewritten:
    """Queries made from one; empty where there is none."""

    parts: str = ""  # returns the same rows: an outer join as a smaller join and the rows without a match
    whole: str = ""  # returns all rows of one side
    halves: str = ""  # returns the rows of that side that have a match, and those that have none

    def __bool__(self) -> bool:
        return bool(self.parts or self.whole)


@lru_cache(CACHED)
def rewritten(sql: str) -> Rewritten:
    """Return what this query can be rewritten to."""
    statement = parsed(sql)
    if statement is None or plain(statement) is None or not is_deterministic(statement):
        return Rewritten()
    parts = _built(sql, _parts, _in_place)
    put = _in_place if _asked(plain(statement)) is not None else _as_digest
    halves = "" if has_parameters(statement) else _built(sql, _halves, put)
    return Rewritten(parts, _built(sql, _whole, put) if halves else "", halves)


def _built(sql: str, build: Callable[[Callable[[], Any]], Any], put: Callable[[Any, Any], Any]) -> str:
    """Return the statement with its plain SELECT replaced; empty where that cannot be, or is not printed faithfully.

    No node may be in a tree twice, so `build` is given a source of fresh ones.
    """
    replacement = build(lambda: plain(parsed(sql)))
    if replacement is None:
        return ""
    statement = put(parsed(sql), replacement)
    return printed(statement)


def _in_place(statement: Any, replacement: Any) -> Any:
    """Return the statement with its plain SELECT replaced."""
    place, above = plain(statement), statement
    if place is statement:
        return replacement
    while above.fromClause[0].subquery is not place:
        above = above.fromClause[0].subquery
    above.fromClause[0].subquery = replacement
    return statement


def _as_digest(statement: Any, replacement: Any) -> Any:
    """Return a digest of the rows of the replacement, whose columns are others than those of the plain SELECT."""
    if plain(statement) is not statement:
        replacement.withClause = statement.withClause
    return digest(replacement)


def _outer_join(select: Any) -> Any:
    """Return the outermost join of FROM if it is an outer one with a condition, else None."""
    only = select.fromClause[0] if len(select.fromClause) == 1 else None
    if not isinstance(only, ast.JoinExpr) or only.alias or only.usingClause or only.isNatural:
        return None
    asks = only.quals is not None and not isinstance(only.quals, ast.A_Const)  # not ON TRUE
    return only if only.jointype in _LOOKED_UP and asks else None


def _parts(fresh: Callable[[], Any]) -> Any:
    matched, unmatched, looked_up = fresh(), fresh(), fresh()
    join = _outer_join(matched)
    if join is None:
        return None
    kind = join.jointype
    join.jointype = _MATCHED_PART[kind]
    nothing = _outer_join(unmatched)
    nothing.jointype = JoinType.JOIN_LEFT if kind == JoinType.JOIN_LEFT else JoinType.JOIN_RIGHT
    nothing.quals = expression("FALSE")
    other = _outer_join(looked_up)
    matches = _exists(getattr(other, _LOOKED_UP[kind]), other.quals)
    unmatched.whereClause = all_of(negated(matches), unmatched.whereClause)
    return union_all(matched, unmatched)


def _whole(fresh: Callable[[], Any]) -> Any:
    return _side(fresh, lambda _: None)


def _halves(fresh: Callable[[], Any]) -> Any:
    matched, unmatched = _side(fresh, lambda found: found), _side(fresh, negated)
    return None if matched is None else union_all(matched, unmatched)


def _side(fresh: Callable[[], Any], condition: Callable[[Any], Any]) -> Any:
    """Return the query for the rows of one side for which the condition on its match holds; None if there is none."""
    select = fresh()
    conditions = conjuncts(select.whereClause)
    asked = _asked(select)
    if asked is not None:
        others = [each for each in conditions if _exists_of(each) is not asked]
        select.whereClause = all_of(condition(asked), *others)
        return select
    join = _outer_join(select)
    if join is None or join.jointype == JoinType.JOIN_FULL:
        return None
    looked_up = _LOOKED_UP[join.jointype]
    kept = join.larg if looked_up == "rarg" else join.rarg
    everything = snippet("SELECT *")
    everything.fromClause = (kept,)
    everything.withClause = select.withClause
    everything.whereClause = all_of(condition(_exists(getattr(join, looked_up), join.quals)))
    return everything


def _asked(select: Any) -> Any:
    """Return the first EXISTS that is, or is negated by, a condition which all rows must meet."""
    return next((each for each in map(_exists_of, conjuncts(select.whereClause)) if each is not None), None)


def _exists_of(condition: Any) -> Any:
    """Return the EXISTS that a condition is or negates."""
    if isinstance(condition, ast.BoolExpr) and condition.boolop == BoolExprType.NOT_EXPR:
        (within,) = condition.args or (None,)
        return _exists_of(within)
    found = isinstance(condition, ast.SubLink) and condition.subLinkType == SubLinkType.EXISTS_SUBLINK
    return condition if found else None


def _exists(relation: Any, condition: Any) -> Any:
    subselect = snippet("SELECT 1")
    subselect.fromClause = (relation,)
    subselect.whereClause = condition
    return ast.SubLink(subLinkType=SubLinkType.EXISTS_SUBLINK, subLinkId=0, subselect=subselect)
