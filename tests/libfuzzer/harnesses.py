"""The type of the harness fixture, and a check of runs."""

from pathlib import Path
from typing import Protocol

from fuzz.engines.libfuzzer.run import HarnessRun

TOP = Path(__file__).parents[2]


class Harness(Protocol):
    """A function that builds a harness for a shipped arm or a directory of patches, with or without an injected bug."""

    def __call__(self, name: str, *, bug: Path | None = None, arm: str = "patched") -> Path: ...


def assert_clean(run: HarnessRun) -> None:
    assert run.crash is None, f"{run.message}: {run.crash}"
