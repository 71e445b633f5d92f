"""pgduel's own reducer, as in a campaign."""

import time
from typing import ClassVar

from fuzz import workdir
from fuzz.bench.reduction.reducer import Asked, Reducer, Task
from fuzz.triage.reduction.problem import SECONDS
from fuzz.triage.reduction.reducer import reduce
from oracles.model.case import Case


class Own(Reducer):
    """fuzz/triage/reduction."""

    name: ClassVar[str] = "pgduel"

    def reduce(self, task: Task, asked: Asked) -> Case:
        """Reduce the case."""
        seconds = min(SECONDS, asked.until - time.monotonic())
        question = asked.question
        return reduce(
            question.whole, asked.case, seconds=seconds, replay=f"{workdir.COMMAND} replay", fast_test=asked.seeming
        ).case
