"""Inputs of libFuzzer: bytes that are the random choices of a case, and the places where inputs are kept.

The corpus of a generator has the inputs that reached new edges, where the next run begins. libFuzzer adds inputs, names
each by the SHA-1 of its bytes, and replaces one by a smaller one with the same edges. A campaign keeps the inputs of
its findings and doubts.
"""

import io
import os
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fuzz import workdir
from fuzz.engines.guided.edits import edited
from fuzz.engines.libfuzzer.run import input_name
from fuzz.engines.seeded import draw_case
from fuzz.generators.choices import Stream, StreamedRandom
from fuzz.generators.generator import Scale
from fuzz.sources.workloads import workload_named
from oracles.model.case import Case
from oracles.model.feature import Feature

PREFIX: Final = "libfuzzer"  # of the names of cases
LONGEST: Final = 8192  # bytes of an input; the choices of a case need 60 to 5,000
# Inputs of a corpus at the start of a run, which begins by executing all of them on new builds; as many of unknown
# edges may be there, too.
MAXIMUM: Final = 400
SEPARATOR: Final = b"|pg|"  # of the streams of an input; driver.c has it, too
_MOST_STREAMS: Final = 40  # more than any generator uses
_FIXED: Final = (Stream.MODES, Stream.SCENE, Stream.EDITS)  # the first streams; those of actions follow
# The first bit of an input chooses the scale of its case. libFuzzer learns more from a byte of a short input. But only
# cases of other campaigns' scale reach what needs many rows, relations or partitions.
SCALES: Final = (Scale(rows=60, relations=4, partitions=6, queries=8), Scale())
_LARGER: Final = b"\x80"


