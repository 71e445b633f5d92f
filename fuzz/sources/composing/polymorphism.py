"""Polymorphism: which types a form's polymorphic ones stand for, given one of them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from fuzz.sources.composing.datatypes import DataType
from fuzz.sources.composing.forms import Form

_ELEMENTS: Final = frozenset({"anyelement", "anynonarray", "anyenum", "anycompatible", "anycompatiblenonarray"})
_ARRAYS: Final = frozenset({"anyarray", "anycompatiblearray"})
_RANGES: Final = frozenset({"anyrange", "anycompatiblerange"})
_MULTIRANGES: Final = frozenset({"anymultirange", "anycompatiblemultirange"})
POLYMORPHIC: Final = _ELEMENTS | _ARRAYS | _RANGES | _MULTIRANGES


class Polymorphism:
    """The types of an arm by what they are made of."""

    def __init__(self, types: Mapping[str, DataType]) -> None:
        self._types = types
        self._made: dict[tuple[str, str], DataType] = {}
        for type_ in types.values():
            if type_.kind in "arm":
                self._made.setdefault((type_.kind, type_.parts[0]), type_)

    def element(self, type_: DataType) -> DataType:
        """Return what an array, range, multirange or domain is made of in the end; else the type itself."""
        while type_.kind in "armd":
            type_ = self._types[type_.parts[0]]
        return type_

    def array(self, element: DataType) -> DataType | None:
        """Return the type of arrays of such elements."""
        return self._made.get(("a", element.key))

    def resolved(self, form: Form, wanted: DataType, some: DataType) -> Form | None:
        """Return the form with the result wanted; `some` type is what the others are made of, if that leaves it open.

        None where there are no such types.
        """
        if POLYMORPHIC.isdisjoint((form.result, *form.arguments)):
            return form if form.result == wanted.key else None
        element = self._element_of(form.result, wanted, some)
        if element is None or element.kind == "d":
            return None
        arguments = [self._argument(key, element, wanted) for key in form.arguments]
        found = tuple(each.key for each in arguments if each is not None)
        return replace(form, arguments=found, result=wanted.key) if len(found) == len(arguments) else None

    def _element_of(self, result: str, wanted: DataType, some: DataType) -> DataType | None:
        if result in _ELEMENTS:
            return wanted
        if (result in _ARRAYS and wanted.kind == "a") or (result in _RANGES and wanted.kind == "r"):
            return self._types[wanted.parts[0]]
        if result in _MULTIRANGES and wanted.kind == "m":
            return self.element(wanted)
        return self.element(some) if result == wanted.key else None

    def _argument(self, key: str, element: DataType, wanted: DataType) -> DataType | None:
        if key in _ELEMENTS:
            unfit = (key == "anyenum" and element.kind != "e") or (key.endswith("nonarray") and element.kind == "a")
            return None if unfit else element
        if key in _ARRAYS:
            return self.array(element)
        if key not in _RANGES | _MULTIRANGES:
            return self._types.get(key)
        range_ = self._range(element, wanted)
        return range_ if range_ is None or key in _RANGES else self._made.get(("m", range_.key))

    def _range(self, element: DataType, wanted: DataType) -> DataType | None:
        """Return the range type that the result is, or is made of; else one over the element."""
        if wanted.kind == "m":
            wanted = self._types[wanted.parts[0]]
        is_over = wanted.kind == "r" and wanted.parts[0] == element.key
        return wanted if is_over else self._made.get(("r", element.key))
