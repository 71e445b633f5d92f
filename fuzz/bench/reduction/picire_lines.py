"""picire with its defaults: ddmin on the lines of the script."""

from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import ClassVar

from fuzz.bench.reduction.reducer import CountedTest, Reducer, Task
from fuzz.triage.reduction.problem import TimeUp
from fuzz.triage.reproducer.reproducer import parse
from oracles.model.case import Case


class PicireLines(Reducer):
    """picire (Hodován and Kiss), its defaults, in this process."""

    name: ClassVar[str] = "picire"

    def lacks(self) -> str:
        """Return the reason and remedy if picire is not installed, else an empty string."""
        return "" if find_spec("picire") else "picire is not installed; pip install picire 'setuptools<80'"

    def reduce(self, task: Task, test: CountedTest) -> Case:
        """Reduce the script's lines."""
        from picire import DD, ConfigCache, Outcome

        lines = task.script.splitlines(keepends=True)
        best = task.script

        def outcome_of(kept: Sequence[int], _: object) -> Outcome:
            nonlocal best
            text = "".join(lines[index] for index in kept)
            if not test.text(text):
                return Outcome.PASS
            best = min(best, text, key=len)
            return Outcome.FAIL

        with suppress(TimeUp):
            DD(outcome_of, cache=ConfigCache())(list(range(len(lines))))
        return parse(best)
