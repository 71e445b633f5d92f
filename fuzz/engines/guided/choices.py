"""Random choices that are read from bytes, so that who changes a byte changes one choice of a generator."""

import random


class ByteChoices(random.Random):
    """A source of random choices that reads bytes, as few for each choice as its range needs.

    After the last byte, each choice is zero, the simplest one (fuzz/generators/choices.py). So fewer bytes make a
    smaller case.
    """

    def __init__(self, data: bytes) -> None:
        super().__init__(0)
        self._data = data
        self._read = 0

    @property
    def read(self) -> int:
        """Return the number of bytes that choices have taken so far, including those beyond the end."""
        return self._read

    def getrandbits(self, k: int) -> int:
        """Return a number of `k` bits."""
        size = (k + 7) // 8
        taken = self._data[self._read : self._read + size]
        self._read += size
        return int.from_bytes(taken.ljust(size, b"\0"), "big") >> (8 * size - k)

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
