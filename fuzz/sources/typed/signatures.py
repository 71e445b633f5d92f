"""Signatures of expressions: SQL templates with argument and result types, which may be polymorphic."""

from dataclasses import dataclass
from string import Formatter
from typing import Final

from fuzz.sources.typed.datatypes import DataType

_ARITHMETIC: Final = frozenset("+-*/%")


@dataclass(frozen=True, slots=True)
class Signature:
    """A template with a placeholder {} per argument.

    `small`: numbers determine the size of the result, so they must be small.
    """

    template: str
    arguments: tuple[str, ...]  # keys of types
    result: str
    small: bool = False

    def sql(self, arguments: list[str]) -> str:
        """Return the expression with these arguments."""
        return self.template.format(*arguments)


def call(name: str, form: str, arguments: tuple[str, ...], key: str, result: DataType | None) -> Signature:
    """Return the signature for a row of calls.sql. `result` is None if it is polymorphic."""
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
    """Return the signature for a template whose placeholders name types, such as {text}."""
    parts = [(text, key) for text, key, _, _ in Formatter().parse(template)]
    written = "".join(f"{text}{'{}' if key else ''}" for text, key in parts)
    return Signature(written, tuple(key for _, key in parts if key), result)
