"""Source of constants of the types that the server lists."""

import random
from typing import ClassVar

from fuzz.generators.choices import pick
from fuzz.generators.generator import Scale
from fuzz.sources.source import Source, UserInput
from oracles.model.case import Case, Kind, Step

_TYPES = "SELECT typname FROM pg_type WHERE typcategory = 'N' AND typname LIKE 'int_' ORDER BY typname"


class AddedSource(Source):
    """Constants of the integer types that the server lists."""

    name: ClassVar[str] = "added_source"

    @classmethod
    def lacks(cls, given: UserInput) -> str:
        """Return ""."""
        return ""

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case. Raises ServerError."""
        with self.target.session(()) as connection:
            types = [name for (name,) in connection.execute(_TYPES)]
        steps = (
            Step(f"SELECT {rng.randrange(100)}::{pick(rng, types)}", Kind.QUERY) for _ in range(scale.queries // 4)
        )
        return Case(self.name, (), tuple(steps))
