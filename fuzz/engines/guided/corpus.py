"""Corpora: for each generator a directory of inputs that reached new edges, where the next run begins.

libFuzzer adds inputs, names each by the SHA-1 of its bytes, and replaces one by a smaller one with the same edges.
"""

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fuzz import workdir

MAXIMUM: Final = 400  # inputs of a corpus at the start of a run, which begins by executing all of them


def input_name(data: bytes) -> str:
    """Return the name of an input, as libFuzzer forms it."""
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()


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

    def read(self, name: str) -> bytes | None:
        """Return an input, or None if the corpus does not have it."""
        with suppress(FileNotFoundError):
            return (self.directory / name).read_bytes()
        return None

    def begin(self, added: Iterable[bytes]) -> frozenset[str]:
        """Prepare the corpus for a driver, with some more inputs; return the names of all.

        The largest ones are deleted beyond `MAXIMUM`.
        """
        sizes = self.sizes()
        for name in sorted(sizes, key=lambda name: (sizes[name], name))[MAXIMUM:]:
            self.delete(name)
        for data in added:
            with workdir.writing(self.directory):
                (self.directory / input_name(data)).write_bytes(data)
        return frozenset(self.sizes())

    def delete(self, name: str) -> None:
        """Delete an input, if it is still there."""
        (self.directory / name).unlink(missing_ok=True)
