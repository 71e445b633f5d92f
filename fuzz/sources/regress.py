"""Source `regress`: files of src/test/regress or contrib, with the statements of other files that they need.

Arms are compared with each other, not with expected files, so any settings are possible. At first, each file runs once
under each mode of `rounds`. Later, random files run under random modes.
"""

import random
from typing import ClassVar, Final

from fuzz.errors import CaseError
from fuzz.generators.choices import pick
from fuzz.generators.generator import Scale
from fuzz.sources.context import UserInput
from fuzz.sources.determinism.catalog import Catalog
from fuzz.sources.scripts.psql import Sent
from fuzz.sources.scripts.roles import Roles
from fuzz.sources.scripts.steps import Stager
from fuzz.sources.scripts.suites import REGRESS, Suite, file_of, parsed, set_up, suites
from fuzz.sources.source import Source
from oracles.model.case import Case, Step

_STATEMENTS: Final = 100  # statements per unit of scale.queries; at the default scale, more than in the longest file


class Regress(Source):
    """Files of PostgreSQL's own regression tests, under various settings."""

    name: ClassVar[str] = "regress"
    cpu_seconds: ClassVar[float] = 2.8
    modes: ClassVar[tuple[str, ...]] = (
        "plain",
        "small_memory",
        "hash_spilling",
        "hash_spilling+features_forced",
        "hash_spilling+partitionwise",
        "merge_only",
        "loop_only",
        "no_loops",
        "indexes",
        "no_pruning",
        "genetic",
        "parallel",
        "extended",
        "prepared_generic",
        "cursor",
    )

    rounds: ClassVar[tuple[str, ...]] = (
        "plain",
        "small_memory",
        "partitionwise",
        "merge_only",
        "loop_only",
        "parallel",
        "hash_spilling+features_forced",
    )

    @classmethod
    def lacks(cls, given: UserInput) -> str:
        """Return "", because each base has its tests."""
        return ""

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return the case of a random test. Raises CaseError if the base has no tests, and ServerError."""
        return self.replay(pick(rng, self.parts()), rng, scale)

    def parts(self) -> tuple[str, ...]:
        """Return the test files, without suffix, whose modules are installed. Raises CaseError, ServerError."""
        return tuple(f"{suite.directory}/{test}" for suite in self._suites() for test in suite.tests)

    def _suites(self) -> tuple[Suite, ...]:
        found = suites(self.target.tree)
        if not found or found[0].directory != REGRESS:
            raise CaseError(f"the base has no {REGRESS}; a full source tree has it")
        core, *others = found
        return core, *(each for each in others if each.module in self.target.extensions)

    def replay(self, part: str, rng: random.Random, scale: Scale) -> Case:
        """Return the case of one file. Raises CaseError, ServerError."""
        directory, _, test = part.rpartition("/")
        suite = next(each for each in self._suites() if each.directory == directory)
        with self.target.session(()) as connection:
            catalog = Catalog.of(connection)
        tree = self.target.tree
        before = set_up(tree, suite, test)
        own = tuple(parsed(tree, suite.directory, test).sent[: scale.queries * _STATEMENTS])
        roles = Roles.of(before + own, rng)
        stager = Stager(catalog, lambda path: file_of(tree, suite, path), roles.names)

        def staged(sent: tuple[Sent, ...]) -> tuple[Step, ...]:
            return tuple(step for each in sent if (step := stager.step(roles.named(each))) is not None)

        return Case(self.name, (*roles.scene, *staged(before)), staged(own), part=part)
