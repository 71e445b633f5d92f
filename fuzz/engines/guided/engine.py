"""The engine `libfuzzer`: one driver for each generator, whose inputs are the choices of its cases."""

import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fuzz import workdir
from fuzz.engines.engine import DrawnCase
from fuzz.engines.guided.choices import ByteChoices
from fuzz.engines.guided.corpus import Corpus, input_name
from fuzz.engines.guided.driver import LONGEST, Driver, DriverEnded
from fuzz.engines.seeded import draw_case
from fuzz.generators.generator import Scale
from fuzz.servers.edges.counters import EdgeCounters, EdgeMap
from fuzz.sources.workloads import workload_named
from oracles.model.case import Case, CaseId
from oracles.model.feature import Feature

PREFIX: Final = "libfuzzer"  # of the names of cases
SEEDS: Final = 8  # random inputs that each driver adds, so that a run explores anew
# Smaller than that of other campaigns: libFuzzer needs many cases, and learns more from a byte of a short input.
SCALE: Final = Scale(rows=60, relations=4, partitions=6, queries=8)


def case_of_input(data: bytes, generator: str, features: Sequence[Feature] = ()) -> Case:
    """Return the case whose choices are the bytes of an input. Raises CaseError for an unknown generator."""
    return draw_case(ByteChoices(data), workload_named(generator), SCALE, features)


def random_input(generator: str, rng: random.Random) -> bytes:
    """Return an input with a random byte for each choice of its case."""
    data = rng.randbytes(LONGEST)
    choices = ByteChoices(data)
    draw_case(choices, workload_named(generator), SCALE)
    return data[: choices.read]


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
        self, counters: EdgeCounters, directory: Path, features: Sequence[Feature], seed: int, number: int
    ) -> None:
        """`seed` and `number`, that of the worker, decide the choices of libFuzzer itself."""
        self._counters = counters
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
            self._counters.descriptor, self._counters.layout, corpus.directory, log, seed=rng.randrange(1, 1 << 32)
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
            self._prune(steered, new=steered.seen.add(self._counters.counts()))
        steered.driver.conclude(keep=executed)

    def _prune(self, steered: _Steered, *, new: bool) -> None:
        """Delete an input of the corpus that reached nothing beyond those before it, which were smaller.

        libFuzzer itself only ignores it. One worker deletes, because another's order may differ.
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


def store_input(directory: Path, data: bytes) -> None:
    """Store an input in a campaign's directory, because the corpus may lose it. Raises StorageError."""
    inputs = directory / "inputs"
    path = inputs / input_name(data)
    with workdir.writing(path):
        inputs.mkdir(exist_ok=True)
        draft = path.with_suffix(".draft")
        draft.write_bytes(data)
        draft.replace(path)


def stored_input(directory: Path, name: str) -> bytes | None:
    """Return an input that a campaign stored, or None."""
    with suppress(FileNotFoundError):
        return (directory / "inputs" / name).read_bytes()
    return None
