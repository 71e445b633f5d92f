"""pgduel's own reducer, as in a campaign."""

import time
from typing import ClassVar

from fuzz import workdir
from fuzz.bench.reduction.reducer import CountedTest, Reducer, Task
from fuzz.triage.reduction.problem import SECONDS
from fuzz.triage.reduction.reducer import reduce
from oracles.model.case import Case


class Own(Reducer):
    """The reducer of campaigns, `fuzz/triage/reduction`."""

    name: ClassVar[str] = "pgduel"

    def reduce(self, task: Task, test: CountedTest) -> Case:
        """Reduce the case."""
        seconds = min(SECONDS, test.until - time.monotonic())
        return reduce(
            test.interestingness.whole,
            test.case,
            seconds=seconds,
            replay=f"{workdir.COMMAND} replay",
            fast_test=test.provisional,
        ).case
