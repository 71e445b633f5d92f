"""The engine `libfuzzer`: one driver for each generator, whose inputs are the choices of its cases.

All oracles judge a case if its trial reached a new edge or was conspicuous (fuzz/execution/trial.py). For other inputs,
libFuzzer gets only the edges. So far more inputs are tried than could be judged in the same time.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from fuzz import workdir
from fuzz.engines.engine import DrawnCase
from fuzz.engines.guided.driver import Driver, DriverEnded
from fuzz.engines.guided.inputs import PREFIX, Corpus, CurrentInput, case_of_input, random_input, store_input
from fuzz.engines.guided.known_edges import KnownEdges
from fuzz.engines.guided.novelty import Novelty, Origin
from fuzz.engines.libfuzzer.run import input_name
from fuzz.servers.edges.counters import SEVERAL, Counts, EdgeMap, Edges
from oracles.model.case import CaseId
from oracles.model.feature import Feature

SEEDS: Final = 1  # random inputs that each driver adds, because libFuzzer needs one; it begins with the smallest
INPUTS: Final = 3  # of so many inputs, one is judged, even if none is new: it may show a bug in reached code


@dataclass(slots=True)
class _Steered:
    """A generator, its driver, and what libFuzzer has seen of the corpus."""

    generator: str
    driver: Driver
    corpus: Corpus
    unread: set[str]  # inputs of the corpus that the driver has still to execute
    seen: EdgeMap
    last: str = ""  # name of the last input
    again: bool = False  # whether the next run is to execute it, too: its case has a finding or doubt, or is not judged
    counts: Counts | None = None  # of the last input, if it was executed
    unjudged: int = 0  # inputs in a row for which a trial sufficed


class GuidedEngine:
    """The cases of one worker, chosen by libFuzzer. It keeps each input of a finding or doubt in `directory`."""

    def __init__(
        self,
        edges: Edges,
        known: KnownEdges,
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
        self._edges = edges
        self._counters = edges.counters
        self._known = known
        self._preferred = preferred
        self._directory = directory
        self._features = features
        self._seed = seed
        self._number = number
        self._current = CurrentInput(directory, number)
        self._steered: dict[str, _Steered] = {}
        self._drawn: _Steered | None = None
        self._novelty = Novelty()
        self._origin: Origin | None = None  # of the last input; None if it was in the corpus

    def begin(self, generators: Iterable[str]) -> None:
        """Shorten the corpora of these generators, and count their known edges as reached. Raises StorageError."""
        for generator in generators:
            for name in Corpus.of(generator).shortened(partial(self._known.added, generator)):
                counts = self._known.read(generator, name, self._counters.layout.edges, again=True)
                if counts is not None:
                    self._edges.reached.add(counts, SEVERAL)

    def draw(self, case_id: CaseId) -> DrawnCase:
        """Return the case of the generator's next input. Raises BuildError, DriverEnded, StorageError."""
        steered = self._steered.get(case_id.generator) or self._start(case_id)
        generator = steered.generator
        try:
            data = self._next(steered)
        except DriverEnded:
            steered.driver.close()
            del self._steered[generator]
            raise
        self._drawn = steered
        self._current.write(generator, data)
        name = f"{PREFIX}/{generator}/{steered.last}"
        try:
            case = case_of_input(data, generator, self._features)
        except Exception as error:  # a fault of the generator
            store_input(self._directory, data)
            error.add_note(f"The case is {name}.")
            raise

        def record() -> None:
            steered.again = True
            store_input(self._directory, data)

        if steered.last not in steered.unread and steered.unjudged < INPUTS - 1:
            return DrawnCase(name, case, record, self._is_new)
        steered.unjudged = 0
        return DrawnCase(name, case, record)

    def _is_new(self) -> bool:
        """Return whether the last trial reached an edge that no case of the campaign reached."""
        assert self._drawn is not None
        counts = self._counters.counts()
        new = self._edges.reached.new(counts)
        if self._origin is not None:
            self._novelty.note(self._origin, new)
        if not new:
            self._edges.reached.add(counts, SEVERAL)
            self._drawn.again = True  # libFuzzer may keep it unjudged, because it is new to this driver
        self._drawn.unjudged = 0 if new else self._drawn.unjudged + 1
        return new > 0

    def _next(self, steered: _Steered) -> bytes:
        """Return the next input whose edges are not known. libFuzzer sees those of the others before.

        Some mutations of a kept input change nothing.
        """
        while True:
            self._origin = Origin.MUTATED
            data = steered.driver.next_input()
            self._note_edges(steered)
            steered.last, steered.again = input_name(data), False
            if steered.last in steered.corpus:  # of an earlier run, or another worker's
                self._origin = None
            counts = self._known.read(steered.generator, steered.last, self._counters.layout.edges)
            if counts is None:
                return data
            self._counters.write(counts)
            self._prune(steered, new=steered.seen.add(counts) > 0)
            steered.driver.conclude(keep=True)

    def _note_edges(self, steered: _Steered) -> None:
        """Keep the edges of the last input, if libFuzzer kept the input."""
        counts, steered.counts = steered.counts, None
        if counts is not None and steered.last in steered.corpus:
            self._known.write(steered.generator, steered.last, counts, again=steered.again)

    def _start(self, case_id: CaseId) -> _Steered:
        generator = case_id.generator
        corpus = Corpus.of(generator)
        seed = f"{self._seed}/{generator}/{self._number}/{case_id.index}"  # others after a restart
        rng = random.Random(seed)
        unread = set(corpus.begin(random_input(generator, rng) for _ in range(SEEDS)))
        if self._number == 0:
            self._known.keep_only(generator, unread)
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
            draw_random=lambda: self._random_input(generator, rng),
        )
        steered = _Steered(generator, driver, corpus, unread, EdgeMap(self._counters.layout.edges))
        self._steered[generator] = steered
        return steered

    def _random_input(self, generator: str, rng: random.Random) -> bytes:
        """Return a random input, or none if a mutated one is due."""
        if rng.random() >= self._novelty.random_share:
            return b""
        self._origin = Origin.RANDOM
        return random_input(generator, rng)

    def conclude(self, *, executed: bool) -> None:
        """Let libFuzzer judge the last input by the counters. One that was not executed completely is discarded."""
        steered, self._drawn = self._drawn, None
        if steered is None:
            return
        self._current.clear(steered.generator)
        if executed:
            steered.counts = self._counters.counts()
            self._prune(steered, new=steered.seen.add(steered.counts) > 0)
        steered.driver.conclude(keep=executed)

    def cpu_seconds(self) -> float:
        """Return the CPU seconds of the drivers that run."""
        return sum(steered.driver.cpu_seconds() for steered in self._steered.values())

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
            self._note_edges(steered)
        self._steered.clear()
        self._drawn = None
