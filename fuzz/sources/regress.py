"""PostgreSQL's own tests: a file of src/test/regress or contrib, whole, after as much of others as it needs.

Arms are compared with one another instead of with expected files, so it runs under any settings.
"""

import random
from typing import ClassVar, Final

from fuzz.errors import CaseError
from fuzz.generators.choices import chance, pick
from fuzz.generators.generator import Scale
from fuzz.psql.script import Sent
from fuzz.sources.legality.catalog import Catalog
from fuzz.sources.replaying.steps import Stager
from fuzz.sources.replaying.suites import REGRESS, Suite, file_of, parsed, set_up, suites
from fuzz.sources.source import Source
from fuzz.sources.target import Given
from oracles.case import Case, Step

_CONTRIB_SHARE: Final = 15  # percent of the cases
_STATEMENTS: Final = 100  # for each of scale.queries: at the usual scale, more than the longest file has
_EXTENSIONS: Final = "SELECT name FROM pg_available_extensions"


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

    @classmethod
    def lacks(cls, given: Given) -> str:
        """Return nothing: each base brings its tests."""
        return ""

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return a case: one file of tests. Raises CaseError where the base has none, ServerError."""
        with self.target.played(()) as connection:
            catalog = Catalog.of(connection)
            extensions = {name for (name,) in connection.execute(_EXTENSIONS)}
        core, *others = self._suites()
        built = [suite for suite in others if suite.directory.partition("/")[2] in extensions]
        suite = pick(rng, built) if built and chance(rng, _CONTRIB_SHARE) else core
        return self.case(suite, pick(rng, list(suite.tests)), catalog, scale)

    def _suites(self) -> tuple[Suite, ...]:
        found = suites(self.target.tree)
        if not found or found[0].directory != REGRESS:
            raise CaseError(f"the source of the base has no {REGRESS}: name another source with --generator")
        return found

    def case(self, suite: Suite, test: str, catalog: Catalog, scale: Scale) -> Case:
        """Return the case of one test."""
        tree = self.target.tree
        stager = Stager(catalog, lambda path: file_of(tree, suite, path))

        def staged(sent: tuple[Sent, ...]) -> tuple[Step, ...]:
            return tuple(step for each in sent if (step := stager.step(each)) is not None)

        own = parsed(tree, suite.directory, test).sent[: scale.queries * _STATEMENTS]
        return Case(self.name, staged(set_up(tree, suite, test)), staged(tuple(own)))
