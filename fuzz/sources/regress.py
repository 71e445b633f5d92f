"""PostgreSQL's own tests: a file of src/test/regress or contrib, whole, after as much of others as it needs.

Arms are compared with one another instead of with expected files, so it runs under any settings. All files come once
under each of a few, and from then on any of them under any.
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

_STATEMENTS: Final = 100  # for each of scale.queries: at the usual scale, more than the longest file has


class Regress(Source):
    """Files of PostgreSQL's own regression tests, under perturbed settings."""

    name: ClassVar[str] = "regress"
    modes: ClassVar[tuple[str, ...]] = (
        "plain",
        "small_memory",
        "hash_spilling",
        "hash_spilling+filter_forced",
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
        "hash_spilling+filter_forced",
    )

    @classmethod
    def lacks(cls, given: UserInput) -> str:
        """Return nothing: each base brings its tests."""
        return ""

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return the case of any test. Raises CaseError where the base has none, ServerError."""
        return self.replay(pick(rng, self.parts()), rng, scale)

    def parts(self) -> tuple[str, ...]:
        """Return the files of tests, without suffix, of the modules that are there. Raises CaseError, ServerError."""
        return tuple(f"{suite.directory}/{test}" for suite in self._suites() for test in suite.tests)

    def _suites(self) -> tuple[Suite, ...]:
        found = suites(self.target.tree)
        if not found or found[0].directory != REGRESS:
            raise CaseError(f"the source of the base has no {REGRESS}: name another source with --generator")
        core, *others = found
        return core, *(each for each in others if each.module in self.target.extensions)

    def replay(self, part: str, rng: random.Random, scale: Scale) -> Case:
        """Return the case of one file. Raises CaseError, ServerError."""
        directory, _, test = part.rpartition("/")
        suite = next(each for each in self._suites() if each.directory == directory)
        with self.target.played(()) as connection:
            catalog = Catalog.of(connection)
        tree = self.target.tree
        before = set_up(tree, suite, test)
        own = tuple(parsed(tree, suite.directory, test).sent[: scale.queries * _STATEMENTS])
        roles = Roles.of(before + own, rng)
        stager = Stager(catalog, lambda path: file_of(tree, suite, path), roles.names)

        def staged(sent: tuple[Sent, ...]) -> tuple[Step, ...]:
            return tuple(step for each in sent if (step := stager.step(roles.named(each))) is not None)

        return Case(self.name, (*roles.scene, *staged(before)), staged(own), part=part)