class ByteChoices(StreamedRandom):
    """A source of random choices that reads bytes, as few for each choice as its range needs.

    `SEPARATOR` divides the bytes into streams: of the modes, of the scene, of edits, and of each action. There
    are as many actions as streams for them, up to the generator's limit.

    After the last byte of a stream, each choice is zero, the simplest one (fuzz/generators/choices.py). So fewer bytes
    make a smaller case.
    """

    def __init__(self, data: bytes) -> None:
        super().__init__(0)
        given = data.split(SEPARATOR)
        missing = max(0, len(_FIXED) - len(given))
        self._streams = [io.BytesIO(stream) for stream in (*given, *[b""] * missing)]
        self._begun = len(_FIXED)  # streams, with those of actions so far
        self._current = self._streams[0]

    def begin(self, stream: Stream) -> None:
        """Take the next choices from this stream; each time, that of another action."""
        if stream in _FIXED:
            self._current = self._streams[_FIXED.index(stream)]
            return
        if not self.has_another_action():
            self._streams.append(io.BytesIO())
        self._current = self._streams[self._begun]
        self._begun += 1

    def has_another_action(self) -> bool:
        """Return whether there is a stream for another action."""
        return self._begun < len(self._streams)

    def getrandbits(self, k: int) -> int:
        """Return a number of `k` bits."""
        size = (k + 7) // 8
        taken = self._current.read(size).ljust(size, b"\0")
        return int.from_bytes(taken, "big") >> (8 * size - k)

    def used(self) -> bytes:
        """Return the input without bytes that no choice has read so far."""
        return SEPARATOR.join(stream.getvalue()[: stream.tell()] for stream in self._streams[: self._begun])

    def random(self) -> float:
        """Return a number in [0, 1)."""
        return self.getrandbits(53) / (1 << 53)

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        """Return an element of a range. Raises ValueError if it is empty."""
        first, end = (0, start) if stop is None else (start, stop)
        count = max(0, -((first - end) // step))
        if not count:
            raise ValueError(f"range({first}, {end}, {step}) is empty")
        return first + step * self._below(count)

    def _below(self, count: int) -> int:
        """Return a number below `count`, from whole bytes. It grows with them, so ranges are covered evenly."""
        bits = ((count - 1).bit_length() + 7) // 8 * 8
        return self.getrandbits(bits) * count >> bits


def case_of_input(data: bytes, generator: str, features: Sequence[Feature] = ()) -> Case:
    """Return the case whose choices are the bytes of an input. Raises CaseError for an unknown generator."""
    return _draw(ByteChoices(data), generator, features)


def _draw(choices: ByteChoices, generator: str, features: Sequence[Feature] = ()) -> Case:
    choices.begin(Stream.MODES)
    scale = SCALES[choices.getrandbits(1)]
    case = draw_case(choices, workload_named(generator), scale, features)
    choices.begin(Stream.EDITS)
    return edited(choices, case)


def random_input(generator: str, rng: random.Random) -> bytes:
    """Return an input with a random byte for each choice of its case, and as many actions as the generator makes.

    Its scale is the larger one, so it is like a case of a plain seed.
    """
    choices = ByteChoices(_LARGER + SEPARATOR.join(rng.randbytes(LONGEST) for _ in range(_MOST_STREAMS)))
    _draw(choices, generator)
    return choices.used()[:LONGEST]


@dataclass(frozen=True, slots=True)
class Corpus:
    """The inputs of one generator, a file each."""

    directory: Path

    @classmethod
    def of(cls, generator: str) -> "Corpus":
        """Return the corpus of a generator, which is created on first use. Raises StorageError."""
        directory = workdir.inputs() / generator
        with workdir.writing(directory):
            directory.mkdir(exist_ok=True)
        return cls(directory)

    def sizes(self) -> dict[str, int]:
        """Return the size of each input by name."""
        found = {}
        for entry in os.scandir(self.directory):
            with suppress(FileNotFoundError):  # another worker may delete it at this moment
                found[entry.name] = entry.stat().st_size
        return found

    def __contains__(self, name: str) -> bool:
        """Return whether the corpus has an input."""
        return (self.directory / name).exists()

    def read(self, name: str) -> bytes | None:
        """Return an input, or None if the corpus does not have it."""
        with suppress(FileNotFoundError):
            return (self.directory / name).read_bytes()
        return None

    def begin(self, added: Iterable[bytes]) -> frozenset[str]:
        """Prepare the corpus for a driver, with some more inputs; return the names of all. Raises StorageError."""
        for data in added:
            with workdir.writing(self.directory):
                (self.directory / input_name(data)).write_bytes(data)
        return frozenset(self.sizes())

    def shortened(self, added: Callable[[Sequence[str]], Mapping[str, int]]) -> list[str]:
        """Delete inputs beyond `MAXIMUM`: those that add the fewest edges, and of these the largest. Return the others.

        `added` returns the number of edges that each input adds to those before it. Inputs that it leaves out have
        their own maximum.
        """
        sizes = self.sizes()
        names = sorted(sizes, key=lambda name: (sizes[name], name))
        edges = added(names)
        known = sorted((name for name in names if name in edges), key=lambda name: -edges[name])
        unknown = [name for name in names if name not in edges]
        kept = known[:MAXIMUM] + unknown[:MAXIMUM]
        for name in sizes.keys() - set(kept):
            self.delete(name)
        return kept

    def delete(self, name: str) -> None:
        """Delete an input, if it is still there."""
        (self.directory / name).unlink(missing_ok=True)


def store_input(directory: Path, data: bytes) -> None:
    """Store an input in a campaign's directory, because the corpus may lose it. Raises StorageError."""
    inputs = directory / "inputs"
    with workdir.writing(inputs):
        inputs.mkdir(exist_ok=True)
    workdir.write(inputs / input_name(data), data)


@dataclass(frozen=True, slots=True)
class CurrentInput:
    """The input that a worker executes, in a file, so that it is not lost if the worker is killed."""

    directory: Path  # of the campaign
    number: int  # of the worker

    def write(self, generator: str, data: bytes) -> None:
        """Begin to execute an input. Raises StorageError."""
        path = self._path(generator)
        with workdir.writing(path):
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)

    def clear(self, generator: str) -> None:
        """End the execution of an input."""
        self._path(generator).unlink(missing_ok=True)

    def _path(self, generator: str) -> Path:
        return self.directory / "inputs" / f"{generator}.{self.number}.current"


def left_inputs(directory: Path, number: int | None = None) -> list[str]:
    """Store the inputs that workers were executing when they were killed, and return the names of their cases.

    They are those of one number, or of all while no worker runs. Raises StorageError.
    """
    names = []
    for path in (directory / "inputs").glob(f"*.{'*' if number is None else number}.current"):
        data = path.read_bytes()
        store_input(directory, data)
        path.unlink()
        names.append(f"{PREFIX}/{path.name.partition('.')[0]}/{input_name(data)}")
    return names


def stored_input(directory: Path, name: str) -> bytes | None:
    """Return an input that a campaign stored, or None."""
    with suppress(FileNotFoundError):
        return (directory / "inputs" / name).read_bytes()
    return None
