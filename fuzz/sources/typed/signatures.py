"""Forms: ways to write an expression from others, as templates of SQL with types, polymorphic ones among them."""

from dataclasses import dataclass
from string import Formatter
from typing import Final

from fuzz.sources.typed.datatypes import DataType

_ARITHMETIC: Final = frozenset("+-*/%")


@dataclass(frozen=True, slots=True)
class Signature:
    """A template with a hole {} for each argument. `small`: numbers must be, as they say how large the result is."""

    template: str
    arguments: tuple[str, ...]  # keys of types
    result: str
    small: bool = False

    def sql(self, arguments: list[str]) -> str:
        """Return the expression with such arguments."""
        return self.template.format(*arguments)


def call(name: str, form: str, arguments: tuple[str, ...], key: str, result: DataType | None) -> Signature:
    """Return a row of calls.sql as a form; `result` is None where it is polymorphic."""
    is_long = result is None or result.long
    if form == "cast":
        return Signature(f"({{}})::{result.name if result else key}", arguments, key)
    if form == "prefix":
        return Signature(f"({name} {{}})", arguments, key)
    if form == "infix":
        divisor = "nullif({}, 0)" if name in "/%" else "{}"
        return Signature(f"({{}} {name} {divisor})", arguments, key, is_long and name not in _ARITHMETIC)
    return Signature(f"{name}({', '.join('{}' for _ in arguments)})", arguments, key, form == "set" or is_long)


def syntax(result: str, template: str) -> Signature:
    """Return the form of a template whose holes name types, as {text} does."""
    parts = [(text, key) for text, key, _, _ in Formatter().parse(template)]
    written = "".join(f"{text}{'{}' if key else ''}" for text, key in parts)
    return Signature(written, tuple(key for _, key in parts if key), result)
