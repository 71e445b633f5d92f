"""The engine `libfuzzer`: one driver for each generator, whose inputs are the choices of its cases."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fuzz import workdir
from fuzz.engines.engine import DrawnCase
from fuzz.engines.guided.driver import Driver, DriverEnded
from fuzz.engines.guided.inputs import PREFIX, Corpus, case_of_input, random_input, store_input
from fuzz.engines.libfuzzer.run import input_name
from fuzz.servers.edges.counters import EdgeCounters, EdgeMap
from oracles.model.case import CaseId
from oracles.model.feature import Feature

SEEDS: Final = 8  # random inputs that each driver adds, so that a run explores anew


@dataclass(slots=True)
class _Steered:
    """A generator, its driver, and what libFuzzer has seen of the corpus."""

    generator: str
    driver: Driver
    corpus: Corpus
    unread: set[str]  # inputs of the corpus that the driver has still to execute
    seen: EdgeMap
    last: str = field(default="")  # name of the last input


class GuidedEngine:
    """The cases of one worker, chosen by libFuzzer. It keeps each input of a finding or doubt in `directory`."""

    def __init__(
        self,
        counters: EdgeCounters,
        preferred: Sequence[int],
        directory: Path,
        features: Sequence[Feature],
        *,
        seed: int,
        number: int,
    ) -> None:
        """`preferred` are edges that libFuzzer prefers, each as often as it counts.

        `seed` and `number`, that of the worker, decide the choices of libFuzzer itself.
        """
        self._counters = counters
        self._preferred = preferred
        self._directory = directory
        self._features = features
        self._seed = seed
        self._number = number
        self._steered: dict[str, _Steered] = {}
        self._drawn: _Steered | None = None

    def draw(self, case_id: CaseId) -> DrawnCase:
        """Return the case of the next input for the generator. Raises BuildError, DriverEnded, StorageError."""
        generator = case_id.generator
        steered = self._steered.get(generator) or self._start(generator)
        try:
            data = steered.driver.next_input()
        except DriverEnded:
            steered.driver.close()
            del self._steered[generator]
            raise
        self._drawn = steered
        steered.last = input_name(data)
        case = case_of_input(data, generator, self._features)
        name = f"{PREFIX}/{generator}/{steered.last}"
        return DrawnCase(name, case, lambda: store_input(self._directory, data))

    def _start(self, generator: str) -> _Steered:
        corpus = Corpus.of(generator)
        seed = f"{self._seed}/{generator}/{self._number}"
        rng = random.Random(seed)
        unread = set(corpus.begin(random_input(generator, rng) for _ in range(SEEDS)))
        logs = self._directory / "libfuzzer"
        with workdir.writing(logs):
            logs.mkdir(exist_ok=True)
        log = logs / f"{generator}-{self._number}.log"
        driver = Driver(
            self._counters.descriptor,
            self._counters.layout,
            corpus.directory,
            log,
            seed=rng.randrange(1, 1 << 32),
            preferred=self._preferred,
            draw_random=lambda: random_input(generator, rng),
        )
        steered = _Steered(generator, driver, corpus, unread, EdgeMap(self._counters.layout.edges))
        self._steered[generator] = steered
        return steered

    def conclude(self, *, executed: bool) -> None:
        """Let libFuzzer judge the last input by the counters. One that was not executed completely is discarded."""
        steered, self._drawn = self._drawn, None
        if steered is None:
            return
        if executed:
            self._prune(steered, new=steered.seen.add(self._counters.counts()) > 0)
        steered.driver.conclude(keep=executed)

    def _prune(self, steered: _Steered, *, new: bool) -> None:
        """Delete the last input from the corpus if it reached no edge beyond earlier, smaller inputs.

        libFuzzer itself only ignores it. Only one worker deletes inputs, because the orders of workers may differ.
        """
        if steered.last in steered.unread:
            steered.unread.remove(steered.last)
            if not new and self._number == 0:
                steered.corpus.delete(steered.last)

    def close(self) -> None:
        """End all drivers."""
        for steered in self._steered.values():
            steered.driver.close()
        self._steered.clear()
        self._drawn = None
