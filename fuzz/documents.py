"""Documents: dataclasses as JSON and back, by cattrs. The classes are the schema and do not depend on the storage.

Missing fields get their defaults; unknown data is ignored. So documents of older versions can be read. Cases of older
versions are converted to the current form. Values are never coerced. JSON has bytes as base64, and a counter as sorted
rows [*key, count].
"""

import base64
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final, TypeVar, get_args, get_origin

from cattrs import BaseValidationError, Converter, transform_error
from cattrs.gen import make_dict_structure_fn

from fuzz.errors import PgduelError
from oracles.model.case import Case, SameRows, Step
from oracles.model.mode import Mode

_T = TypeVar("_T")
_Rows = list[list[Any]]

# In cases of older versions: modes without settings, for which cases and runs have fields today.
_SAMPLES: Final = frozenset(
    {
        *("repeated", "explained", "rewritten", "planned", "partitioned", "filtered", "replanned", "transformed"),
        *("folded", "pivoted", "changed", "estimated", "reported"),
    }
)
_OF_RUNS: Final = re.compile(r"sampled by name|again \d+|round \d+ of step \d+")
# In cases of older versions: tags of a query with the same rows as the step before, in general and in this scene.
_AS_BEFORE: Final = "as before"
_OF_THIS_SCENE: Final = "of this scene"


class DocumentError(PgduelError):
    """Data that is no document of the expected class."""


def to_data(document: object) -> Any:
    """Return a document as data that JSON can represent: dictionaries, sequences, strings, numbers."""
    return _CONVERTER.unstructure(document)


def to_changes(document: object) -> dict[str, Any]:
    """Return the data of a document's fields that differ from their defaults."""
    changes: dict[str, Any] = _CHANGES.unstructure(document)
    return changes


def from_data(data: Any, kind: type[_T]) -> _T:
    """Return a document of a class from the data that `to_data` made. Raises DocumentError."""
    try:
        return _CONVERTER.structure(data, kind)
    except (BaseValidationError, TypeError, ValueError) as error:
        raise DocumentError(f"not a {kind.__name__}: {transform_error(error, 'data')[0]}") from error


def dumps(document: object) -> str:
    """Return a document as JSON in ASCII, which keeps characters that UTF-8 lacks (lone surrogates)."""
    return json.dumps(to_data(document))


def loads(text: str, kind: type[_T]) -> _T:
    """Return a document of a class from the JSON that `dumps` wrote. Raises DocumentError."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise DocumentError(f"not a {kind.__name__}: no JSON ({error})") from error
    return from_data(data, kind)


def _primitive(value: Any, kind: type) -> Any:
    if not isinstance(value, (int, float) if kind is float else kind):
        raise TypeError(f"expected {kind.__name__}, not {type(value).__name__}")
    return value


def _is_counter(kind: Any) -> bool:
    return get_origin(kind) is Counter


def _rows(counter: Counter[Any]) -> _Rows:
    return [[*(key if isinstance(key, tuple) else (key,)), count] for key, count in sorted(counter.items())]


def _counter_reader(kind: Any) -> Callable[[_Rows, Any], Counter[Any]]:
    of_tuples = get_origin(get_args(kind)[0]) is tuple

    def read(rows: _Rows, _: Any) -> Counter[Any]:
        return Counter({tuple(key) if of_tuples else key[0]: count for *key, count in rows})

    return read


def current(case: Case) -> Case:
    """Return a case with fields for the modes and tags of earlier versions. A current case is returned unchanged."""
    samples = tuple(mode.name for mode in case.modes if _is_bare(mode) and mode.name in _SAMPLES)
    modes = tuple(mode for mode in case.modes if not (_is_bare(mode) and _was_a_flag(mode.name)))
    scene, steps = (tuple(map(_current_step, part)) for part in (case.scene, case.steps))
    return replace(case, scene=scene, steps=steps, modes=modes, samples=(*case.samples, *samples))


def _current_step(step: Step) -> Step:
    if _AS_BEFORE not in step.tags:
        return step
    tags = tuple(tag for tag in step.tags if tag not in (_AS_BEFORE, _OF_THIS_SCENE))
    return replace(
        step, tags=tags, same_rows=SameRows.BY_CONTENT if _OF_THIS_SCENE in step.tags else SameRows.BY_MEANING
    )


def _was_a_flag(name: str) -> bool:
    return name in _SAMPLES or _OF_RUNS.fullmatch(name) is not None


def _is_bare(mode: Mode) -> bool:
    return not mode.settings and mode.protocol is None


def _made(*, omit_if_default: bool = False) -> Converter:
    converter = Converter(omit_if_default=omit_if_default)
    for kind in (str, int, float, bool):
        converter.register_structure_hook(kind, _primitive)
    converter.register_structure_hook(StrEnum, lambda value, kind: kind(value))  # cattrs would take it for a string
    converter.register_structure_hook(bytes, lambda text, _: base64.b64decode(text, validate=True))
    converter.register_unstructure_hook(bytes, lambda value: base64.b64encode(value).decode("ascii"))
    converter.register_structure_hook_factory(_is_counter, _counter_reader)
    read_case = make_dict_structure_fn(Case, converter)
    converter.register_structure_hook(Case, lambda data, kind: current(read_case(data, kind)))
    converter.register_unstructure_hook_func(_is_counter, _rows)
    return converter


_CONVERTER = _made()
_CHANGES = _made(omit_if_default=True)
