"""Edits of the syntax trees of a case's queries, which reach statements that its generator does not make.

Oracles must be able to judge an edited query for any data. So its text must rule out errors and other results of the
same query, and its rows must have no equal but distinguishable values. Otherwise the query stays as it was.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from pglast import ast
from pglast.enums import A_Expr_Kind, BoolExprType, CTEMaterialize, JoinType, NullTestType, SetOperation

from fuzz.generators.choices import Weighted, pick
from oracles.model.case import Case, Kind, Step
from oracles.sql.building import expression, fresh_select, negated, printed
from oracles.sql.case_views import opaque_names, used_names
from oracles.sql.determinism import is_known
from oracles.sql.distinguishable_values import ANY_ROW, inexact_types, is_exact
from oracles.sql.exact_expressions import exact_columns
from oracles.sql.infallible import is_infallible
from oracles.sql.reading import Reader

EDITED: Final = "edited"  # tag of a step
_EDITS: Final = Weighted((60, 0), (20, 1), (12, 2), (8, 4))  # of a case
_COMPARISONS: Final = ("=", "<>", "<", "<=", ">", ">=")
_JOINS: Final = (JoinType.JOIN_INNER, JoinType.JOIN_LEFT, JoinType.JOIN_RIGHT)
_OPERATIONS: Final = (SetOperation.SETOP_UNION, SetOperation.SETOP_INTERSECT, SetOperation.SETOP_EXCEPT)
_BOUNDS: Final = ("0", "1", "-1", "32767", "2147483647", "NULL")  # of types of integers

Edit = Callable[[random.Random], None]  # changes a tree in place


def edited(rng: random.Random, case: Case) -> Case:
    """Return the case with a few edits, most often none. A zero makes none."""
    steps = list(case.steps)
    for _ in range(_EDITS.pick(rng)):
        places = _editable(steps)
        if not places:
            break
        place = pick(rng, places)
        steps[place] = _edited(rng, steps[place], (*case.scene, *steps))
    return replace(case, steps=tuple(steps))


def _editable(steps: Sequence[Step]) -> list[int]:
    """Return the positions of queries whose rows need not equal those of another step."""
    reported = {place - back for place, step in enumerate(steps) if step.same_rows for back in (0, 1)}
    return [place for place, step in enumerate(steps) if step.kind is Kind.QUERY and place not in reported]


def _edited(rng: random.Random, step: Step, steps: tuple[Step, ...]) -> Step:
    tree = fresh_select(step.sql)
    if tree is None:
        return step
    sites = _Sites()
    sites(tree)
    if not sites.edits:
        return step
    pick(rng, sites.edits)(rng)
    sql = printed(tree)
    if not sql or not _is_comparable(sql, steps):
        return step
    return replace(step.with_statement(sql), ordered=False, may_fail=True, tags=(EDITED,))


def _is_comparable(sql: str, steps: Sequence[Step]) -> bool:
    inexact = inexact_types(steps)
    exact = is_exact(sql, ANY_ROW, inexact, exact_columns(steps, inexact))
    known = is_known(sql) and opaque_names(steps).isdisjoint(used_names(sql))
    return exact and known and is_infallible(sql, steps)


class _Sites(Reader):
    """The possible edits of a tree, in the order of its nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.edits: list[Edit] = []

    def _exchange(self, node: Any, attribute: str, options: Sequence[Any]) -> None:
        others = [each for each in options if each != getattr(node, attribute)]
        self.edits.append(lambda rng: setattr(node, attribute, pick(rng, others)))

    def visit_A_Expr(self, ancestors: Any, node: Any) -> None:
        if node.kind == A_Expr_Kind.AEXPR_OP and node.name[-1].sval in _COMPARISONS and not _joins(ancestors):
            others = [each for each in _COMPARISONS if each != node.name[-1].sval]
            self.edits.append(lambda rng: setattr(node, "name", (ast.String(pick(rng, others)),)))

    def visit_BoolExpr(self, ancestors: Any, node: Any) -> None:
        if node.boolop == BoolExprType.NOT_EXPR or _joins(ancestors):
            return
        self._exchange(node, "boolop", (BoolExprType.AND_EXPR, BoolExprType.OR_EXPR))
        self.edits.append(lambda rng: _negate_operand(rng, node))

    def visit_NullTest(self, ancestors: Any, node: Any) -> None:
        if not _joins(ancestors):
            self._exchange(node, "nulltesttype", tuple(NullTestType))

    def visit_JoinExpr(self, _ancestors: Any, node: Any) -> None:
        """Collect other types of a join; FULL JOIN supports few conditions."""
        if node.quals is not None or node.usingClause:
            self._exchange(node, "jointype", _JOINS)

    def visit_SelectStmt(self, _ancestors: Any, node: Any) -> None:
        if node.op != SetOperation.SETOP_NONE:
            self._exchange(node, "op", _OPERATIONS)
            self.edits.append(lambda _: setattr(node, "all", not node.all))
        if node.whereClause is not None:
            self.edits.append(lambda _: setattr(node, "whereClause", negated(node.whereClause)))
        if node.limitCount is not None:
            self.edits.append(lambda rng: setattr(node, "limitCount", expression(pick(rng, ("0", "1", "2", "NULL")))))
        elif node.limitOffset is None and node.fromClause:
            self.edits.append(lambda _: setattr(node, "limitOffset", expression("0")))  # forbids to pull it up
        if node.distinctClause:
            self.edits.append(lambda _: setattr(node, "distinctClause", None))
        elif node.targetList and not node.sortClause and node.op == SetOperation.SETOP_NONE:
            self.edits.append(lambda _: setattr(node, "distinctClause", (None,)))

    def visit_CommonTableExpr(self, _ancestors: Any, node: Any) -> None:
        self._exchange(node, "ctematerialized", tuple(CTEMaterialize))

    def visit_A_Const(self, ancestors: Any, node: Any) -> None:
        if isinstance(node.val, ast.Integer) and isinstance(ancestors.node, ast.A_Expr) and not _joins(ancestors):
            self.edits.append(lambda rng: _replace_constant(rng, node))


def _joins(ancestors: Any) -> bool:
    """Return whether a place is in the condition of a join, which stays: a join of most pairs of rows takes long."""
    while ancestors is not None:
        if isinstance(ancestors.node, ast.JoinExpr) and ancestors.member == "quals":
            return True
        ancestors = ancestors.parent
    return False


def _negate_operand(rng: random.Random, node: Any) -> None:
    place = rng.randrange(len(node.args))
    node.args = tuple(negated(each) if n == place else each for n, each in enumerate(node.args))


def _replace_constant(rng: random.Random, node: Any) -> None:
    bound: Any = expression(pick(rng, _BOUNDS))
    node.isnull, node.val = bound.isnull, bound.val
