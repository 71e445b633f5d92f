"""Manifest: a TOML file that describes the features of a series, and the patches that keep plans.

docs/manifest.md has the keys. The file is `manifest.toml` beside the patches, or the value of --manifest.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from fuzz.errors import SourceError
from oracles.model.feature import JOIN_TYPES, Branch, Feature, Formula, Invariant

FILE: Final = "manifest.toml"
_NAME: Final = re.compile(r"[a-z]\w*")
_SHOWN: Final = 60  # characters of a wrong value in a message
Made = TypeVar("Made")
Default = TypeVar("Default")


@dataclass(frozen=True, slots=True)
class Manifest:
    """The features of a series, and its plan-neutral patches as parts of their names."""

    path: Path
    features: tuple[Feature, ...] = ()
    plan_neutral: tuple[str, ...] = ()
    all_plan_neutral: bool = False

    def is_plan_neutral(self, patch: str) -> bool:
        """Return whether the manifest declares a patch plan-neutral."""
        return self.all_plan_neutral or any(part in patch for part in self.plan_neutral)

    def require_patches(self, *patches: Iterable[str]) -> None:
        """Raise SourceError if a part fits two patches of one series, or none of any."""
        series = [sorted(names) for names in patches]
        for part in self.plan_neutral:
            fitting = [[name for name in names if part in name] for names in series]
            if several := next((found for found in fitting if len(found) > 1), None):
                what = f"fits {len(several)} patches, {', '.join(several)}; write a longer part of one's name"
                raise SourceError(f"{self.path}: plan_neutral: {part!r} {what}")
            if not any(fitting):
                names = ", ".join(dict.fromkeys(name for each in series for name in each))
                raise SourceError(f"{self.path}: plan_neutral: {part!r} fits no patch; write a part of one of: {names}")


def read_manifest(path: Path) -> Manifest:
    """Read a manifest. Raises SourceError with the file, the key, the fault and the remedy."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SourceError(f"{path}: is no TOML: {error}") from error
    top = _Table(path, "", data)
    neutral = top.get("plan_neutral", (), _neutral, "true, false, or a list of parts of patches' names")
    features = tuple(_feature(each) for each in top.tables("features"))
    top.done()
    _require_distinct(path, "features", [feature.name for feature in features])
    if isinstance(neutral, bool):
        return Manifest(path, features, all_plan_neutral=neutral)
    return Manifest(path, features, plan_neutral=neutral)


@dataclass(slots=True)
class _Table:
    """A table of the file. Its keys are read one by one; `done` refuses the others.

    Readers of values raise TypeError for a value of a wrong kind, or ValueError with a text that tells more.
    """

    path: Path
    key: str  # the table's own key, with a dot at its end
    data: dict[str, Any]
    taken: list[str] = field(default_factory=list)

    def require(self, key: str, read: Callable[[Any], Made], wanted: str) -> Made:
        """Return the value of a required key."""
        self.taken.append(key)
        if key not in self.data:
            raise self.wrong(key, f"is missing; write {wanted}")
        try:
            return read(self.data[key])
        except (TypeError, ValueError) as error:
            raise self.wrong(key, str(error) or f"is {_shown(self.data[key])}; write {wanted}") from error

    def get(self, key: str, default: Default, read: Callable[[Any], Made], wanted: str) -> Made | Default:
        """Return the value of a key, or the default."""
        if key in self.data:
            return self.require(key, read, wanted)
        self.taken.append(key)
        return default

    def tables(self, key: str) -> list["_Table"]:
        """Return the tables of a list of tables."""
        found = self.get(key, (), _tables, f"[[{self._header(key)}]] above each of them")
        return [_Table(self.path, f"{self.key}{key}[{number}].", each) for number, each in enumerate(found, 1)]

    def _header(self, key: str) -> str:
        return re.sub(r"\[\d+\]", "", self.key) + key

    def done(self) -> None:
        """Raise SourceError if the table has another key."""
        for key in self.data:
            if key not in self.taken:
                raise self.wrong(key, f"is no key here; give one of {', '.join(self.taken)}")

    def wrong(self, key: str, what: str) -> SourceError:
        """Return the error with file and key."""
        return SourceError(f"{self.path}: {self.key}{key}: {what}")


def _feature(table: _Table) -> Feature:
    name = table.require("name", _name, "a name in lower case, of letters, digits and _")
    feature = Feature(
        name,
        title=table.get("title", name, _text, "a text"),
        setting=table.get("setting", "", _text, "the name of a setting").lower(),
        force=table.get("force", (), _settings, '{ setting = "value" }'),
        off=table.get("off", (), _settings, '{ setting = "value" }'),
        nodes=table.get("nodes", (), _texts, 'a list of node types such as "Hash Join"'),
        group=table.get("group", "", _text, "a field of EXPLAIN"),
        joins=table.get("joins", (), _joins, f"a list of: {', '.join(JOIN_TYPES)}"),
        counters=table.get("counters", (), _texts, "a list of counters of reach"),
        branches=tuple(_branch(each) for each in table.tables("branches")),
        invariants=tuple(_invariant(each) for each in table.tables("invariants")),
        manifest=str(table.path),
    )
    table.done()
    _require_distinct(table.path, f"{table.key}branches", [branch.name for branch in feature.branches])
    return feature


def _branch(table: _Table) -> Branch:
    branch = Branch(
        table.require("name", _name, "a name in lower case, of letters, digits and _"),
        table.require("when", _formulas, 'a formula such as "Rows Discarded > 0", or a list of them'),
        table.get("joins", (), _joins, f"a list of: {', '.join(JOIN_TYPES)}"),
        table.get("expected", True, _truth, "true or false"),
    )
    table.done()
    return branch


def _invariant(table: _Table) -> Invariant:
    invariant = Invariant(
        table.require("name", _text, "what holds, in words"),
        table.require("holds", _formulas, 'a formula such as "Rows Discarded <= Probes", or a list of them'),
        table.get("joins", (), _joins, f"a list of: {', '.join(JOIN_TYPES)}"),
    )
    table.done()
    return invariant


def _require_distinct(path: Path, key: str, names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise SourceError(f"{path}: {key}: two have the name {name!r}; give each its own name")


def _shown(value: Any) -> str:
    text = "true" if value is True else "false" if value is False else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError
    return value


def _name(value: Any) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise TypeError
    return value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError
    return tuple(map(_text, value))


def _neutral(value: Any) -> tuple[str, ...] | bool:
    return value if isinstance(value, bool) else _texts(value)


def _joins(value: Any) -> tuple[str, ...]:
    if not set(joins := _texts(value)) <= set(JOIN_TYPES):
        raise TypeError
    return joins


def _settings(value: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict):
        raise TypeError
    return tuple((name, _text(setting)) for name, setting in value.items())


def _formulas(value: Any) -> tuple[Formula, ...]:
    texts = [value] if isinstance(value, str) else _texts(value)
    formulas = []
    for text in texts:
        try:
            formulas.append(Formula.parse(text))
        except ValueError as error:
            raise ValueError(f"{text!r} is no formula: {error}") from error
    if not formulas:
        raise TypeError
    return tuple(formulas)


def _tables(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise TypeError
    return value
