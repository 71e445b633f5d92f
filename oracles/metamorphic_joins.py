"""Metamorphic joins: three relations between queries with joins.

- An outer join equals an inner join (a left join, for FULL) and the rows without a match. These come from a join ON
  FALSE, which adds nulls for any columns, and NOT EXISTS, which the planner turns into an anti join.
- One side of a join equals its rows with a match (EXISTS) and its rows without a match (NOT EXISTS).
- Settings that disable a feature of the arm's patches change no rows. They apply to queries only, because the plan of
  a change may determine what it stores. An arm that lacks the settings does not count as agreement.

Queries are rewritten in their plain SELECT. It returns rows of a join unchanged, as the whole query or as the subquery
that the query aggregates. It has no aggregates, grouping, DISTINCT, LIMIT, locks or set operations, so another query
with the same rows can replace it. If a query aggregates without such a subquery, its FROM and WHERE are moved into one
first.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final

from pglast import ast
from pglast.enums import BoolExprType, JoinType, SetOperation, SubLinkType

from oracles.framework.canaries import canary_case, query
from oracles.framework.metamorphic import Metamorphic
from oracles.framework.relations import ArmRuns, MetamorphicRelation
from oracles.model.oracle import Canary, Sample
from oracles.sql.building import (
    all_of,
    conjuncts,
    digest,
    expression,
    fresh_select,
    negated,
    printed,
    snippet,
    union_all,
)
from oracles.sql.determinism import AGGREGATES, has_parameters, is_deterministic, is_known, name_of
from oracles.sql.names import aggregates
from oracles.sql.total_order import is_star

_RESTRICTING: Final = (
    *("distinctClause", "intoClause", "groupClause", "havingClause", "windowClause", "valuesLists", "limitOffset"),
    *("limitCount", "lockingClause"),
)


def parsed(sql: str) -> Any:
    """Return the tree of a single SELECT, with a plain subquery below aggregates; None for any other text."""
    only = fresh_select(sql)
    if only is not None:
        _lift(only)
    return only


def plain(select: Any) -> Any:
    """Return the plain SELECT: this query, or the subquery that it aggregates as a whole; None if there is none."""
    if not _is_simple(select):
        return None
    if not any(map(aggregates, (*(select.targetList or ()), *(select.sortClause or ())))):
        return select
    return plain(select.fromClause[0].subquery) if _is_of_subquery(select) else None


def _is_simple(select: Any) -> bool:
    restricted = any(getattr(select, name) for name in _RESTRICTING)
    return bool(select.fromClause) and not restricted and select.op == SetOperation.SETOP_NONE


def _is_of_subquery(select: Any) -> bool:
    """Return whether it reads all rows of one subquery, and nothing else."""
    only = select.fromClause[0] if len(select.fromClause) == 1 else None
    return isinstance(only, ast.RangeSubselect) and not (only.lateral or select.whereClause)


def _lift(select: Any) -> None:
    """Move FROM, WHERE and the arguments of a query that returns only aggregates into a plain subquery."""
    targets: Any = select.targetList or ()
    if not (targets and _is_simple(select) and all(_is_aggregate(target.val) for target in targets)):
        return
    if _is_of_subquery(select):
        _lift(select.fromClause[0].subquery)
        return
    lifted = snippet("SELECT FROM (SELECT) AS q")
    below = lifted.fromClause[0].subquery
    columns = []
    for number, target in enumerate(targets, start=1):
        if target.val.args:
            columns.append(ast.ResTarget(name=f"c{number}", val=target.val.args[0]))
            target.val.args = (_column(number),)
    below.targetList = tuple(columns) or None
    below.fromClause, below.whereClause = select.fromClause, select.whereClause
    select.fromClause, select.whereClause = lifted.fromClause, None


def _column(number: int) -> Any:
    return snippet(f"SELECT c{number}").targetList[0].val


def _is_aggregate(expression: Any) -> bool:
    """Return whether it is a plain aggregate of one expression, or of rows.

    An argument such as `t.*` is a row there, but several columns in the target list of a subquery.
    """
    if not isinstance(expression, ast.FuncCall) or expression.over or expression.agg_filter or expression.agg_order:
        return False
    arguments: Any = expression.args or ()
    return name_of(expression) in AGGREGATES and len(arguments) <= 1 and not any(map(is_star, arguments))


CACHED: Final = 4096  # statements; each is rewritten several times in a row

# The side of a join in which a match is searched.
_SEARCHED: Final = {JoinType.JOIN_LEFT: "rarg", JoinType.JOIN_RIGHT: "larg", JoinType.JOIN_FULL: "larg"}
_MATCHED_PART: Final = {
    JoinType.JOIN_LEFT: JoinType.JOIN_INNER,
    JoinType.JOIN_RIGHT: JoinType.JOIN_INNER,
    JoinType.JOIN_FULL: JoinType.JOIN_LEFT,
}
REWRITTEN: Final = Sample("rewritten", 10)  # up to four runs of the case on each arm


@dataclass(frozen=True, slots=True)
class Rewriting:
    """Queries made from one; "" for none."""

    parts: str = ""  # returns the same rows: an outer join as a smaller join and the rows without a match
    whole: str = ""  # returns all rows of one side
    halves: str = ""  # returns the rows of that side with a match, and those without

    def __bool__(self) -> bool:
        return bool(self.parts or self.whole)


@lru_cache(CACHED)
def rewritten(sql: str) -> Rewriting:
    """Return the rewritten forms of this query."""
    statement = parsed(sql)
    if statement is None or plain(statement) is None or not is_deterministic(statement):
        return Rewriting()
    parts = _built(sql, _parts, _in_place)
    put = _in_place if _top_exists(plain(statement)) is not None else _as_digest
    halves = "" if has_parameters(statement) else _built(sql, _halves, put)
    return Rewriting(parts, _built(sql, _whole, put) if halves else "", halves)


def _built(sql: str, build: Callable[[Callable[[], Any]], Any], put: Callable[[Any, Any], Any]) -> str:
    """Return the statement with its plain SELECT replaced; "" if that is impossible, or is not printed faithfully.

    No node may occur twice in a tree, so the argument of `build` is a source of fresh trees.
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
    """Return a digest of the replacement's rows, because its columns differ from those of the plain SELECT."""
    digested = digest(replacement)
    above = statement.withClause if plain(statement) is not statement else None
    if above is not None and digested.withClause is not None:  # the inner ones may use the outer ones
        digested.withClause.ctes = (*above.ctes, *digested.withClause.ctes)
    else:
        digested.withClause = digested.withClause or above
    return digested


