"""Feature: what a patch adds to the server, as the manifest of its series describes it.

Formulas compare figures of EXPLAIN, such as `Rows Discarded + Rows Passed = Probes`. `oracles/explain/figures.py`
evaluates them.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

JOIN_TYPES: Final = ("Inner", "Left", "Right", "Full", "Semi", "Anti", "Right Semi", "Right Anti")
ROWS: Final = ("returned rows", "formed rows", "outer rows", "inner rows")  # operands beside EXPLAIN's fields
_POWER_OF_TWO: Final = "is a power of two"
_FORMULA: Final = re.compile(r"(?P<left>.+?) (?P<relation><=|>=|=|<|>) (?P<right>.+)")
_NUMBER: Final = re.compile(r"\d+(\.\d+)?")
_TEXT: Final = re.compile(r"'[^']*'")


@dataclass(frozen=True, slots=True)
class Formula:
    """Two sums of operands and their relation; nothing on the right of `is a power of two`.

    An operand is a number, a field of EXPLAIN, one of ROWS, or, alone on the right of =, a text in single quotes.
    """

    left: tuple[str, ...]
    relation: str
    right: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "Formula":
        """Return the formula that a text has. Raises ValueError."""
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
        """The fields of EXPLAIN that it compares."""
        return frozenset(each for each in self.left + self.right if each[0].isupper())


def number_of(operand: str) -> float | None:
    """Return the number that an operand is, if it is one."""
    return float(operand) if _NUMBER.fullmatch(operand) else None


def text_of(operand: str) -> str | None:
    """Return the text that an operand has in quotes, if it is one."""
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
    """A branch of a feature: taken where all formulas hold; a campaign reports expected ones that it did not reach."""

    name: str
    when: tuple[Formula, ...]
    joins: tuple[str, ...] = ()  # the types of join that can take it; none: no join decides
    expected: bool = True


@dataclass(frozen=True, slots=True)
class Invariant:
    """Formulas that hold for figures of EXPLAIN, whatever the data; for some types of join, or for all."""

    name: str
    holds: tuple[Formula, ...]
    joins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature: how an arm that has it is recognized, how it is forced and disabled, what EXPLAIN reports of it."""

    name: str
    title: str
    setting: str = ""  # an arm has the feature if it has this setting; none: each arm of the series has it
    force: tuple[tuple[str, str], ...] = ()
    off: tuple[tuple[str, str], ...] = ()
    nodes: tuple[str, ...] = ()  # types of plan nodes; none: all
    group: str = ""  # the field of a node whose value is the group of the feature's fields; none: the node itself
    joins: tuple[str, ...] = ()  # types of join that its branches are counted by
    branches: tuple[Branch, ...] = ()
    invariants: tuple[Invariant, ...] = ()
    counters: tuple[str, ...] = ()  # other counters of reach that are branches of it

    @property
    def fields(self) -> frozenset[str]:
        """The fields of EXPLAIN that its formulas compare."""
        formulas = [each for branch in self.branches for each in branch.when]
        formulas += [each for invariant in self.invariants for each in invariant.holds]
        return frozenset().union(*(formula.fields for formula in formulas))

    @property
    def expected(self) -> tuple[str, ...]:
        """The counters of reach that a campaign should not leave at 0."""
        branches = (branch for branch in self.branches if branch.expected)
        return (*(name for branch in branches for name in self._counters(branch)), *self.counters)

    def _counters(self, branch: Branch) -> tuple[str, ...]:
        joins = branch.joins or self.joins
        return tuple(f"{self.name}.{snake(join)}.{branch.name}" for join in joins) or (f"{self.name}.{branch.name}",)


def snake(join: str) -> str:
    """Return a type of join as counters have it: right_anti for Right Anti."""
    return join.lower().replace(" ", "_")


def forced_settings(features: Iterable[Feature]) -> tuple[tuple[str, str], ...]:
    """Return the settings that force all features; a later feature's wins."""
    return tuple({name: value for feature in features for name, value in feature.force}.items())
