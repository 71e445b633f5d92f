"""The question that a reduction asks: does a case show the finding, in not much more time than the whole one took?"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from fuzz.execution.stage import Stage
from fuzz.inquiry.asking import Alike, Asking, oracle_of
from fuzz.reduction.limit import Limit
from fuzz.servers.arm import Arm
from oracles.case import Case
from oracles.finding import Finding
from oracles.oracle import Oracle
from oracles.sampling import BY_NAME

Answer = TypeVar("Answer")


class Question:
    """Whether cases show the finding that the whole one does, and what they show."""

    def __init__(self, stage: Stage, limit: Limit, arms: Sequence[Arm], whole: Case, finding: Finding) -> None:
        """`limit` is the one that the stage asks when to give up."""
        self._oracle = oracle_of(finding)
        self.whole = sampled_by_name(whole, self._oracle, alone=len(arms) == 1)
        self.shown: dict[Case, Finding] = {}
        self._limit = limit
        self._asking = Asking(stage, arms, finding)

    def shows(self, case: Case, alike: Alike = Finding.resembles) -> bool:
        """Tell whether the case shows a finding like the one in question, and keep what it shows.

        It is looked at as its modes say: chance would let one smaller case through of a few, and those after it stop.
        """
        shown = self._asked(case, lambda looked_at: self._asking.shown(looked_at, alike))
        if shown is not None:
            self.shown[case] = shown
        return shown is not None

    def seems_to_show(self, case: Case) -> bool:
        """Tell whether a case seems to show it: that takes a fraction of the time, but more may speak against it."""
        return bool(self._asked(case, self._asking.seems_to_show))

    def _asked(self, case: Case, ask: Callable[[Case], Answer]) -> Answer | None:
        """Ask about a case within the limit; None where reduction may not make it of the whole one."""
        if not self._oracle.may_become(self.whole, case):
            return None
        with self._limit.question(whole=case == self.whole):
            return ask(_looked_at(case))


def _looked_at(case: Case) -> Case:
    return replace(case, modes=(*case.modes, BY_NAME))


def sampled_by_name(case: Case, oracle: Oracle, *, alone: bool) -> Case:
    """Return the case with modes that name the oracle's samples it is in: a smaller case has other content.

    Reduction drops those that are not needed.
    """
    modes = (sample.mode for sample in oracle.samples if case in (sample.alone if alone else sample))
    return replace(case, modes=case.modes + tuple(mode for mode in modes if mode not in case.modes))
