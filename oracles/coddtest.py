"""CODDTest, constant folding and propagation: an uncorrelated subquery and its constant value are interchangeable.

Zhang and Rigger, "Constant Optimization Driven Database System Testing", SIGMOD 2025. There are two directions:

- Folding: each uncorrelated subquery is executed as a query of its own, and then replaced by its result. If that query
  fails, the subquery is correlated and stays.
- Unfolding: constants in conditions are replaced by subqueries. Then the planner does not know the values: partitions
  are pruned at run time, index keys are computed at run time, and estimates are made without them.

Subqueries that read a common table expression stay, because the name means something else outside of the query.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Final

from pglast import ast
from pglast.enums import A_Expr_Kind, JoinType, SubLinkType
from pglast.visitors import Visitor

from oracles.framework.canaries import canary_case, query
from oracles.framework.difference_text import texts_of
from oracles.framework.metamorphic import Metamorphic
from oracles.framework.relations import SIMPLE_PROTOCOL, ArmRuns, MetamorphicRelation
from oracles.model.observation import Observation, Outcome
from oracles.model.oracle import Canary, Sample
from oracles.sql.building import expression, printed, text_of
from oracles.sql.determinism import deterministic_select, has_parameters
from oracles.sql.names import names_in
from oracles.sql.reading import Reader

CACHED: Final = 4096  # statements
_MOST: Final = 60  # values of a list

# The SQL expression for a value `y` as a literal. format_type() with -1 names a type without a length, which would
# truncate the value. COLLATE keeps a subquery's collation, unless that is the default one. If settings make printed
# values lose precision, the expression is null.
_TYPE: Final = "pg_typeof(y)::oid"
_IS_COLLATED: Final = f"(SELECT typcollation <> 0 FROM pg_type WHERE oid = {_TYPE})"
_COLLATION: Final = f"nullif(CASE WHEN {_IS_COLLATED} THEN pg_collation_for(y) END, '\"default\"')"
_LOSES_NOTHING: Final = (
    "current_setting('extra_float_digits')::int > 0 AND current_setting('DateStyle') LIKE 'ISO%' "
    "AND current_setting('array_nulls')::bool"
)
_VALUE: Final = (
    f"CASE WHEN {_LOSES_NOTHING} THEN format('%L::%s%s', y, format_type({_TYPE}, -1), ' COLLATE ' || {_COLLATION}) END"
)
_LOST: Final = "NULL"
_CORRELATED: Final = "42"  # SQLSTATE class of unknown columns: a correlated subquery is no query of its own


@lru_cache(CACHED)
def subquery_values(sql: str) -> str:
    """Return the query for the values of all subqueries that may be folded; "" if there is none.

    Its rows are a subquery's number and one of its values as an SQL literal.
    """
    queries = enumerate(each for _, each in _foldable(deterministic_select(sql)))
    return " UNION ALL ".join(f"SELECT {number}, v FROM ({each}) AS a (v)" for number, each in queries)


@lru_cache(CACHED)
def folded(sql: str, rows: tuple[tuple[int, str], ...]) -> str:
    """Return the query with subqueries folded by `rows`, the result of `subquery_values(sql)`; "" if none can be."""
    statement = deterministic_select(sql)
    values = defaultdict(list)
    for number, value in rows:
        values[number].append(value)
    replaced = {
        id(link): constant
        for number, (link, _) in enumerate(_foldable(statement))
        if (constant := _constant(link, sorted(set(values[number])))) is not None
    }
    if not replaced:
        return ""
    _Replaced(replaced)(statement)
    return printed(statement)


@lru_cache(CACHED)
def unfolded(sql: str) -> str:
    """Return the query with subqueries in place of constants in its conditions; "" if there are none."""
    statement = deterministic_select(sql)
    if statement is None:
        return ""
    unfolding = _Unfolding()
    unfolding(statement)
    return printed(statement) if unfolding.count else ""


def _foldable(statement: Any) -> list[tuple[Any, str]]:
    """Return the outermost subqueries of expressions that may be folded, each with the query for its values."""
    if statement is None:
        return []
    above = names_in(statement)
    links = (link for link in above.links if _stands_alone(link.subselect, above.common))
    return [(link, query) for link in links if (query := _values_query(link))]


def _stands_alone(select: Any, common: Collection[str]) -> bool:
    """Return whether, according to its text, a subquery uses no columns and common tables of the outer query."""
    within = names_in(select, deep=True)
    return within.columns_of <= within.aliases and within.tables.isdisjoint(common) and not has_parameters(select)


def _values_query(link: Any) -> str:
    """Return the query for the values of a subquery; "" if it cannot be folded."""
    kind, select = link.subLinkType, printed(link.subselect)
    if not select:
        return ""
    if kind == SubLinkType.EXISTS_SUBLINK:
        return f"SELECT EXISTS ({select})::text"
    if kind == SubLinkType.EXPR_SUBLINK:
        return f"SELECT {_VALUE} FROM (SELECT ({select}) AS y) AS s"
    if kind == SubLinkType.ARRAY_SUBLINK:
        return f"SELECT {_VALUE} FROM (SELECT ARRAY({select}) AS y) AS s"
    is_list = kind in (SubLinkType.ANY_SUBLINK, SubLinkType.ALL_SUBLINK)
    if not is_list or isinstance(link.testexpr, ast.RowExpr):
        return ""
    return f"SELECT {_VALUE} FROM ({select}) AS s (y)"


def _constant(link: Any, values: Sequence[str]) -> Any:
    """Return the constant expression for a subquery with these values; None if it is too long or impossible.

    Values of ANY and ALL become an array, which keeps their type. In a list after IN, they would take a type common to
    them and the left operand.
    """
    kind = link.subLinkType
    if _LOST in values:
        return None
    if kind not in (SubLinkType.ANY_SUBLINK, SubLinkType.ALL_SUBLINK):
        return expression(f"({values[0]})") if len(values) == 1 else None
    test = text_of(link.testexpr)
    if len(values) > _MOST or not test:
        return None
    if not values:
        return expression("FALSE" if kind == SubLinkType.ANY_SUBLINK else "TRUE")
    if not link.operName and _is_array(expression(values[0])):
        return expression(f"({test}) IN ({', '.join(values)})")
    if len(link.operName or ()) > 1:  # its schema is named
        return None
    operator = str(link.operName[0].sval) if link.operName else "="
    how = "ANY" if kind == SubLinkType.ANY_SUBLINK else "ALL"
    return expression(f"({test}) {operator} {how} (ARRAY[{', '.join(values)}])")


def _is_array(value: Any) -> bool:
    """Return whether a value in the form of `_VALUE` is an array, which cannot be an element of an array."""
    cast: Any = value.arg if isinstance(value, ast.CollateClause) else value
    return bool(cast.typeName.arrayBounds)


class _Replaced(Visitor):
    """A visitor that replaces subqueries with constants."""

    def __init__(self, by: Mapping[int, Any]) -> None:
        super().__init__()
        self._by = by

    def visit_SubLink(self, _ancestors: Any, node: Any) -> Any:
        return self._by.get(id(node))


class _Unfolding(Reader):
    """A visitor that replaces constants that are operands in conditions with subqueries."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def visit_SelectStmt(self, _ancestors: Any, node: Any) -> None:
        self._unfold(node.whereClause)
        self._unfold(node.havingClause)

    def visit_JoinExpr(self, _ancestors: Any, node: Any) -> None:
        if node.jointype != JoinType.JOIN_FULL:  # FULL JOIN supports hashable or mergeable conditions only
            self._unfold(node.quals)

    def _unfold(self, condition: Any) -> None:
        if isinstance(condition, ast.BoolExpr):
            for each in condition.args or ():
                self._unfold(each)
        if isinstance(condition, ast.A_Expr) and condition.kind == A_Expr_Kind.AEXPR_OP:
            for side in ("lexpr", "rexpr"):
                if _is_constant(getattr(condition, side)):
                    self.count += 1
                    link = expression("(SELECT 1)")
                    link.subselect.targetList[0].val = getattr(condition, side)
                    setattr(condition, side, link)


