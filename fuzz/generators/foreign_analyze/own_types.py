"""Own types for `local`: each storage of values, with each set of operators, and one whose values are not analyzed.

A type takes its functions from a built-in type with the same storage. ANALYZE computes other statistics for a type
without operators, with equality, and with order.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from fuzz.generators.choices import chance, pick
from oracles.model.case import Step

_ORDERED: Final = "btree"
_METHODS: Final = ("", "hash", _ORDERED)  # with an operator class
_OPERATORS: Final = {"<": "lt", "<=": "le", "=": "eq", ">=": "ge", ">": "gt"}


@dataclass(frozen=True, slots=True)
class OwnType:
    """A type, its built-in functions, and a value by number. {0} stands for the end of a function's name."""

    name: str
    storage: str
    representation: str  # input and output
    comparison: str  # <, <=, >= and >
    equality: str
    order: str
    hash: str
    value: str


OWN_TYPES: Final = (
    OwnType("own_number", "INTERNALLENGTH = 4, PASSEDBYVALUE, ALIGNMENT = int4", "int4{0}", "int4{0}", "int4eq",
        "btint4cmp", "hashint4", "({})::text"),
    OwnType("own_code", "INTERNALLENGTH = 16, ALIGNMENT = char", "uuid_{0}", "uuid_{0}", "uuid_eq", "uuid_cmp",
        "uuid_hash", "md5(({})::text)"),
    OwnType("own_name", "INTERNALLENGTH = -2, ALIGNMENT = char, COLLATABLE = true", "cstring_{0}", "name{0}", "nameeq",
        "btnamecmp", "hashname", "repeat('n' || ({}), 1 + g % 4)"),
    OwnType("own_text", "INTERNALLENGTH = variable, STORAGE = external, COLLATABLE = true", "text{0}", "text_{0}",
        "texteq", "bttextcmp", "hashtext", "repeat('t' || ({}), 1 + g % 4 * 700)"),
)  # fmt: skip


def created(rng: random.Random, own: OwnType) -> Iterator[Step]:
    """Yield the statements that create the type."""
    name = own.name
    yield Step(f"CREATE TYPE {name}")
    yield _function(f"{name}_in(cstring)", name, own.representation.format("in"))
    yield _function(f"{name}_out({name})", "cstring", own.representation.format("out"))
    storage = own.storage
    if chance(rng, 20):
        # It returns false, so ANALYZE omits the column.
        yield _function(f"{name}_omitted(internal)", "bool", "pg_is_in_recovery")
        storage += f", ANALYZE = {name}_omitted"
    yield Step(f"CREATE TYPE {name} (INPUT = {name}_in, OUTPUT = {name}_out, {storage})", tags=("local.own_type",))
    if method := pick(rng, _METHODS):
        yield from _operator_class(own, method)


def _operator_class(own: OwnType, method: str) -> Iterator[Step]:
    name, ordered = own.name, method == _ORDERED
    members = []
    for number, (symbol, end) in enumerate(_OPERATORS.items() if ordered else (("=", "eq"),), 1):
        yield _function(
            f"{name}_{end}({name}, {name})", "bool", own.equality if symbol == "=" else own.comparison.format(end)
        )
        yield Step(f"CREATE OPERATOR {symbol} (LEFTARG = {name}, RIGHTARG = {name}, FUNCTION = {name}_{end})")
        members.append(f"OPERATOR {number} {symbol}")
    arguments = f"{name}, {name}" if ordered else name
    yield _function(f"{name}_support({arguments})", "int4", own.order if ordered else own.hash)
    members.append(f"FUNCTION 1 {name}_support({arguments})")
    yield Step(f"CREATE OPERATOR CLASS {name}_class DEFAULT FOR TYPE {name} USING {method} AS {', '.join(members)}")


def _function(signature: str, result: str, builtin: str) -> Step:
    return Step(
        f"CREATE FUNCTION {signature} RETURNS {result} LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS '{builtin}'"
    )
