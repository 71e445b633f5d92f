"""What tests of native harnesses share."""

from pathlib import Path
from typing import Protocol

from fuzz.engines.libfuzzer.run import HarnessRun

TOP = Path(__file__).parents[2]


class Harness(Protocol):
    """Builds a harness for a shipped arm or a directory of patches, perhaps with an injected bug on top."""

    def __call__(self, name: str, *, bug: Path | None = None, arm: str = "patched") -> Path: ...


def assert_clean(run: HarnessRun) -> None:
    assert run.crash is None, f"{run.complaint}: {run.crash}"