def _is_constant(value: Any) -> bool:
    """Return whether it is an integer or a constant with a cast; the type of others depends on their context."""
    if isinstance(value, ast.TypeCast):
        return isinstance(value.arg, ast.A_Const)
    return isinstance(value, ast.A_Const) and isinstance(value.val, ast.Integer)


FOLDED: Final = Sample("folded", 32)


class Coddtest(Metamorphic):
    """Queries whose rows change when a subquery and its constant value are exchanged."""

    name: ClassVar[str] = "coddtest"
    samples: ClassVar[tuple[Sample, ...]] = (FOLDED,)
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary(
            "misread_constant",
            canary_case(query("SELECT n FROM canary WHERE n = (SELECT max(flock.n) FROM flock)"), samples=(FOLDED,)),
        ),
        Canary("misread_constant", canary_case(query("SELECT count(*) FROM canary WHERE n < 3"), samples=(FOLDED,))),
    )

    def relations(self, arm_runs: ArmRuns) -> Iterator[MetamorphicRelation]:
        """Yield a relation for each direction."""
        steps = arm_runs.case.all_steps
        plain = {step: sql for step, sql in arm_runs.exact_queries().items() if not steps[step].params}
        asked = {step: sql for step, each in plain.items() if (sql := subquery_values(each))}
        values = {}
        if asked:
            helper = arm_runs.variant(asked, SIMPLE_PROTOCOL)
            seen = arm_runs.observation(helper).steps
            uncorrelated = [step for step in asked if not seen[step].sqlstate.startswith(_CORRELATED)]
            yield from arm_runs.failed("the query for values of subqueries fails", helper, uncorrelated)
            values = {step: _rows(seen[step]) for step in asked if seen[step].outcome is Outcome.OK}
        made = {step: sql for step, each in values.items() if (sql := folded(plain[step], each))}
        yield from arm_runs.relation_to_case("a subquery and its value differ", made)
        moved = {step: sql for step, each in plain.items() if (sql := unfolded(each))}
        yield from arm_runs.relation_to_case("a constant and its subquery differ", moved)


def _rows(seen: Observation) -> tuple[tuple[int, str], ...]:
    """Return the numbers and values of a query's subqueries."""
    return tuple((int(number), value) for number, value in map(texts_of, seen.rows))
