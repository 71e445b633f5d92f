"""Figures that EXPLAIN (ANALYZE) reports for a feature at a plan node, and the evaluation of formulas over them.

A figure that is missing, or no number, counts as 0; true counts as 1.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from oracles.explain.nodes import Node, Span, power_of_two, rows, total
from oracles.model.feature import Branch, Feature, Formula, Invariant, number_of, snake, text_of


@dataclass(frozen=True, slots=True)
class Figures:
    """The fields of a feature at a node."""

    feature: Feature
    node: Node
    fields: Mapping[str, Any]

    @property
    def join(self) -> str:
        """Return the join type, such as Right Anti; "" if the node is no join."""
        return str(self.node.get("Join Type", ""))

    @property
    def counters(self) -> Iterator[str]:
        """Yield the counters of reach: bloom, bloom.left, bloom.left.emitted; without a join bloom.emitted."""
        yield self.feature.name
        prefix = self.feature.name
        if self.feature.joins and self.join:
            prefix += f".{snake(self.join)}"
            yield prefix
        yield from (f"{prefix}.{branch.name}" for branch in self.feature.branches if self.takes(branch))

    def takes(self, branch: Branch) -> bool:
        """Return whether the node took a branch."""
        return all(map(self.holds, branch.when))

    @property
    def broken(self) -> Iterator[Invariant]:
        """Yield the invariants that do not hold."""
        for invariant in self.feature.invariants:
            if (not invariant.joins or self.join in invariant.joins) and not all(map(self.holds, invariant.holds)):
                yield invariant

    def holds(self, formula: Formula) -> bool:
        """Return whether a formula may hold. Numbers of rows are known only as intervals."""
        text = text_of(formula.right[0]) if formula.right else None
        if text is not None:
            return bool(self.fields.get(formula.left[0]) == text)
        left, right = self._sum(formula.left), self._sum(formula.right)
        match formula.relation:
            case "=":
                return left.may_be_at_most(right) and right.may_be_at_most(left)
            case "<=":
                return left.may_be_at_most(right)
            case ">=":
                return right.may_be_at_most(left)
            case "<":
                return left.low < right.high
            case ">":
                return left.high > right.low
            case _:
                return power_of_two(left.low)

    def _sum(self, operands: tuple[str, ...]) -> Span:
        return sum(map(self._value, operands), start=Span(0, 0))

    def _value(self, operand: str) -> Span:
        number = number_of(operand)
        if number is not None:
            return Span(number, number)
        match operand:
            case "returned rows":
                return rows(self.node)
            case "formed rows":
                return rows(self.node) + total(self.node, "Rows Removed by Filter")
            case "outer rows" | "inner rows":
                side = operand.partition(" ")[0].capitalize()
                inputs = (child for child in self.node.get("Plans", ()) if child.get("Parent Relationship") == side)
                return rows(next(inputs, {}))
            case _:
                value = self.fields.get(operand, 0)
                known = float(value) if isinstance(value, int | float) else 0.0
                return Span(known, known)


def figures(feature: Feature, node: Node) -> Figures | None:
    """Return the figures of a feature at a node, if EXPLAIN reports any there."""
    if feature.nodes and node["Node Type"] not in feature.nodes:
        return None
    if feature.group:
        group = node.get(feature.group)
        return Figures(feature, node, group) if group and isinstance(group, Mapping) else None
    return Figures(feature, node, node) if not feature.fields.isdisjoint(node) else None
