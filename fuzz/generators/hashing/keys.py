"""Kinds of join key: the types that meet, the collation they are compared under, and expressions to join by."""

from dataclasses import dataclass, replace

from fuzz.generators.choices import Weighted
from fuzz.generators.relational.sqltypes import (
    DATE,
    INT2,
    INT4,
    INT8,
    NUMERIC,
    PAIR,
    TEXT,
    UUID,
    VARCHAR,
    Type,
)

_ROOT = '"und-x-icu"'
_FOLDING = "folding"
_MAKE_FOLDING = f"CREATE COLLATION {_FOLDING} (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
_MAKE_PAIR = "CREATE TYPE pair AS (a int4, b int4)"
_LONG = 60  # times that a long key repeats itself: 300 bytes, far more than the planner's usual guess

_LONG_TEXT = replace(TEXT, embedding=f"repeat({TEXT.embedding}, {_LONG})", text=lambda n: TEXT.text(n) * _LONG)
# Of a family of their own: what makes text of them might not treat equal ones alike.
_LOWER = replace(TEXT, family="folded").collated(_FOLDING)
_UPPER = replace(_LOWER, embedding=f"upper({TEXT.embedding})", text=lambda n: TEXT.text(n).upper())

_INTEGER_FORMS = ("{} + 1", "{} * 2", "abs({})", "{} * 1.5", "{}::int8", "{}::numeric")
_TEXT_FORMS = ("lower({})", "{} || '.'", "md5({})", "{}::varchar")


@dataclass(frozen=True, slots=True)
class Key:
    """A kind of join key. Tables of a case have its types in turn; equal integers embed into equal values of all."""

    name: str
    types: tuple[Type, ...]
    forms: tuple[str, ...]  # expressions that differ where keys differ, and never fail
    needs: tuple[str, ...] = ()  # statements that make what the types need
    text: Type = TEXT  # of the other texts in the case: two collations must not meet

    @property
    def crosses(self) -> bool:
        """Tell whether unlike types meet."""
        return len(self.types) > 1

    @property
    def mixes(self) -> bool:
        """Tell whether keys may be shown, grouped and merged at will: equal ones are the same bytes."""
        return self.types[0].family != "folded"


KEYS = Weighted(
    (10, Key("int4", (INT4,), _INTEGER_FORMS)),
    (8, Key("int2", (INT2,), _INTEGER_FORMS)),
    (8, Key("int8", (INT8,), _INTEGER_FORMS)),
    (8, Key("int_cross", (INT4, INT8, INT2), _INTEGER_FORMS)),
    (8, Key("numeric", (NUMERIC,), ("{} + 0.5", "(-{})", "abs({})", "{} * 2"))),
    (8, Key("text", (TEXT,), _TEXT_FORMS)),
    (8, Key("text_cross", (TEXT, VARCHAR), _TEXT_FORMS)),
    (8, Key("text_long", (_LONG_TEXT,), _TEXT_FORMS)),
    (8, Key("text_icu", (TEXT.collated(_ROOT),), _TEXT_FORMS, text=TEXT.collated(_ROOT))),
    (8, Key("text_folded", (_LOWER, _UPPER), ("lower({})", "{} || '.'"), (_MAKE_FOLDING,))),
    (8, Key("uuid", (UUID,), ("{}::text",))),
    (8, Key("date", (DATE,), ("{} + 1", "{}::timestamp", "({} - DATE '2024-01-01')"))),
    (8, Key("pair", (PAIR,), ("({0}).a * 10 + ({0}).b",), (_MAKE_PAIR,))),
)
