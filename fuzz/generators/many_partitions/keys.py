"""Join keys: their types, and expressions that preserve the equality of keys."""

import random
from dataclasses import dataclass

from fuzz.generators.choices import Weighted, chance, pick
from fuzz.generators.sql.sqltypes import DATE, INT2, INT4, INT8, NUMERIC, TEXT, TIMESTAMP, UUID, VARCHAR, Type

VOLATILE = "same"  # function that returns its argument, although the planner must not rely on that


@dataclass(frozen=True, slots=True)
class Key:
    """A kind of join key: its types, one per table, and expressions in which {} stands for the key."""

    types: tuple[Type, ...]
    forms: tuple[str, ...]
    collation: str = ""  # another collation, under which the same columns form another class

    def form(self, rng: random.Random) -> str:
        """Return an expression for both sides of an equality, mostly the key itself."""
        return pick(rng, self.forms) if chance(rng, 15) else "{}"

    def volatile(self, column_type: Type) -> str:
        """Return a volatile expression that equals the key."""
        return f"{VOLATILE}({{}})::{column_type.name}"

    @property
    def function(self) -> str:
        """Return the statement that creates the volatile function."""
        name = self.types[0].name if len(self.types) == 1 else _WIDEST[self.types[0].family]
        return f"CREATE FUNCTION {VOLATILE}({name}) RETURNS {name} LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN $1; END'"


_WIDEST = {"int": "int8", "text": "text", "date": "timestamp", "numeric": "numeric", "uuid": "uuid"}
_NUMBERS = ("({} % 7)", "abs({})", "({} + 1)", "coalesce({}, -1)")
_TEXTS = ("lower({})", "({} || 'x')", "coalesce({}, '')", "left({}, 5)")

KEYS = Weighted(
    (34, Key((INT4,), _NUMBERS)),
    (26, Key((INT4, INT8, INT2), _NUMBERS)),
    (10, Key((TEXT, VARCHAR), _TEXTS)),
    (8, Key((TEXT,), _TEXTS, '"POSIX"')),
    (8, Key((DATE, TIMESTAMP), ("({} + INTERVAL '1 day')", "coalesce({}, DATE '2024-01-01')"))),
    (8, Key((NUMERIC,), ("({} + 1.0)", "abs({})", "({} * 2)"))),
    (6, Key((UUID,), ("coalesce({}, NULL)", "({}::text)"))),
)
