"""Discovery of a package's classes by its files, so that a new class needs no entry in a list."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import ClassVar, Protocol, TypeVar


class _Named(Protocol):
    name: ClassVar[str]


T = TypeVar("T", bound=_Named)


def instances(base: type[T], package: ModuleType) -> tuple[T, ...]:
    """Return an instance of each concrete subclass of `base` defined in the package, sorted by name."""
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
    kinds = (kind for kind in _concrete(base) if kind.__module__.startswith(package.__name__))
    return tuple(sorted((kind() for kind in kinds), key=lambda instance: instance.name))


def _concrete(base: type[T]) -> Iterator[type[T]]:
    for kind in base.__subclasses__():
        if not inspect.isabstract(kind):
            yield kind
        yield from _concrete(kind)
