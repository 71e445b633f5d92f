"""Feature: the description of what a patch adds to the server, from the manifest of its series.

Formulas compare figures of EXPLAIN, such as `Rows Discarded + Rows Passed = Probes`. `oracles/explain/figures.py`
evaluates them.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

JOIN_TYPES: Final = ("Inner", "Left", "Right", "Full", "Semi", "Anti", "Right Semi", "Right Anti")
ROWS: Final = ("returned rows", "formed rows", "outer rows", "inner rows")  # operands besides EXPLAIN's fields
_POWER_OF_TWO: Final = "is a power of two"
_FORMULA: Final = re.compile(r"(?P<left>.+?) (?P<relation><=|>=|=|<|>) (?P<right>.+)")
_NUMBER: Final = re.compile(r"\d+(\.\d+)?")
_TEXT: Final = re.compile(r"'[^']*'")


@dataclass(frozen=True, slots=True)
class Formula:
    """Two sums of operands and their relation; no right side if the relation is `is a power of two`.

    An operand is a number, a field of EXPLAIN or one of ROWS. On the right of =, a text in single quotes may stand
    alone.
    """

    left: tuple[str, ...]
    relation: str
    right: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "Formula":
        """Return the formula of a text. Raises ValueError."""
        figure, _, _ = text.partition(f" {_POWER_OF_TWO}")
        if text == f"{figure} {_POWER_OF_TWO}":
            return cls(_operands(figure), _POWER_OF_TWO)
        found = _FORMULA.fullmatch(text)
        if found is None:
            raise ValueError(f"write FIGURES = FIGURES (or <, <=, >, >=), or FIGURE {_POWER_OF_TWO}")
        if _TEXT.fullmatch(found["right"]) and found["relation"] == "=" and " + " not in found["left"]:
            return cls(_operands(found["left"]), "=", (found["right"],))
        return cls(_operands(found["left"]), found["relation"], _operands(found["right"]))

    @property
    def fields(self) -> frozenset[str]:
        """Return the fields of EXPLAIN in the formula."""
        return frozenset(each for each in self.left + self.right if each[0].isupper())


def number_of(operand: str) -> float | None:
    """Return the operand's number; None if it is no number."""
    return float(operand) if _NUMBER.fullmatch(operand) else None


def text_of(operand: str) -> str | None:
    """Return the operand's text without quotes; None if it is no quoted text."""
    return operand[1:-1] if _TEXT.fullmatch(operand) else None


def _operands(text: str) -> tuple[str, ...]:
    operands = tuple(each.strip() for each in text.split(" + "))
    for each in operands:
        if not (each in ROWS or _NUMBER.fullmatch(each) or re.fullmatch(r"[A-Z][\w/() -]*", each)):
            named = ", ".join(ROWS)
            raise ValueError(f"{each!r} is none of: a number, a field of EXPLAIN (it begins with a capital), {named}")
    return operands


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch of a feature, taken by a node for which all formulas hold.

    A campaign reports expected branches that it did not reach.
    """

    name: str
    when: tuple[Formula, ...]
    joins: tuple[str, ...] = ()  # types of join that can take the branch; empty: the branch does not depend on a join
    expected: bool = True


@dataclass(frozen=True, slots=True)
class Invariant:
    """Formulas that hold for figures of EXPLAIN with any data, for the join types `joins`, or for all if it is ()."""

    name: str
    holds: tuple[Formula, ...]
    joins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Feature:
    """Names, settings, EXPLAIN fields, branches and invariants of a feature."""

    name: str
    title: str
    setting: str = ""  # only arms with this setting have the feature; empty: each arm of the series has it
    force: tuple[tuple[str, str], ...] = ()
    off: tuple[tuple[str, str], ...] = ()
    nodes: tuple[str, ...] = ()  # types of plan nodes; none: all
    # the field of a node that contains the feature's fields as an object; empty: the node itself contains them
    group: str = ""
    joins: tuple[str, ...] = ()  # types of join for which branches are counted separately
    branches: tuple[Branch, ...] = ()
    invariants: tuple[Invariant, ...] = ()
    counters: tuple[str, ...] = ()  # other counters that belong to the feature
    manifest: str = field(default="", compare=False)  # path of the file that describes the feature

    @property
    def fields(self) -> frozenset[str]:
        """Return the fields of EXPLAIN in its formulas."""
        formulas = [each for branch in self.branches for each in branch.when]
        formulas += [each for invariant in self.invariants for each in invariant.holds]
        return frozenset().union(*(formula.fields for formula in formulas))

    @property
    def expected(self) -> tuple[str, ...]:
        """Return the counters that a campaign should raise above 0."""
        branches = (branch for branch in self.branches if branch.expected)
        return (*(name for branch in branches for name in self._counters(branch)), *self.counters)

    def _counters(self, branch: Branch) -> tuple[str, ...]:
        joins = branch.joins or self.joins
        return tuple(f"{self.name}.{snake(join)}.{branch.name}" for join in joins) or (f"{self.name}.{branch.name}",)


def snake(join: str) -> str:
    """Return a type of join as counters spell it: right_anti for Right Anti."""
    return join.lower().replace(" ", "_")


def forced_settings(features: Iterable[Feature]) -> tuple[tuple[str, str], ...]:
    """Return the settings that force all features; later features override earlier ones."""
    return tuple({name: value for feature in features for name, value in feature.force}.items())