def _outer_join(select: Any) -> Any:
    """Return the outermost join of FROM if it is an outer join with a condition, else None."""
    only = select.fromClause[0] if len(select.fromClause) == 1 else None
    if not isinstance(only, ast.JoinExpr) or only.alias or only.usingClause or only.isNatural:
        return None
    conditional = only.quals is not None and not isinstance(only.quals, ast.A_Const)  # not ON TRUE
    return only if only.jointype in _SEARCHED and conditional else None


def _parts(fresh: Callable[[], Any]) -> Any:
    matched, unmatched, searched = fresh(), fresh(), fresh()
    join = _outer_join(matched)
    if join is None:
        return None
    kind = join.jointype
    join.jointype = _MATCHED_PART[kind]
    nothing = _outer_join(unmatched)
    nothing.jointype = JoinType.JOIN_LEFT if kind == JoinType.JOIN_LEFT else JoinType.JOIN_RIGHT
    nothing.quals = expression("FALSE")
    other = _outer_join(searched)
    matches = _exists(getattr(other, _SEARCHED[kind]), other.quals)
    unmatched.whereClause = all_of(negated(matches), unmatched.whereClause)
    return union_all(matched, unmatched)


def _whole(fresh: Callable[[], Any]) -> Any:
    return _side(fresh, lambda _: None)


def _halves(fresh: Callable[[], Any]) -> Any:
    matched, unmatched = _side(fresh, lambda found: found), _side(fresh, negated)
    return None if matched is None else union_all(matched, unmatched)


def _side(fresh: Callable[[], Any], condition: Callable[[Any], Any]) -> Any:
    """Return the query for the rows of one side that meet `condition` on their match; None if there is no side.

    `condition` maps the EXISTS of a match to a condition: with a match, without, or None for all rows.
    """
    select = fresh()
    conditions = conjuncts(select.whereClause)
    exists = _top_exists(select)
    if exists is not None:
        others = [each for each in conditions if _exists_of(each) is not exists]
        select.whereClause = all_of(condition(exists), *others)
        return select
    join = _outer_join(select)
    if join is None or join.jointype == JoinType.JOIN_FULL:
        return None
    searched = _SEARCHED[join.jointype]
    kept = join.larg if searched == "rarg" else join.rarg
    everything = snippet("SELECT *")
    everything.fromClause = (kept,)
    everything.withClause = select.withClause
    everything.whereClause = all_of(condition(_exists(getattr(join, searched), join.quals)))
    return everything


def _top_exists(select: Any) -> Any:
    """Return the first EXISTS that is a condition of WHERE, or negated by one; None if there is none."""
    return next((each for each in map(_exists_of, conjuncts(select.whereClause)) if each is not None), None)


def _exists_of(condition: Any) -> Any:
    """Return the EXISTS that a condition is or negates, else None."""
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


class MetamorphicJoins(Metamorphic):
    """Joins whose rows change when the query is rewritten or a patch's feature is disabled."""

    name: ClassVar[str] = "metamorphic_joins"
    samples: ClassVar[tuple[Sample, ...]] = (REWRITTEN,)
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary(
            "lose_unmatched",
            canary_case(
                query("SELECT canary.n, nest.name FROM canary LEFT JOIN nest ON canary.n = nest.n"),
                samples=(REWRITTEN,),
            ),
        ),
        Canary(
            "lose_appended",
            canary_case(
                query("SELECT n FROM canary WHERE EXISTS (SELECT 1 FROM flock WHERE flock.n = canary.n + 1)"),
                samples=(REWRITTEN,),
            ),
        ),
    )

    def relations(self, arm_runs: ArmRuns) -> Iterator[MetamorphicRelation]:
        """Yield the relations of outer joins, sides of joins, and features that settings disable."""
        queries = arm_runs.exact_queries()
        made = {position: rewritten(sql) for position, sql in queries.items()}
        plain = {position for position in queries if not arm_runs.case.all_steps[position].params}
        parts = {position: each.parts for position, each in made.items() if each.parts}
        sides = {position: each for position, each in made.items() if each.whole and position in plain}
        known = {position: sql for position, sql in queries.items() if is_known(sql)}
        joins = {position: sql for position, sql in known.items() if "JOIN" in sql.upper() or made[position]}
        yield from arm_runs.relation_to_case("outer join is not its parts", parts)
        halves = {position: (each.whole, each.halves) for position, each in sides.items()}
        yield from arm_runs.relations(halves, "side of a join is not its halves")
        for feature in self.features:
            usable = joins if feature.joins else known
            if usable and feature.off:
                pairs = {position: (sql, sql) for position, sql in usable.items()}
                yield from arm_runs.relations(pairs, f"{feature.title} changes rows", feature.off)
