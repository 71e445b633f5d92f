"""What scenes have besides their tables: types, sequences, functions, the audit trail. Each only where it is used."""

import re
from collections.abc import Iterable

from fuzz.generators.copying.many_references import HELPERS
from fuzz.generators.copying.table import REFERENCES
from fuzz.generators.copying.tables import DEFAULT_HELPERS
from fuzz.generators.copying.triggers import AUDIT
from fuzz.generators.copying.values import USER_TYPES
from oracles.case import Step

PROLOGUE = (
    *USER_TYPES,
    *DEFAULT_HELPERS,
    AUDIT,
    "CREATE TABLE ref (id int4 PRIMARY KEY, note text)",
    f"INSERT INTO ref SELECT g, 'note ' || g FROM generate_series(1, {REFERENCES}) g",
    *HELPERS,
)
_NAME = re.compile(r"(?:CREATE (?:OR REPLACE )?\w+|INSERT INTO) (\w+)")


def needed(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Return those steps of the prologue whose object is named in the steps, or in what they need in turn."""
    words = {word for step in steps for word in re.findall(r"\w+", step.sql)}
    kept = []
    for statement in reversed(PROLOGUE):
        named = _NAME.match(statement)
        if named and named[1] in words:
            kept.append(Step(statement))
            words.update(re.findall(r"\w+", statement))
    return tuple(reversed(kept))
