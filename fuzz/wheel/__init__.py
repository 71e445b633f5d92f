"""The package `pgduel` of a wheel: the parts of the checkout in `tree`, so that users keep the name `fuzz`."""

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    """Return `given_cases` for tests of users; pytest is imported only then."""
    if name != "given_cases":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module("pgduel.pytest_plugin").given_cases
