"""Discovery of a package's classes and constants by its files, so that a new one needs no entry in a list."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Iterator
from functools import cache
from types import ModuleType
from typing import Protocol, TypeVar


class _Named(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=_Named)


def instances(base: type[T], package: ModuleType) -> tuple[T, ...]:
    """Return an instance of each concrete subclass of `base` defined in the package, sorted by name."""
    _modules(package)
    return instances_below(base, package.__name__)


def instances_below(base: type[T], prefix: str) -> tuple[T, ...]:
    """Return an instance of each concrete subclass of `base` in imported modules of this prefix, sorted by name."""
    return _sorted(kind() for kind in _concrete(base) if kind.__module__.startswith(prefix))


def constants(kind: type[T], package: ModuleType) -> tuple[T, ...]:
    """Return each constant of this class in the modules of a package, sorted by name."""
    return _sorted(value for module in _modules(package) for value in vars(module).values() if isinstance(value, kind))


@cache  # each case of a campaign looks its generator up
def _modules(package: ModuleType) -> tuple[ModuleType, ...]:
    """Import the modules of a package."""
    found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return tuple(importlib.import_module(module.name) for module in found)


def _concrete(base: type[T]) -> Iterator[type[T]]:
    for kind in base.__subclasses__():
        if not inspect.isabstract(kind):
            yield kind
        yield from _concrete(kind)


def _sorted(named: Iterable[T]) -> tuple[T, ...]:
    return tuple(sorted(named, key=lambda each: each.name))
