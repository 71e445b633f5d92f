"""Signatures of expressions: SQL templates with argument and result types."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from string import Formatter


@dataclass(frozen=True, slots=True)
class Signature:
    """A template with a placeholder {} per argument.

    Types are names: families of a generator's types, or keys of an arm's types, which may be polymorphic. `small`:
    numbers determine the size of the result, so they must be small.
    """

    template: str
    arguments: tuple[str, ...]
    result: str
    small: bool = False

    def sql(self, arguments: Sequence[str], **options: str) -> str:
        """Return the expression with these arguments, and values of the template's other placeholders."""
        return self.template.format(*arguments, **options)


def syntax(result: str, template: str, options: Collection[str] = ()) -> Signature:
    """Return the signature for a template whose placeholders name types, such as {text}, or one of the options."""
    parts = [(text, key or "") for text, key, _, _ in Formatter().parse(template)]
    written = "".join(text + (f"{{{key if key in options else ''}}}" if key else "") for text, key in parts)
    return Signature(written, tuple(key for _, key in parts if key and key not in options), result)
